#include "wrappers.hpp"

#include <support/stopwatch.hpp>

#include <reigen/comm/collectives/execution.hpp>
#include <reigen/comm/trace.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using reigen::Communicator;
using reigen::Index;
using reigen::Operation;

/// A message that is complete as soon as it starts.
class InstantMessage final : public reigen::Message {
  public:
    bool advance() override { return true; }
    bool revoke() noexcept override { return true; }
    std::string waits_for() const override { return "nobody"; }
};

/// Rank 0 of so many that are always there: what is left is what a rank spends by itself.
class InstantBackend final : public reigen::Backend {
  public:
    explicit InstantBackend(int size) : size_(size) {}

    int rank() const override { return 0; }
    int size() const override { return size_; }
    std::unique_ptr<reigen::Message> start_message(const Operation&) override {
        return std::make_unique<InstantMessage>();
    }
    std::unique_ptr<reigen::Started> start_collective(const Operation& operation) override {
        return reigen::start_by_messages(*this, operation);
    }
    std::shared_ptr<reigen::Backend> split(int, std::span<const int> members) override {
        return std::make_shared<InstantBackend>(int(members.size()));
    }

  private:
    int size_;
};

/// The quickest of some runs, in nanoseconds a call.
template <class Call>
double nanoseconds_of(Call call) {
    constexpr int calls = 2000; // few enough to find room in every run
    double best = 1e30;
    for (int run = 0; run < 15; ++run)
        best = std::min(best, bench::seconds_of([&] {
                            for (int k = 0; k < calls; ++k)
                                call();
                        }));
    return 1e9 * best / calls;
}

/// Events recorded for each call, and the time that they add to it.
template <class Call>
void measure(const char* name, int ranks, Index events, Call call) {
    const auto recorder = std::make_shared<reigen::detail::TraceRecorder>(reigen::TraceOptions{});
    const auto full = std::make_shared<reigen::detail::TraceRecorder>(reigen::TraceOptions{.events = 0});
    const auto backend = std::make_shared<InstantBackend>(ranks);
    const auto traced = [&](const auto& into) {
        reigen::detail::TraceGroup all{0, std::vector<int>(std::size_t(ranks), 0)};
        return Communicator(std::make_shared<reigen::Traced>(backend, into, std::move(all)));
    };
    const Communicator plain(backend), recording = traced(recorder), counting = traced(full);
    const double without = nanoseconds_of([&] { call(plain); });
    const double kept = nanoseconds_of([&] { call(recording); });
    const double counted = nanoseconds_of([&] { call(counting); });
    std::printf("%-28s %8.0f ns   %8.0f ns   %8.0f ns   %6.1f ns\n", name, without, kept, counted,
                (kept - without) / double(events));
}

} // namespace

void measure_traced() {
    std::puts("Traced: nanoseconds of processor time an operation, and what an event adds");
    std::printf("%-28s %11s   %11s   %11s   %9s\n", "", "no trace", "recorded", "no room", "an event");
    measure("barrier on 1 rank", 1, 1, [](const Communicator& ranks) { ranks.barrier(); });
    measure("broadcast of 8 on 2 ranks", 2, 2,
            [values = std::vector<float>(8)](const Communicator& ranks) mutable { ranks.broadcast(values, 0); });
    measure("send of 8", 2, 1, [values = std::vector<float>(8)](const Communicator& ranks) { ranks.send(values, 1); });
    measure("all_reduce of 64 on 4 ranks", 4, 13,
            [values = std::vector<float>(64)](const Communicator& ranks) mutable { ranks.all_reduce(values); });
}
