// SPDX-License-Identifier: MIT
//
// The engine's threads around one or two VFs: run, park, quantum, idleness, wake-ups.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "pf-driver/softgpu/cp/engine.h"
#include "tests/support/deadline.h"
#include "tests/support/kernel_oracle.h"
#include "tests/support/virtual_clock.h"
#include "tests/unit/cp/cp_rig.h"
#include "tests/unit/sdma/sdma_rig.h"

namespace vgpu::test {
namespace {

using softgpu::VfId;
using softgpu::cp::Context;
using softgpu::cp::Engine;
using softgpu::cp::RunReport;

/// For what takes microseconds on a free machine.
constexpr milliseconds kSoon = std::chrono::seconds(60);

/// What the engine told, and a way to wait for it without sleeping.
class Ear final : public Engine::Listener {
public:
    void quantum_expired(const RunReport& report) override {
        if (on_quantum_end) on_quantum_end();
        const std::lock_guard lock(mutex_);
        reports.push_back(report);
        heard_.notify_all();
    }
    void out_of_work(VfId) override {
        const std::lock_guard lock(mutex_);
        ++dry;
        heard_.notify_all();
    }
    template <typename Predicate> bool wait(Predicate predicate) {
        std::unique_lock lock(mutex_);
        return heard_.wait_for(lock, std::chrono::seconds(60), predicate);
    }
    unsigned dry_spells() {
        const std::lock_guard lock(mutex_);
        return dry;
    }
    std::vector<RunReport> reports;
    unsigned dry = 0;
    std::function<void()> on_quantum_end;  ///< before anything is written down

private:
    std::mutex mutex_;
    std::condition_variable heard_;
};

/// A rig whose packets are executed by the engine.
struct EngineVf {
    explicit EngineVf(std::uint8_t number)
        : rig({.workers = 4}), context{VfId{number}, lock, rig.cp, {}} {
        rig.start_kiq();
        rig.start_hiq();
        queue = rig.make_aql_queue();
    }
    void attach(Engine& engine) {
        rig.vf.on_work = [&engine] { engine.kick(); };
    }
    void endless() {
        const KernelCode code = rig.load_kernel("endless");
        progress = (rig.memory.allocate(2 * kPage) + kPage - 1) / kPage * kPage;
        AqlKernel kernel;
        kernel.object = code.descriptor;
        kernel.arguments = rig.arguments(progress);
        kernel.grid = {64 * 8, 1, 1};
        rig.dispatch(queue, kernel);
    }
    void map() {
        const std::lock_guard guard(lock);
        rig.map(queue);
    }
    CpRig rig;
    softgpu::PiMutex lock;
    Context context;
    Ring queue;
    static constexpr std::uint64_t kPage = softgpu::mem::Port::kPageBytes;
    std::uint64_t progress = 0;  ///< on a page of its own
};

class EngineThreads : public testing::TestWithParam<std::uint32_t> {
protected:
    EngineThreads()
        : engine({.threads = GetParam(), .group_budget = 4096, .park = park}, clock, ear) {
        vf.attach(engine);
    }
    [[nodiscard]] bool is_parking() const {
        return park->has_lasted(milliseconds(0), softgpu::BusySince::Clock::now());
    }
    std::shared_ptr<softgpu::BusySince> park = std::make_shared<softgpu::BusySince>();
    softgpu::SteadyClock clock;
    Ear ear;
    EngineVf vf{1};
    Engine engine;
};

INSTANTIATE_TEST_SUITE_P(Threads, EngineThreads, testing::Values(1u, 2u, 4u));

TEST_P(EngineThreads, KernelsRunToTheirEndAndTheVfRunsDry) {
    constexpr std::uint32_t kItems = 4096;
    const KernelCode code = vf.rig.load_kernel("long_running");
    const std::uint64_t result = vf.rig.memory.allocate(kItems * 4);
    AqlKernel kernel;
    kernel.object = code.descriptor;
    kernel.arguments = vf.rig.arguments(result, vf.rig.memory.allocate(kItems * 4), 100u);
    kernel.grid = {kItems, 1, 1};
    kernel.signal = vf.rig.make_signal(1);
    vf.rig.dispatch(vf.queue, kernel);
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    ASSERT_TRUE(ear.wait([&] { return ear.dry == 1; }));
    const auto report = engine.park();
    ASSERT_TRUE(report);
    EXPECT_EQ(vf.rig.signal_value(kernel.signal), 0);
    EXPECT_EQ(vf.rig.memory.download<std::uint32_t>(result, kItems),
              oracle::long_running(kItems, 100));
    EXPECT_EQ(report->instructions, vf.rig.cp.counters().wave_instructions);
    CpRig single;
    single.start_kiq();
    single.start_hiq();
    Ring queue = single.make_aql_queue();
    const KernelCode again = single.load_kernel("long_running");
    kernel.object = again.descriptor;
    kernel.arguments = single.arguments(single.memory.allocate(kItems * 4),
                                        single.memory.allocate(kItems * 4), 100u);
    kernel.signal = 0;
    single.dispatch(queue, kernel);
    single.map(queue);
    single.pump();
    EXPECT_EQ(single.cp.counters().wave_instructions, report->instructions)
        << "the count does not depend on threads";
}

TEST_P(EngineThreads, ParkStopsAnEndlessKernelAndRunContinuesIt) {
    vf.endless();
    vf.map();
    std::uint64_t before = 0;
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(engine.run(vf.context, std::nullopt));
        const std::uint64_t seen = before;
        wait_for("an instruction of the kernel", kSoon, [&] {
            const std::lock_guard guard(vf.lock);
            return vf.rig.cp.counters().wave_instructions != seen;
        });
        const auto report = engine.park();
        ASSERT_TRUE(report);
        EXPECT_FALSE(vf.rig.cp.has_leased_groups());
        EXPECT_EQ(report->instructions, vf.rig.cp.counters().wave_instructions - before);
        before = vf.rig.cp.counters().wave_instructions;
    }
    EXPECT_EQ(ear.dry, 0u);
}

TEST_P(EngineThreads, QuantumEndsTheRunByItself) {
    vf.endless();
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::chrono::milliseconds(2)));
    ASSERT_TRUE(ear.wait([&] { return !ear.reports.empty(); }));
    EXPECT_EQ(ear.reports[0].vf, VfId{1});
    EXPECT_GE(ear.reports[0].end - ear.reports[0].start, std::chrono::milliseconds(2));
    EXPECT_FALSE(engine.park()) << "reported once";
    EXPECT_FALSE(engine.running());
}

/// Else the next time slice could begin before the listener hears that this one is over.
TEST_P(EngineThreads, ParkReturnsAfterTheEndOfTheQuantumWasTold) {
    std::promise<void> begun;
    std::promise<void> go_on;
    ear.on_quantum_end = [&] {
        begun.set_value();
        go_on.get_future().wait();
    };
    vf.endless();
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::chrono::milliseconds(1)));
    const bool has_begun = begun.get_future().wait_for(kSoon) == std::future_status::ready;
    auto parked = std::async(std::launch::async, [&] { return engine.park(); });
    EXPECT_EQ(parked.wait_for(milliseconds(20)), std::future_status::timeout);
    go_on.set_value();
    EXPECT_TRUE(has_begun);
    EXPECT_FALSE(parked.get());
    EXPECT_EQ(ear.reports.size(), 1u);
}

TEST_P(EngineThreads, ParkLastsUntilTheEndOfTheQuantumWasTold) {
    bool was_parking = false;
    ear.on_quantum_end = [&] { was_parking = is_parking(); };
    vf.endless();
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::chrono::milliseconds(1)));
    ASSERT_TRUE(ear.wait([&] { return !ear.reports.empty(); }));
    EXPECT_FALSE(engine.park());
    EXPECT_TRUE(was_parking);
    EXPECT_FALSE(is_parking());
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    EXPECT_TRUE(engine.park());
    EXPECT_FALSE(is_parking());
}

TEST_P(EngineThreads, TwoVfsTakeTurnsAndBothProgress) {
    EngineVf other(2);
    other.attach(engine);
    vf.endless();
    other.endless();
    vf.map();
    other.map();
    const auto have_both = [&] {
        return vf.rig.cp.counters().wave_instructions > 0 &&
               other.rig.cp.counters().wave_instructions > 0;
    };
    for (std::size_t i = 0; i < 10 || (i < 2000 && !have_both()); ++i) {
        Context& context = i % 2 == 0 ? vf.context : other.context;
        ASSERT_TRUE(engine.run(context, std::chrono::milliseconds(1)));
        ASSERT_TRUE(ear.wait([&] { return ear.reports.size() == i + 1; }));
    }
    EXPECT_TRUE(have_both());
}

TEST_P(EngineThreads, OnlyOneVfIsOnTheEngine) {
    EngineVf other(2);
    other.attach(engine);
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    EXPECT_EQ(engine.running(), VfId{1});
    EXPECT_FALSE(engine.run(other.context, std::nullopt));
    EXPECT_TRUE(engine.park());
    EXPECT_FALSE(engine.park()) << "it was parked already";
    EXPECT_TRUE(engine.run(other.context, std::nullopt));
    EXPECT_EQ(engine.running(), VfId{2});
    (void)engine.park();
}

TEST_P(EngineThreads, DoorbellWakesTheSleepingEngine) {
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    ASSERT_TRUE(ear.wait([&] { return ear.dry == 1; }));
    std::uint64_t signal = 0;
    for (unsigned i = 0; i < 50; ++i) {
        {
            const std::lock_guard guard(vf.lock);
            signal = vf.rig.make_signal(1);
            vf.rig.barrier(vf.queue, AQL_TYPE_BARRIER_AND, {}, signal);
            vf.rig.ring_doorbell(vf.queue);
        }
        ASSERT_TRUE(ear.wait([&] { return ear.dry >= i + 2; }));
        const std::lock_guard guard(vf.lock);
        ASSERT_EQ(vf.rig.signal_value(signal), 0);
    }
    (void)engine.park();
}

/// Seen as two threads that were as fast as one: who found no group between two kernels slept until
/// the next doorbell.
TEST_P(EngineThreads, EveryWorkerComesBackForAKernelThatWaited) {
    const std::uint64_t gate = vf.rig.make_signal(1);
    const KernelCode code = vf.rig.load_kernel("long_running");
    AqlKernel first;
    first.object = code.descriptor;
    first.arguments =
        vf.rig.arguments(vf.rig.memory.allocate(4096), vf.rig.memory.allocate(4096), 100u);
    first.grid = {64, 1, 1};
    first.signal = vf.rig.make_signal(1);
    vf.rig.dispatch(vf.queue, first);
    vf.rig.barrier(vf.queue, AQL_TYPE_BARRIER_AND, {first.signal, gate}, 0);
    vf.endless();
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    ASSERT_TRUE(ear.wait([&] { return ear.dry == 1; }));
    // a worker makes a port when it first takes a group: one of them has
    const unsigned before = vf.rig.vf.ports_made;
    {
        const std::lock_guard guard(vf.lock);
        ASSERT_EQ(vf.rig.signal_value(first.signal), 0);
        vf.rig.memory.put(gate + offsetof(aql_signal, value), std::int64_t{0});
    }
    wait_for("every worker to take a group", milliseconds(60000),
             [&] { return vf.rig.vf.ports_made >= before + GetParam() - 1; });
    (void)engine.park();
}

TEST_P(EngineThreads, MemoryWaitOfTheRunningVfIsPolled) {
    const std::uint64_t gate = vf.rig.make_signal(1);
    const std::uint64_t done = vf.rig.make_signal(1);
    vf.rig.barrier(vf.queue, AQL_TYPE_BARRIER_AND, {gate}, done);
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    ASSERT_TRUE(ear.wait([&] { return ear.dry == 1; }));
    {
        const std::lock_guard guard(vf.lock);
        vf.rig.memory.put(gate + offsetof(aql_signal, value), std::int64_t{0});
    }
    ASSERT_TRUE(ear.wait([&] { return ear.dry == 2; }));
    (void)engine.park();
    EXPECT_EQ(vf.rig.signal_value(done), 0);
}

/// Seen as a copy engine that stood still until the next doorbell.
TEST_P(EngineThreads, CountedPollOfACopyEngineIsLookedAtAgain) {
    constexpr std::uint64_t kCell = 0x140000;
    constexpr std::uint32_t kRetries = 10;
    const std::uint64_t va = softgpu::mem::kFbBase + kCell;
    softgpu::test::SdmaRig sdma;
    sdma.enable_kernel_ring();
    sdma.submit(softgpu::test::poll_memory(va, PM4_COMPARE_EQUAL, 1, ~0u, kRetries));
    sdma.submit(softgpu::test::fence(va + 8, 9));
    vf.context.sources = {&*sdma.engine};
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    wait_for("the fence behind a poll that is given up", kSoon, [&] {
        const std::lock_guard guard(vf.lock);
        return sdma.mem.get<std::uint32_t>(kCell + 8) == 9;
    });
    (void)engine.park();
}

TEST_P(EngineThreads, UnmapTakesWavesBackFromOtherThreads) {
    vf.endless();
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    for (int i = 0; i < 10; ++i) {
        std::uint64_t fence = 0;
        {
            const std::lock_guard guard(vf.lock);
            fence = vf.rig.unmap_all();
        }
        wait_for("the fence behind UNMAP_QUEUES", kSoon, [&] {
            const std::lock_guard guard(vf.lock);
            return vf.rig.memory.get<std::uint64_t>(fence) == CpRig::kFenceDone;
        });
        vf.map();
    }
    (void)engine.park();
}

TEST_P(EngineThreads, QuiesceReturnsWhileWavesRun) {
    vf.endless();
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    for (int i = 0; i < 200; ++i) engine.quiesce(VfId{1});
    (void)engine.park();
    EXPECT_FALSE(vf.rig.cp.has_leased_groups());
}

/// A wave that cannot come to a stop point, because memory does not answer it.
TEST(Engine, QuiesceWaitsForTheWavesOfItsVfAndOfNoOther) {
    const softgpu::SteadyClock clock;
    Ear ear;
    EngineVf vf(1);
    vf.endless();
    std::atomic<bool> is_stuck = false;
    std::promise<void> answer;
    vf.rig.memory.on_walk = [&, answered = answer.get_future().share()](softgpu::GpuVa va,
                                                                        softgpu::mem::Access) {
        if (softgpu::raw(va) / EngineVf::kPage * EngineVf::kPage != vf.progress) return;
        is_stuck = true;
        answered.wait();
    };
    Engine engine({.threads = 1}, clock, ear);
    vf.attach(engine);
    vf.map();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    wait_for("the first store of the kernel", kSoon, [&] { return is_stuck.load(); });
    const auto quiesce = [&](VfId id) {
        return std::async(std::launch::async, [&engine, id] { engine.quiesce(id); });
    };
    const auto other = quiesce(VfId{2});
    EXPECT_EQ(other.wait_for(kSoon), std::future_status::ready);
    const auto own = quiesce(VfId{1});
    EXPECT_EQ(own.wait_for(milliseconds(20)), std::future_status::timeout);
    answer.set_value();
    own.wait();
    (void)engine.park();
}

TEST_P(EngineThreads, RunsAndParksInQuickSuccession) {
    vf.endless();
    vf.map();
    for (int i = 0; i < 300; ++i) {
        ASSERT_TRUE(engine.run(vf.context, std::nullopt));
        ASSERT_TRUE(engine.park());
    }
}

/// An engine whose clock stands still unless the test moves it: no grace ends by itself.
class IdleGrace : public testing::TestWithParam<std::uint32_t> {
protected:
    IdleGrace() : engine({.threads = GetParam(), .idle_grace = kGrace}, clock, ear) {
        vf.attach(engine);
        vf.map();
    }
    /// A packet that is rung now and has completed when this returns.
    void run_packet() {
        std::uint64_t signal = 0;
        {
            const std::lock_guard guard(vf.lock);
            signal = vf.rig.make_signal(1);
            vf.rig.barrier(vf.queue, AQL_TYPE_BARRIER_AND, {}, signal);
            vf.rig.ring_doorbell(vf.queue);
        }
        wait_for("completion of a packet", kSoon, [&] {
            const std::lock_guard guard(vf.lock);
            return vf.rig.signal_value(signal) == 0;
        });
    }
    /// Moves the clock until the engine has said `count` times that it is out of work. How far is
    /// not known: a worker that the host has put aside looks late. So the time slice has no
    /// quantum.
    void await_idle_period(unsigned count) {
        wait_for("a dry spell longer than the grace is reported", kSoon, [&] {
            clock.advance(kGrace);
            engine.tick();
            return ear.dry_spells() >= count;
        });
    }
    static constexpr std::chrono::microseconds kGrace{100};
    softgpu::VirtualClock clock;
    Ear ear;
    EngineVf vf{1};
    Engine engine;
};

INSTANTIATE_TEST_SUITE_P(Threads, IdleGrace, testing::Values(1u, 2u, 4u));

TEST_P(IdleGrace, PacketsThatFollowInTheGraceAreOneStay) {
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    run_packet();
    const unsigned before = ear.dry_spells();  // the time slice may have begun dry
    for (int i = 0; i < 200; ++i) run_packet();
    EXPECT_EQ(ear.dry_spells(), before);
    await_idle_period(before + 1);
    clock.advance(10 * kGrace);
    engine.tick();
    run_packet();
    await_idle_period(before + 2);  // work begins a new one
    (void)engine.park();
    EXPECT_EQ(ear.dry_spells(), before + 2) << "each spell is reported once";
}

TEST_P(IdleGrace, ParkDoesNotWaitForIt) {
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(engine.run(vf.context, std::nullopt));
        run_packet();
        ASSERT_TRUE(engine.park()) << "the clock stands still: the grace never ends";
    }
}

TEST_P(IdleGrace, QuantumEndsInIt) {
    ASSERT_TRUE(engine.run(vf.context, kGrace / 2));
    run_packet();
    clock.advance(kGrace / 2);
    engine.tick();
    ASSERT_TRUE(ear.wait([&] { return !ear.reports.empty(); }));
    EXPECT_EQ(ear.reports[0].end, kGrace / 2);
}

TEST_P(IdleGrace, VfThatHasNothingToDoGetsNone) {
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    run_packet();
    (void)engine.park();
    const unsigned before = ear.dry_spells();
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    EXPECT_TRUE(ear.wait([&] { return ear.dry > before; })) << "and the clock stands still";
    (void)engine.park();
}

TEST_P(IdleGrace, DrySpellsThatWereToldAreTheIdlePartOfAStay) {
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    run_packet();
    unsigned spells = ear.dry_spells();
    for (int i = 0; i < 20; ++i) {
        await_idle_period(++spells);
        clock.advance(std::chrono::seconds(1));
        engine.kick();  // for nothing
        clock.advance(kGrace);
        run_packet();
    }
    const auto report = engine.park();
    ASSERT_TRUE(report);
    EXPECT_GE(report->idle, std::chrono::seconds(20));
    EXPECT_LE(report->idle, report->end - report->start);
}

TEST_P(IdleGrace, WorkIsNoPartOfItsIdleTime) {
    ASSERT_TRUE(engine.run(vf.context, std::nullopt));
    run_packet();
    const unsigned before = ear.dry_spells();
    for (int i = 0; i < 50; ++i) {
        clock.advance(kGrace / 2);
        run_packet();
    }
    const auto report = engine.park();
    ASSERT_TRUE(report);
    if (ear.dry_spells() == before) {
        EXPECT_LE(report->idle, kGrace);
    }
}

TEST(Engine, VirtualClockEndsTheQuantumWhenItIsTicked) {
    softgpu::VirtualClock clock;
    Ear ear;
    EngineVf vf(1);
    Engine engine({.threads = 1}, clock, ear);
    ASSERT_TRUE(engine.run(vf.context, std::chrono::hours(1)));
    clock.advance(std::chrono::hours(1));
    engine.tick();
    ASSERT_TRUE(ear.wait([&] { return !ear.reports.empty(); }));
    EXPECT_EQ(ear.reports[0].end, std::chrono::hours(1));
}

}  // namespace
}  // namespace vgpu::test
