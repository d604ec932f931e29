#pragma once

#include <reigen/comm/backend/wrapper.hpp>
#include <reigen/comm/checked/roll_call.hpp>
#include <reigen/comm/communicator.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

namespace detail {

/// "rank 0, 2: barrier; rank 1: broadcast of 4 float from rank 0": who says what.
inline std::string who_says_what(const RollCallRound& round, int size) {
    std::map<std::uint64_t, std::string> who; // by what they say
    std::vector<const ClaimRecord*> sayings;  // in the order of the first rank
    for (int rank = 0; rank < size; ++rank) {
        const ClaimRecord& claim = round.claim(rank);
        std::string& ranks = who[claim.hash];
        if (ranks.empty())
            sayings.push_back(&claim);
        ranks += concat(ranks.empty() ? "rank " : ", ", rank);
    }
    std::string all;
    for (const ClaimRecord* const claim : sayings)
        all += concat(all.empty() ? "" : "; ", who[claim->hash], ": ", claim->text);
    return all;
}

/// A collective that begins with a roll call; what all ranks agree on then goes its way.
///
///     claims -> (all_to_all: verdicts on the pairs' parts) -> the operation itself
///
/// A rank that finds a difference throws it once the others have found it too: its end would wake them with an error of
/// another kind.
class CheckedCollective final : public Started {
  public:
    /// `group` and `backend` outlive it. `number`: of the collective in its group.
    CheckedCollective(RollCallGroup& group, Backend& backend, std::uint64_t number, const Operation& operation)
        : group_(group),
          number_(number),
          backend_(backend),
          operation_(operation),
          claim_(claim_of(operation)),
          parts_(operation.parts.begin(), operation.parts.end()),
          in_parts_(operation.in_parts.begin(), operation.in_parts.end()),
          claims_(group, number, Topic::claims),
          verdicts_(group, number, Topic::verdicts) {
        operation_.parts = parts_;
        operation_.in_parts = in_parts_;
        claims_.start([this](int member) { return record_for(member); }, operation.blocks);
    }

    bool advance() override {
        if (stage_ != Stage::operation)
            compare_calls();
        if (stage_ != Stage::operation || !(begun_ || begin_in_order()))
            return false;
        return !started_ || started_->advance();
    }

    bool revoke() noexcept override {
        const bool claims = claims_.revoke();
        const bool verdicts = verdicts_.revoke();
        const bool known = !known_ || known_->revoke();
        if (known_)
            group_.difference->known_to_all = true;
        return (!started_ || started_->revoke()) && claims && verdicts && known;
    }

    std::string waits_for() const override {
        if (started_)
            return started_->waits_for();
        if (difference_before_this_ends())
            return concat("the others to find that ", group_.difference->text);
        return concat((stage_ == Stage::claims ? claims_ : verdicts_).missing(), " to call ", claim_, " too");
    }

  private:
    enum class Stage : std::uint8_t { claims, verdicts, operation };

    static constexpr double moment = 2; // seconds the others have to find what this rank has found

    /// Goes on to the operation where all call alike.
    void compare_calls() {
        try {
            if (difference_before_this_ends())
                return end_by_difference();
            if (stage_ == Stage::claims && claims_.advance() && alike(claims_, "call")) {
                stage_ = operation_.call == Call::all_to_all ? Stage::verdicts : Stage::operation;
                if (stage_ == Stage::verdicts)
                    verdicts_.start([text = verdict()](int) { return ClaimRecord::of(text); }, operation_.blocks);
            }
            if (stage_ == Stage::verdicts && verdicts_.advance() && alike(verdicts_, "exchange"))
                stage_ = Stage::operation;
        } catch (const PeerError& error) {
            throw PeerError(concat(claim_, ": ", error.what()));
        }
    }

    /// What is below sees the collectives in the order in which they were called, as it would without comparisons.
    bool begin_in_order() {
        if (group_.started != number_)
            return false;
        begun_ = true;
        ++group_.started;
        if (operation_.call != Call::agree)
            started_ = backend_.start_collective(operation_);
        return true;
    }

    bool difference_before_this_ends() const { return group_.difference && group_.difference->collective <= number_; }

    void end_by_difference() {
        Difference& difference = *group_.difference;
        if (known_)
            difference.known_to_all = all_know();
        if (difference.known_to_all)
            throw DisagreementError(difference.text);
    }

    bool all_know() {
        try {
            return known_->advance() || seconds_since(found_) > moment;
        } catch (const Error&) {
            return true; // a rank ended, because it knew
        }
    }

    ClaimRecord record_for(int member) const {
        ClaimRecord record = ClaimRecord::of(claim_);
        if (operation_.call == Call::all_to_all) {
            record.gives = parts_[std::size_t(member)];
            record.takes = in_parts_[std::size_t(member)];
        }
        return record;
    }

    /// What this rank finds of the parts that it exchanges with each other one.
    std::string verdict() const {
        for (int member = 0; member < group_.size(); ++member) {
            const Index takes = in_parts_[std::size_t(member)];
            const auto gives = member == group_.rank ? takes : claims_.claim(member).gives;
            if (gives != takes)
                return concat("takes ", takes, " elements from rank ", member, ", which gives ", gives);
        }
        return "takes what the others give";
    }

    /// Whether all say the same in this round; tells the others where they do not.
    bool alike(const RollCallRound& round, const char* verb) {
        bool equal = true;
        for (int member = 1; member < group_.size(); ++member)
            equal = equal && round.claim(member).hash == round.claim(0).hash;
        if (!equal) {
            group_.difference = {number_, concat("the ranks ", verb, " different things, in collective ", number_,
                                                 " of this group of ", group_.size(), ": ",
                                                 who_says_what(round, group_.size()))};
            found_ = Clock::now();
            known_.emplace(group_, number_, Topic::difference);
            known_->start([this](int) { return ClaimRecord::of(group_.difference->text); }, false);
        }
        return equal;
    }

    RollCallGroup& group_;
    std::uint64_t number_;
    Backend& backend_;
    Operation operation_;
    std::string claim_;
    std::vector<Index> parts_;
    std::vector<Index> in_parts_;
    RollCallRound claims_;
    RollCallRound verdicts_;
    std::optional<RollCallRound> known_; // what the ranks do not call alike
    Clock::time_point found_;
    Stage stage_ = Stage::claims;
    bool begun_ = false;
    std::unique_ptr<Started> started_;
};

} // namespace detail

/// Compares what the ranks call, before each collective and in each `agree`; see `checked`.
class Checked final : public Wrapper {
  public:
    /// `roll_call`: a group of the same ranks for messages of this object's own.
    Checked(std::shared_ptr<Backend> inner, std::shared_ptr<Backend> roll_call)
        : Wrapper(std::move(inner)),
          group_{std::make_shared<detail::RollCall>(std::move(roll_call)), std::vector<int>(std::size_t(size())),
                 rank()} {
        std::iota(group_.members.begin(), group_.members.end(), 0);
    }

    bool compares() const override { return true; }
    std::string description() const override { return inner().description() + "; compared before they begin"; }

    std::unique_ptr<Started> start_collective(const Operation& operation) override {
        return std::make_unique<detail::CheckedCollective>(group_, inner(), group_.roll_call->begin(group_.id),
                                                           operation);
    }

    std::shared_ptr<Backend> split(int color, std::span<const int> members) override {
        const std::uint64_t id = (detail::Hash() << group_.id << splits_++ << color).value();
        return std::shared_ptr<Checked>(new Checked(inner().split(color, members), *this, members, id));
    }

  private:
    Checked(std::shared_ptr<Backend> inner, const Checked& parent, std::span<const int> members, std::uint64_t id)
        : Wrapper(std::move(inner)), group_{parent.group_.roll_call, {}, rank(), id} {
        for (const int member : members)
            group_.members.push_back(parent.group_.members[std::size_t(member)]);
    }

    detail::RollCallGroup group_;
    std::uint64_t splits_ = 0;
};

/// The same ranks, and all groups split off from them, with every collective checked before it begins: operation,
/// element type, reduction, sizes, parts and root, its order, and the sizes that algorithms made of messages `agree` on.
///
/// Where they differ, every rank of the group throws the same `DisagreementError`, which lists what each rank called,
/// and the communicator has failed. A rank that calls into one group while a member of it waits for this rank in
/// another one throws too, and so does that member, where both wait for nothing else. What no rank has called is found
/// by the deadline alone. REIGEN_CHECKED=1 in the environment has `run_threads`, `mpi_main` and `mpi_communicator` check
/// without a line of code; that of one rank is enough, since launchers need not pass it on to other hosts.
///
/// Cost        P - 1 messages of 512 bytes a rank before each collective (all_to_all: twice); not counted in `traffic`;
///             5 to 7 us for two ranks on threads, 4 to 50 us for four of them on two busy cores (bench/wrappers)
/// Collective  over `communicator`, which stays as it is, with messages of its own
inline Communicator checked(const Communicator& communicator) {
    std::shared_ptr<Backend> backend = communicator.backend();
    // A check below another would number what is in flight in the order in which the claims above it come together,
    // which ranks need not see alike.
    while (const auto* const check = dynamic_cast<const Checked*>(backend.get()))
        backend = check->wrapped();
    Communicator result(std::make_shared<Checked>(detail::same_group(*backend), detail::same_group(*backend)));
    result.set_deadline(communicator.deadline());
    return result;
}

namespace detail {

/// Whether the environment of this process wants checks; nothing where REIGEN_CHECKED is neither 0 nor 1.
inline std::optional<bool> environment_wants_checks() {
    const char* const value = std::getenv("REIGEN_CHECKED");
    const std::string_view wanted = value != nullptr ? value : "0";
    if (wanted.empty() || wanted == "0")
        return false;
    return wanted == "1" ? std::optional(true) : std::nullopt;
}

/// A backend with the checks that the environment wants, the same on all of its ranks. Collective where there are any.
inline std::shared_ptr<Backend> as_environment_says(std::shared_ptr<Backend> backend, std::optional<bool> wanted) {
    require(wanted.has_value(), "REIGEN_CHECKED is neither 0 nor 1");
    if (!*wanted)
        return backend;
    auto roll_call = same_group(*backend);
    return std::make_shared<Checked>(std::move(backend), std::move(roll_call));
}

} // namespace detail
} // namespace reigen::inline REIGEN_INSTRUCTION_SET
