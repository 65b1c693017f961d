// SPDX-License-Identifier: MIT
//
// Measures what vgpud spends on a run that the PF core reports, without and with recording.
#include "daemon/service/trace/recorder.h"

#include <benchmark/benchmark.h>

namespace {

using vgpu::daemon::Nanoseconds;
using vgpu::daemon::trace::Ran;

constexpr std::int64_t kRunNs = 2'000'000;

std::vector<vgpu::daemon::GpuSchedule::Member> sixteen_members() {
    std::vector<vgpu::daemon::GpuSchedule::Member> members;
    for (std::uint32_t vf = 1; vf <= 16; ++vf) members.push_back({.vf = vf, .weight = vf * 100});
    return members;
}

/// Reports runs of 16 VFs to `schedule`, one after the other.
template <typename Schedule, typename Report>
void report_runs(Schedule& schedule, const Report& report, benchmark::State& state) {
    schedule.set_members(sixteen_members(), 1000, Nanoseconds{0});
    std::int64_t end_ns = 0;
    std::uint32_t vf = 0;
    for (auto _ : state) {
        end_ns += kRunNs;
        vf = vf % 16 + 1;
        report(Ran{.end = Nanoseconds{end_ns}, .vf = vf, .ns = kRunNs});
    }
}

void run_reported(benchmark::State& state) {
    vgpu::daemon::GpuSchedule schedule;
    report_runs(
        schedule, [&](const Ran& ran) { schedule.on_run(ran.vf, ran.ns, ran.end); }, state);
}
BENCHMARK(run_reported);

/// Like run_reported, with a Recorder; the difference is the cost of recording.
void run_recorded(benchmark::State& state) {
    vgpu::daemon::trace::Recorder recorder(
        {.gpu = "gpu0",
         .names = [] { return std::map<std::uint32_t, std::string>{}; },
         .unix_time = [] { return std::int64_t{0}; }});
    report_runs(
        recorder, [&](const Ran& ran) { recorder.apply(ran); }, state);
}
BENCHMARK(run_recorded);

}  // namespace

BENCHMARK_MAIN();
