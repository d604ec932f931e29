#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/checked/claim.hpp>
#include <reigen/comm/communicator/registry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET::detail {

/// What the rounds of a collective may be about: what the ranks call, what they find of each other's parts, and that they know
/// of a difference.
enum class Topic : std::uint8_t { claims, verdicts, difference };

/// The number of such a round in its group.
inline std::uint64_t number_of(std::uint64_t collective, Topic topic) {
    return 3 * collective + std::uint64_t(topic);
}

/// The collective that a round belongs to.
inline std::uint64_t collective_of(std::uint64_t round) {
    return round / 3;
}

/// Carries the claims of all communicators that come from one: from each rank in the order in which it made them, so
/// that a rank learns of a peer that is busy elsewhere. Its messages meet no others and are not counted as traffic.
class RollCall {
  public:
    /// `backend`: a group of its own.
    explicit RollCall(std::shared_ptr<Backend> backend)
        : backend_(std::move(backend)), peers_(std::size_t(backend_->size())) {}

    RollCall(const RollCall&) = delete;
    RollCall& operator=(const RollCall&) = delete;

    ~RollCall() {
        for (Peer& peer : peers_)
            if (peer.receive && !peer.receive->revoke())
                keep_for_ever(std::make_shared<Peer>(std::move(peer))); // the transport may still write there
    }

    /// The number of this rank's next collective in a group.
    std::uint64_t begin(std::uint64_t group) { return begun_[group]++; }

    std::unique_ptr<Message> send(const ClaimRecord& record, int peer) {
        Operation operation = message(Call::send, peer);
        operation.in = reinterpret_cast<const std::byte*>(&record);
        operation.in_size = sizeof record;
        return backend_->start_message(operation);
    }

    /// A peer's claim of one round, if it has come. Listens only where it has not: the peer may be gone by now.
    std::optional<ClaimRecord> take(int peer_rank, std::uint64_t group, std::uint64_t round) {
        if (auto found = take_from_inbox(peer_rank, group, round))
            return found;
        listen(peer_rank);
        return take_from_inbox(peer_rank, group, round);
    }

    /// The claim that holds a peer up until this rank begins a collective elsewhere, if it has come. A rank that itself
    /// waits for that peer alone then waits for ever.
    const ClaimRecord* held_up_elsewhere(int peer_rank) const {
        for (const ClaimRecord& record : peers_[std::size_t(peer_rank)].inbox) {
            const auto begun = begun_.find(record.group);
            if (record.blocks != 0 && (begun == begun_.end() || begun->second <= collective_of(record.round)))
                return &record;
        }
        return nullptr;
    }

  private:
    struct Peer {
        std::unique_ptr<Message> receive;
        std::unique_ptr<ClaimRecord> arriving;
        std::deque<ClaimRecord> inbox;
    };

    static Operation message(Call call, int peer) {
        Operation operation;
        operation.call = call;
        operation.peer = peer;
        operation.part_of = Call::agree;
        return operation;
    }

    std::optional<ClaimRecord> take_from_inbox(int peer_rank, std::uint64_t group, std::uint64_t round) {
        auto& inbox = peers_[std::size_t(peer_rank)].inbox;
        const auto record = std::ranges::find_if(
            inbox, [&](const ClaimRecord& claim) { return claim.group == group && claim.round == round; });
        if (record == inbox.end())
            return std::nullopt;
        const ClaimRecord found = *record;
        inbox.erase(record);
        return found;
    }

    void listen(int peer_rank) {
        Peer& peer = peers_[std::size_t(peer_rank)];
        if (!peer.receive) {
            peer.arriving = std::make_unique<ClaimRecord>();
            Operation operation = message(Call::receive, peer_rank);
            operation.out = reinterpret_cast<std::byte*>(peer.arriving.get());
            operation.out_size = sizeof *peer.arriving;
            peer.receive = backend_->start_message(operation);
        }
        if (!peer.receive->advance())
            return;
        peer.inbox.push_back(*peer.arriving);
        peer.receive.reset();
    }

    std::shared_ptr<Backend> backend_;
    std::vector<Peer> peers_;
    std::map<std::uint64_t, std::uint64_t> begun_; // collectives of this rank in each group
};

/// What the ranks of a group did not call alike. No later collective of theirs can come to its end.
struct Difference {
    std::uint64_t collective = 0;
    std::string text;
    bool known_to_all = false;
};

/// A group whose claims a roll call carries, and this rank's place in it.
struct RollCallGroup {
    std::shared_ptr<RollCall> roll_call;
    std::vector<int> members; // by their rank in the roll call
    int rank = 0;
    std::uint64_t id = 0;      // the same on all members
    std::uint64_t started = 0; // collectives that have come through their comparison
    std::optional<Difference> difference = {};

    int size() const { return int(members.size()); }
};

/// One exchange of claims between all ranks of a group: the same list on every rank, or `DisagreementError` where a
/// peer waits for this rank elsewhere.
class RollCallRound {
  public:
    /// `group` outlives it. `collective`: its number in the group.
    RollCallRound(const RollCallGroup& group, std::uint64_t collective, Topic topic)
        : group_(group), round_(number_of(collective, topic)), claims_(group.members.size()) {}

    /// The claim may differ for each member.
    template <class RecordFor>
    void start(const RecordFor& record_for, bool blocks) {
        sent_.reserve(group_.members.size());
        for (int member = 0; member < group_.size(); ++member) {
            ClaimRecord& record = sent_.emplace_back(record_for(member));
            record.group = group_.id;
            record.round = round_;
            record.blocks = blocks ? 1 : 0;
            if (member == group_.rank)
                claims_[std::size_t(member)] = record;
            else
                sends_.push_back(group_.roll_call->send(record, group_.members[std::size_t(member)]));
        }
        blocks_ = blocks;
    }

    /// Whether all claims are here and nobody reads this rank's any more.
    bool advance() {
        try {
            const bool received = all_received();
            const bool sent = all_sent();
            if (sent && !crossing_.empty())
                throw DisagreementError(crossing_);
            return received && sent;
        } catch (const PeerError&) {
            if (crossing_.empty())
                throw;
            throw DisagreementError(crossing_); // which has ended the peer
        }
    }

    bool revoke() noexcept {
        bool all = true;
        for (const auto& send : sends_)
            all = send->revoke() && all;
        return all;
    }

    /// Of each member, once complete.
    const ClaimRecord& claim(int member) const { return *claims_[std::size_t(member)]; }

    std::string missing() const {
        std::string text;
        for (std::size_t member = 0; member < claims_.size(); ++member)
            if (!claims_[member])
                text += concat(text.empty() ? "rank " : ", rank ", member);
        return text.empty() ? "a rank that has not yet read what this one calls" : text;
    }

  private:
    bool all_received() {
        bool all = true;
        for (std::size_t member = 0; member < claims_.size(); ++member)
            all = received(member) && all;
        return all;
    }

    bool all_sent() {
        bool all = true;
        for (const auto& send : sends_)
            all = send->advance() && all;
        return all;
    }

    bool received(std::size_t member) {
        RollCall& roll_call = *group_.roll_call;
        const int peer = group_.members[member];
        std::optional<ClaimRecord>& claim = claims_[member];
        if (!claim)
            claim = roll_call.take(peer, group_.id, round_);
        if (claim)
            return true;
        if (const ClaimRecord* const elsewhere = blocks_ ? roll_call.held_up_elsewhere(peer) : nullptr)
            crossing_ = concat("rank ", group_.rank, " calls ", sent_[std::size_t(group_.rank)].text, " in a group of ",
                               group_.size(), ", but rank ", member, " of it waits for this one in another group, in ",
                               elsewhere->text);
        return false;
    }

    const RollCallGroup& group_;
    std::uint64_t round_;
    bool blocks_ = false;
    std::vector<ClaimRecord> sent_;
    std::vector<std::unique_ptr<Message>> sends_;
    std::vector<std::optional<ClaimRecord>> claims_;
    std::string crossing_; // told once the others know of this rank's claim, so that they find the same
};

} // namespace reigen::inline REIGEN_INSTRUCTION_SET::detail
