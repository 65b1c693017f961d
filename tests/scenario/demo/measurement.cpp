// SPDX-License-Identifier: MIT
#include "tests/scenario/demo/measurement.h"

#include <fmt/format.h>

#include <algorithm>

namespace vgpu::demo {

using namespace test;

std::int64_t monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Measurement::Measurement(PfClient& pf, std::map<std::uint32_t, std::uint64_t> weights,
                         std::map<std::uint32_t, const SharedReport*> guests,
                         std::uint32_t quantum_us)
    : pf_(pf),
      weights_(std::move(weights)),
      guests_(std::move(guests)),
      quantum_ns_(quantum_us * 1e3),
      oracle_(weights_),
      events_(pf.events()) {}

std::map<std::uint32_t, Measurement::Counters> Measurement::counters() {
    std::map<std::uint32_t, Counters> out;
    for (const auto& [vf, report] : guests_)
        out[vf] = {pf_.vf(vf).wave_instructions, report == nullptr ? 0 : (*report)->rounds.load()};
    return out;
}

void Measurement::take() {
    for (const auto& event : events_.take()) {
        if (!weights_.contains(event.vf)) continue;
        const auto time = static_cast<std::int64_t>(event.time_ns);
        if (event.type == VGPU_PF_EVENT_IDLE) {
            ++idles_;
            if (event.arg == VGPU_PF_IDLE_INACTIVE)
                oracle_.idle_preempted(event.vf);
            else
                oracle_.idle(event.vf);
        }
        if (event.type == VGPU_PF_EVENT_WAKE)
            for (const auto& [vf, weight] : weights_)
                if ((event.arg >> (vf - 1) & 1) != 0) oracle_.wake(vf, time);
        if (event.type != VGPU_PF_EVENT_RUN) continue;
        const auto end = time;
        const auto duration = static_cast<std::int64_t>(event.duration_ns);
        oracle_.run(event.vf, duration, end);
        runs_.push_back({event.vf, end - duration, end});
    }
}

void Measurement::follow(const std::string& what, const std::function<bool()>& enough,
                         milliseconds limit) {
    const Deadline deadline(limit);
    for (take(); !enough(); take()) {
        if (deadline.passed()) throw VfError(what + ": not within the time allowed");
        events_.wait_any(deadline);
    }
}

std::map<std::uint32_t, std::int64_t> Measurement::received_ns() const {
    std::map<std::uint32_t, std::int64_t> out;
    for (const auto& [vf, account] : oracle_.accounts()) out[vf] = account.received_ns;
    return out;
}

void Measurement::mark(const std::string& text) {
    marks_.push_back({monotonic_ns(), text});
}

void Measurement::begin() {
    take();
    oracle_.judge();
    idles_ = 0;
    runs_.clear();
    at_start_ = counters();
    switches_at_start_ = pf_.info().switches;
    started_ = std::chrono::steady_clock::now();
    stalls_.emplace();
}

Figures Measurement::finish() {
    take();
    const auto at_end = counters();
    const auto info = pf_.info();
    Figures figures;
    figures.switches = info.switches - switches_at_start_;
    figures.switch_p50_ns = info.switch_p50_ns;
    figures.switch_p99_ns = info.switch_p99_ns;
    figures.events_lost = events_.lost();
    figures.idles = idles_;
    figures.host_stall_ns = stalls_->worst_ns();
    stalls_.reset();
    figures.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    double instructions = 0, rounds = 0;
    for (const auto& [vf, counters] : at_end) {
        instructions += static_cast<double>(counters.instructions - at_start_[vf].instructions);
        rounds += static_cast<double>(counters.rounds - at_start_[vf].rounds);
    }
    for (const auto& [vf, account] : oracle_.accounts()) {
        VfFigures one;
        one.vf = vf;
        one.weight = account.weight;
        one.share = oracle_.share(vf);
        one.share_error = oracle_.share_error(vf);
        one.lag_quanta =
            static_cast<double>(std::max(account.lag_max_ns, -account.lag_min_ns)) / quantum_ns_;
        one.quanta = account.runs;
        one.service_s = static_cast<double>(account.received_ns) / 1e9;
        const auto& end = at_end.at(vf);
        one.rounds = end.rounds - at_start_[vf].rounds;
        one.instructions_share =
            static_cast<double>(end.instructions - at_start_[vf].instructions) / instructions;
        figures.counts_progress = rounds > 0;
        if (rounds > 0) one.progress_share = static_cast<double>(one.rounds) / rounds;
        figures.longest_run_ns = std::max(figures.longest_run_ns, account.longest_run_ns);
        figures.vfs.push_back(one);
    }
    return figures;
}

std::string Measurement::runs_csv() const {
    std::string text = "vf,start_ns,end_ns\n";
    for (const auto& mark : marks_) text += fmt::format("# {} {}\n", mark.time_ns, mark.text);
    for (const auto& run : runs_)
        text += fmt::format("{},{},{}\n", run.vf, run.start_ns, run.end_ns);
    return text;
}

Timeline Measurement::timeline(const std::string& title, std::int64_t around_ns,
                               std::int64_t before_ns, std::int64_t after_ns) const {
    Timeline picture;
    picture.title = title;
    for (const auto& [vf, weight] : weights_)
        picture.lanes[vf] = fmt::format("VF{}  weight {}", vf, weight);
    for (const auto& run : runs_)
        if (run.start_ns >= around_ns - before_ns && run.end_ns <= around_ns + after_ns)
            picture.runs.push_back(run);
    for (const auto& mark : marks_)
        if (mark.time_ns >= around_ns - before_ns && mark.time_ns <= around_ns + after_ns)
            picture.marks.push_back(mark);
    return picture;
}

}  // namespace vgpu::demo
