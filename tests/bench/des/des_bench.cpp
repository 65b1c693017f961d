// SPDX-License-Identifier: MIT
//
// Cost of a decision, of a plan, of a simulated switch, and of recording a run. A decision is
// decide, start and stop, with all VFs at work and weights of 1 to 10000.
#include "daemon/service/trace/recorder.h"
#include "daemon/simulator/gps_fluid.h"
#include "daemon/simulator/library.h"

#include <benchmark/benchmark.h>
#include <algorithm>
#include <chrono>

namespace {

using namespace vgpu::simulator;
using vgpu::daemon::scheduler::Decision;
using vgpu::daemon::scheduler::Scheduler;

Scheduler busy_scheduler(std::uint32_t vfs) {
    Scheduler scheduler;
    Dice dice(vfs);
    for (std::uint32_t vf = 1; vf <= vfs; ++vf) {
        scheduler.set(vf, {.weight = dice.weight(), .request_ns = 2'000'000}, 0);
        scheduler.wake(vf, 0);
    }
    return scheduler;
}

std::int64_t decide_once(Scheduler& scheduler, std::int64_t at_ns) {
    const Decision decision = scheduler.decide(at_ns);
    scheduler.start(decision, at_ns);
    at_ns += decision.slice_ns;
    scheduler.stop(at_ns);
    return at_ns;
}

void decision(benchmark::State& state) {
    Scheduler scheduler = busy_scheduler(static_cast<std::uint32_t>(state.range(0)));
    std::int64_t at_ns = 0;
    for (auto _ : state) at_ns = decide_once(scheduler, at_ns);
}
BENCHMARK(decision)->Arg(16)->Arg(256)->Arg(4096);

/// Each decision by itself; the clock's own cost is in it.
void decision_p99(benchmark::State& state) {
    using Clock = std::chrono::steady_clock;
    Scheduler scheduler = busy_scheduler(static_cast<std::uint32_t>(state.range(0)));
    std::vector<std::int64_t> taken_ns, empty_ns;
    std::int64_t at_ns = 0;
    for (auto _ : state) {
        const auto from = Clock::now();
        at_ns = decide_once(scheduler, at_ns);
        const auto until = Clock::now();
        taken_ns.push_back((until - from).count());
        empty_ns.push_back((Clock::now() - until).count());
    }
    state.counters["p50_ns"] = static_cast<double>(quantile(taken_ns, 0.5));
    state.counters["p99_ns"] = static_cast<double>(quantile(taken_ns, 0.99));
    state.counters["clock_p50_ns"] = static_cast<double>(quantile(empty_ns, 0.5));
}
BENCHMARK(decision_p99)->Arg(16)->Arg(256)->Arg(4096)->Iterations(200'000);

void wake_and_sleep(benchmark::State& state) {
    const auto vfs = static_cast<std::uint32_t>(state.range(0));
    Scheduler scheduler = busy_scheduler(vfs);
    Dice dice(1);
    std::int64_t at_ns = 0;
    for (auto _ : state) {
        const auto vf = static_cast<std::uint32_t>(dice.between(1, vfs));
        scheduler.sleep(vf, at_ns);
        scheduler.wake(vf, at_ns);
        at_ns = decide_once(scheduler, at_ns);
    }
}
BENCHMARK(wake_and_sleep)->Arg(16)->Arg(256)->Arg(4096);

constexpr std::int64_t kRunNs = 2'000'000;

std::vector<vgpu::daemon::GpuSchedule::Member> sixteen_members() {
    std::vector<vgpu::daemon::GpuSchedule::Member> members;
    for (std::uint32_t vf = 1; vf <= 16; ++vf) members.push_back({.vf = vf, .weight = vf * 100});
    return members;
}

/// What a schedule makes of a run that is reported to it.
template <typename Schedule> void report_runs(Schedule& schedule, benchmark::State& state) {
    using vgpu::daemon::Nanoseconds;
    schedule.set_members(sixteen_members(), 1000, Nanoseconds{0});
    std::int64_t end_ns = 0;
    std::uint32_t vf = 0;
    for (auto _ : state) {
        end_ns += kRunNs;
        vf = vf % 16 + 1;
        schedule.on_run(vf, kRunNs, Nanoseconds{end_ns}, 0);
    }
}

void run_reported(benchmark::State& state) {
    vgpu::daemon::GpuSchedule schedule;
    report_runs(schedule, state);
}
BENCHMARK(run_reported);

/// The same, recorded: what is more than run_reported is the price of recording.
void run_recorded(benchmark::State& state) {
    vgpu::daemon::trace::Recorder recorder(
        {.gpu = "gpu0",
         .names = [] { return std::map<std::uint32_t, std::string>{}; },
         .unix_time = [] { return std::int64_t{0}; }});
    report_runs(recorder, state);
}
BENCHMARK(run_recorded);

void simulate(benchmark::State& state) {
    Simulation setup{.max_runs = 200'000};
    Dice dice(3);
    for (std::int64_t vf = 0; vf < state.range(0); ++vf)
        setup.vfs.push_back({.policy = {.weight = dice.weight(), .request_ns = 2'000'000}});
    std::uint64_t switches = 0;
    for (auto _ : state) {
        LibraryPolicy policy;
        switches += Simulator(setup, policy).run().switches;
    }
    state.counters["switches"] =
        benchmark::Counter(static_cast<double>(switches), benchmark::Counter::kIsRate);
}
BENCHMARK(simulate)->Arg(8)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
