#pragma once

#include <reigen/comm/backend/backend.hpp>
#include <reigen/comm/collectives/reduce.hpp>
#include <reigen/comm/collectives/schedule.hpp>
#include <reigen/core/buffer.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reigen::inline REIGEN_INSTRUCTION_SET {

/// Runs any schedule over a backend's messages, step by step as `advance` is called.
///
/// Received terms of a sum are read in the sender's memory where the backend lends it; only otherwise is there scratch.
class Execution final : public Started {
  public:
    Execution(Backend& backend, const Operation& operation)
        : Execution(backend, operation, schedule(operation, backend.rank(), backend.size())) {}

    /// With a schedule of the caller's for the memory of `operation`.
    Execution(Backend& backend, const Operation& operation, Schedule schedule)
        : backend_(backend), operation_(operation), schedule_(std::move(schedule)) {
        operation_.parts = {};
        operation_.in_parts = {};
    }

    bool advance() override {
        for (; round_ < schedule_.rounds.size(); ++round_, started_ = false) {
            if (!started_)
                start_round();
            if (!round_complete())
                return false;
            flights_.clear();
        }
        return true;
    }

    bool revoke() noexcept override {
        bool all = true;
        for (const Flight& flight : flights_)
            all = (flight.complete || flight.message->revoke()) && all;
        return all;
    }

    std::string waits_for() const override {
        std::set<int> peers;
        for (const Flight& flight : flights_)
            if (!flight.complete)
                peers.insert(flight.peer);
        std::string text;
        for (const int peer : peers)
            text += concat(text.empty() ? "rank " : ", rank ", peer);
        return concat(text, " in ", to_string(operation_));
    }

  private:
    struct Flight {
        std::unique_ptr<Message> message;
        int peer;
        Piece piece;
        bool lent = false;
        bool complete = false;
    };

    const Round& round() const { return schedule_.rounds[round_]; }

    std::byte* at(Piece piece) {
        const Index offset = piece.first * size_of(operation_.type);
        switch (piece.memory) {
        case Memory::in:
            return const_cast<std::byte*>(operation_.in) + offset;
        case Memory::out:
            return operation_.out + offset;
        case Memory::scratch:
            break;
        }
        return scratch().data() + offset;
    }

    Buffer<std::byte>& scratch() {
        if (scratch_.empty()) {
            const MemoryScope scope(MemoryUse::messages);
            scratch_ = Buffer<std::byte>(schedule_.scratch * size_of(operation_.type));
        }
        return scratch_;
    }

    void start_round() {
        started_ = true;
        added_ = round().adds.empty();
        overwrites_ = sums_overwrite_sends(round());
        for (const Transfer& transfer : round().receives)
            start_receive(transfer);
        receives_ = flights_.size();
        for (const Transfer& transfer : round().sends)
            start_send(transfer);
        for (const Copy& copy : round().copies)
            if (at(copy.from) != at(copy.to))
                std::memmove(at(copy.to), at(copy.from), std::size_t(copy.to.count * size_of(operation_.type)));
    }

    /// Whether a sum goes where a message of the same round may still be read from.
    static bool sums_overwrite_sends(const Round& round) {
        const auto overlap = [](Piece a, Piece b) {
            return a.memory == b.memory && a.first < b.first + b.count && b.first < a.first + a.count;
        };
        for (const Add& add : round.adds)
            for (const Transfer& send : round.sends)
                if (overlap(add.to, send.piece))
                    return true;
        return false;
    }

    void start_receive(const Transfer& transfer) {
        const bool lent = transfer.piece.memory == Memory::scratch && !overwrites_ && backend_.lends(transfer.peer);
        Operation message = message_of(Call::receive, transfer);
        message.lend = lent;
        message.out = lent || transfer.piece.count == 0 ? nullptr : at(transfer.piece);
        message.out_size = transfer.piece.count;
        flights_.push_back({backend_.message(message), transfer.peer, transfer.piece, lent});
    }

    void start_send(const Transfer& transfer) {
        Operation message = message_of(Call::send, transfer);
        message.in = transfer.piece.count > 0 ? at(transfer.piece) : nullptr;
        message.in_size = transfer.piece.count;
        flights_.push_back({backend_.message(message), transfer.peer, transfer.piece});
    }

    Operation message_of(Call call, const Transfer& transfer) const {
        Operation message;
        message.call = call;
        message.type = operation_.type;
        message.peer = transfer.peer;
        message.tag = operation_.tag;
        message.part_of = operation_.call;
        message.group = operation_.group;
        return message;
    }

    /// Sums as soon as the terms are there: the peers' sends of lent memory are over only when their sums are.
    bool round_complete() {
        const bool received = advance_flights(0, receives_);
        const bool sent = advance_flights(receives_, flights_.size());
        if (!added_ && received && (sent || !overwrites_)) {
            for (const Add& add : round().adds)
                run(add);
            added_ = true;
        }
        return received && sent;
    }

    bool advance_flights(std::size_t first, std::size_t end) {
        bool all = true;
        for (Flight* flight = flights_.data() + first; flight != flights_.data() + end; ++flight) {
            flight->complete = flight->complete || flight->message->advance();
            all = all && flight->complete;
        }
        return all;
    }

    void run(const Add& add) {
        std::vector<const std::byte*> terms;
        std::vector<Message*> borrowed;
        for (const Piece& term : add.terms) {
            const auto lent = std::ranges::find_if(
                flights_, [&](const Flight& flight) { return flight.lent && flight.piece == term; });
            terms.push_back(lent == flights_.end() ? at(term) : lent->message->borrow());
            if (lent != flights_.end())
                borrowed.push_back(lent->message.get());
        }
        reduce_in_order(operation_.type, operation_.reduction, terms, add.to.count, at(add.to));
        for (Message* const message : borrowed)
            message->give_back();
    }

    Backend& backend_;
    Operation operation_;
    Schedule schedule_;
    std::size_t round_ = 0;
    bool started_ = false;
    bool added_ = false;
    bool overwrites_ = false;
    std::vector<Flight> flights_; // this round's receives, then its sends
    std::size_t receives_ = 0;
    Buffer<std::byte> scratch_;
};

/// Starts a collective as its schedule over the messages of this backend, or of the one around it that asks for them
/// (`Operation::messages`).
inline std::unique_ptr<Started> start_by_messages(Backend& backend, const Operation& operation) {
    return std::make_unique<Execution>(operation.messages != nullptr ? *operation.messages : backend, operation);
}

} // namespace reigen::inline REIGEN_INSTRUCTION_SET
