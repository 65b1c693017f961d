// SPDX-License-Identifier: MIT
#include "tests/scenario/demo/show.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

#include "tests/scenario/demo/figures_table.h"

namespace vgpu::demo {
namespace {

using namespace test;

constexpr std::array<std::uint64_t, 4> kWeights{1, 1, 2, 4};
constexpr std::uint64_t kVramMb = 48;
constexpr std::uint32_t kAttacker = 1, kEndless = 2, kHanging = 3, kReleased = 4;
constexpr double kShareTolerance = 0.01;
constexpr double kCrossCheckTolerance = 0.10;
constexpr milliseconds kStepTimeout{60000};
constexpr std::int64_t kMs = 1'000'000;

void headline(const std::string& text) {
    fmt::print("\n== {}\n", text);
    std::fflush(stdout);
}

}  // namespace

Show::Show(ShowOptions options)
    : options_(std::move(options)), host_(dir_, options_.host), pf_(host_.uapi_socket()) {}

int Show::run() {
    create_vfs();
    start_guests();
    share_the_gpu();
    attack_neighbours();
    run_endless_kernel();
    hang_one();
    unassign_one();
    decide_again();
    finish();
    return checks_.failed();
}

void Show::create_vfs() {
    headline("vgpuctl gives four VFs of one GPU the weights 1:1:2:4");
    for (std::uint32_t vf = 1; vf <= kWeights.size(); ++vf) {
        auto& guest = guests_[vf];
        guest.weight = kWeights.at(vf - 1);
        guest.name = fmt::format("demo{}", vf);
        const auto made =
            host_.ctl_json({"create", "--gpu", "gpu0", "--name", guest.name, "--vram",
                            fmt::format("{}M", kVramMb), "--weight", std::to_string(guest.weight)});
        if (made.at("vf").at("index") != vf)
            throw VfError(fmt::format("VF{} expected, not {}", vf, made.dump()));
    }
    fmt::print("{}", host_.ctl({"list"}));
}

void Show::start_guests() {
    headline("four guest processes load their driver and compute real gfx900 programs");
    follow_from_now();
    for (auto& [vf, guest] : guests_)
        guest.process.emplace(ChildProcess::Spec{guest.name,
                                                 {options_.self, "--guest", host_.vf_socket(vf),
                                                  "--report", std::to_string(guest.report.fd())},
                                                 host_.file(guest.name + ".log")});
    measurement_->follow(
        "every VF to compute",
        [&] {
            check_guests_alive();
            return std::ranges::all_of(
                guests_, [](const auto& each) { return each.second.report->rounds > 0; });
        },
        kStepTimeout);
    fmt::print("  all four have booted and finished a first round\n");
}

void Show::follow_from_now() {
    std::map<std::uint32_t, std::uint64_t> weights;
    std::map<std::uint32_t, const SharedReport*> reports;
    for (const auto& [vf, guest] : guests_) {
        weights[vf] = guest.weight;
        reports[vf] = &guest.report;
    }
    measurement_.emplace(pf_, weights, reports, options_.host.quantum_us);
}

void Show::share_the_gpu() {
    headline(fmt::format("shares, until the smallest VF has had {} quanta", options_.quanta));
    auto& measurement = *measurement_;
    measurement.begin();
    const auto smallest = [&] {
        check_guests_alive();
        return std::min(measurement.quanta(1), measurement.quanta(2));
    };
    measurement.follow(
        "half of the quanta", [&] { return smallest() >= options_.quanta / 2; }, kStepTimeout);
    const auto killed = monotonic_ns();
    lose_vgpud();
    measurement.follow(
        "all quanta", [&] { return smallest() >= options_.quanta; }, kStepTimeout);
    const auto figures = measurement.finish();
    print_table(figures);
    judge(figures);
    if (!options_.runs.empty()) std::ofstream(options_.runs) << measurement.runs_csv();
    std::ofstream(options_.timeline) << to_svg(measurement.timeline(
        "who ran when: weights 1:1:2:4, vgpud killed in the middle", killed, 200 * kMs, 400 * kMs));
    fmt::print("  timeline: {}\n", options_.timeline);
    measurement_.reset();
}

/// The PF core repeats the last table, so each cycle may move a share by one quantum. Shares are
/// judged over away_ms, because few cycles would mostly show stalls of the host.
void Show::stay_without_vgpud() {
    auto& measurement = *measurement_;
    const auto count = rounds();
    const auto killed = measurement.received_ns();
    const auto until = monotonic_ns() + static_cast<std::int64_t>(options_.away_ms) * kMs;
    const auto is_enough = [&] {
        const bool have_advanced = std::ranges::all_of(guests_, [&](const auto& each) {
            return each.second.report->rounds >= count.at(each.first) + 2;
        });
        return have_advanced && monotonic_ns() >= until;
    };
    measurement.follow("progress without vgpud", is_enough, kStepTimeout);
    checks_.claim(true, "vgpud killed with -9: every VF's progress counter went on", "");
    if (options_.away_ms == 0) return;

    double service = 0, weights = 0, worst = 0;
    for (const auto& [vf, received] : measurement.received_ns()) {
        service += static_cast<double>(received - killed.at(vf));
        weights += static_cast<double>(guests_.at(vf).weight);
    }
    const double quantum_ns = options_.host.quantum_us * 1e3;
    const double cycles = service / (weights * quantum_ns);
    for (const auto& [vf, received] : measurement.received_ns()) {
        const double due = service * static_cast<double>(guests_.at(vf).weight) / weights;
        worst = std::max(worst, std::abs(static_cast<double>(received - killed.at(vf)) - due));
    }
    checks_.claim(worst <= cycles * quantum_ns,
                  "without vgpud no VF moves by more than a quantum per table cycle",
                  fmt::format("{:.2f} quanta in {:.0f} cycles ({:.1f} s)", worst / quantum_ns,
                              cycles, service / 1e9));
}

void Show::lose_vgpud() {
    auto& measurement = *measurement_;
    const auto before = host_.ctl_json({"list"});
    measurement.mark("kill -9 vgpud");
    host_.kill_vgpud();
    stay_without_vgpud();
    measurement.mark("vgpud again");
    host_.start_vgpud();
    const auto after = host_.ctl_json({"list"});
    const auto names = [](const nlohmann::json& list) {
        std::vector<std::string> out;
        for (const auto& vf : list.at("vfs"))
            out.push_back(vf.at("name").get<std::string>() + " " +
                          vf.at("uuid").get<std::string>() + " " + vf.at("weight").dump());
        return out;
    };
    checks_.claim(names(before) == names(after) && names(after).size() == guests_.size(),
                  "a restarted vgpud adopted all of them", fmt::format("{}", names(after).size()));
    const auto pids = [](const nlohmann::json& list) {
        const auto& gpu = list.at("gpus").at(0);
        return fmt::format("{} and {}", gpu.at("softgpu_pid").dump(), gpu.at("pf_pid").dump());
    };
    checks_.claim(pids(before) == pids(after), "softgpu and vgpu-pf were not restarted",
                  "pids " + pids(after));
}

void Show::judge(const Figures& figures) {
    const double stall_s = static_cast<double>(figures.host_stall_ns) / 1e9;
    double worst_lag = 0, worst_error = 0, worst_cross = 0;
    bool are_shares_kept = true;
    for (const auto& one : figures.vfs) {
        worst_lag = std::max(worst_lag, one.lag_quanta);
        worst_error = std::max(worst_error, one.share_error);
        // a slice that became longer just before the end cannot be made up for
        are_shares_kept =
            are_shares_kept && one.share_error <= kShareTolerance + stall_s / one.service_s;
        worst_cross = std::max({worst_cross, std::abs(one.instructions_share / one.share - 1),
                                std::abs(one.progress_share / one.share - 1)});
    }
    const double stall = stall_s * 1e6 / static_cast<double>(options_.host.quantum_us);
    checks_.claim(
        worst_lag <= 1.0 + stall, "every VF within one quantum of its ideal service, always",
        fmt::format("worst {:.2f} quanta (fluid model over the device's run log); this "
                    "machine stood still for {:.2f} quanta at once, in which no schedule can be "
                    "kept",
                    worst_lag, stall));
    checks_.claim(
        are_shares_kept, "shares within 1 %",
        fmt::format("worst {:.2f} % (and what this machine stood still for)", 100 * worst_error));
    checks_.claim(worst_cross <= kCrossCheckTolerance,
                  "retired instructions and the programs' own progress agree",
                  fmt::format("within {:.1f} %", 100 * worst_cross));
    checks_.claim(figures.idles == 0 && figures.events_lost == 0,
                  "the load never ran dry and no event was lost",
                  fmt::format("{} idles, {} lost", figures.idles, figures.events_lost));
    checks_.claim(wrong_results() == 0, "all results bit-exact", [&] {
        std::uint64_t runs = 0;
        for (const auto& [vf, guest] : guests_) runs += guest.report->runs;
        return fmt::format("{} programs run", runs);
    }());
}

void Show::attack_neighbours() {
    headline("VF1 tries to read a neighbour's VRAM: by a kernel, by SDMA, by BAR0");
    auto& report = guests_.at(kAttacker).report;
    report->order = GuestOrder::Attack;
    wait_for("the attacks", kStepTimeout, [&] {
        check_guests_alive();
        return report->attacks_stopped + report->attacks_through == 3;
    });
    checks_.claim(report->attacks_through == 0, "every attempt was stopped",
                  fmt::format("{} of 3; {} memory faults answered to VF1",
                              report->attacks_stopped.load(), pf_.vf(kAttacker).faults));
    checks_.claim(pf_.vf(kAttacker).faults >= 2 && pf_.vf(2).faults + pf_.vf(4).faults == 0,
                  "the faults are VF1's alone", "");
    wait_rounds("the neighbours' programs", {2, 3, 4});
    checks_.claim(wrong_results() == 0, "neighbours intact", "their results are bit-exact");
}

void Show::run_endless_kernel() {
    headline("VF2 runs a kernel that never ends");
    auto& report = guests_.at(kEndless).report;
    report->order = GuestOrder::Endless;
    wait_for("the endless kernel", kStepTimeout, [&] {
        check_guests_alive();
        return report->state == GuestState::Endless && report->endless_count > 0;
    });
    const auto service = [&] {
        std::map<std::uint32_t, std::uint64_t> ns;
        for (const auto& [vf, guest] : guests_) ns[vf] = pf_.vf(vf).service_ns;
        return ns;
    };
    const auto before = service();
    const auto count = report->endless_count.load();
    constexpr std::uint64_t kService = 300 * kMs;
    wait_for("0.3 s of service", kStepTimeout,
             [&] { return pf_.vf(kEndless).service_ns - before.at(kEndless) > kService; });
    const auto after = service();
    double total = 0;
    for (const auto& [vf, ns] : after) total += static_cast<double>(ns - before.at(vf));
    const auto share = static_cast<double>(after.at(kEndless) - before.at(kEndless)) / total;
    checks_.claim(std::abs(share - 1.0 / 8) < 0.02, "it keeps its share and no more",
                  fmt::format("{:.1f} % of the service, 12.5 % due", 100 * share));
    checks_.claim(report->endless_count > count && pf_.vf(kEndless).flrs == 0,
                  "it was pre-empted, not reset", "");
    report->order = GuestOrder::Compute;
    wait_rounds("VF2 to compute again", {kEndless});
}

void Show::hang_one() {
    headline("VF3 hangs by a fault that is injected into the device");
    std::uint64_t others = 0;
    for (const auto& [vf, guest] : guests_) others += vf == kHanging ? 0 : pf_.vf(vf).flrs;
    auto events = pf_.events();
    control_request(
        host_.control_socket(),
        {{"inject", {{"vf", kHanging}, {"point", "save"}, {"effect", "lost"}, {"count", 1}}}});
    events.wait(
        [](const auto& event) { return event.type == VGPU_PF_EVENT_HANG && event.vf == kHanging; },
        kStepTimeout);
    wait_for("VF3 to be reset", kStepTimeout, [&] { return pf_.vf(kHanging).flrs >= 1; });
    guests_.at(kHanging).process.reset();
    guests_.at(kHanging).report->state = GuestState::Done;
    wait_rounds("the neighbours to finish", {1, 2, 4});
    std::uint64_t now = 0;
    for (const auto& [vf, guest] : guests_) now += vf == kHanging ? 0 : pf_.vf(vf).flrs;
    checks_.claim(now == others && pf_.info().device_resets == 0,
                  "VF3 was reset alone, the neighbours finished their programs", "");
    const auto log = host_.log_of("softgpu");
    const auto at = log.find("injected");
    const auto line = at == std::string::npos ? 0 : log.rfind('\n', at) + 1;
    checks_.claim(at != std::string::npos, "the device says that the fault was injected",
                  log.substr(line, log.find('\n', line) - line));
}

void Show::decide_again() {
    headline("what vgpud decided is decided again, from its recording");
    const std::string file = host_.file("gpu0.trace");
    fmt::print("  {}", host_.ctl({"trace", "record", file}));
    const auto replayed = host_.ctl_json({"trace", "replay", file});
    checks_.claim(replayed.at("different") == 0 && replayed.at("tables") > 0,
                  "the same scheduler told the same decides the same",
                  fmt::format("{} events, {} run tables", replayed.at("events").dump(),
                              replayed.at("tables").dump()));
}

void Show::unassign_one() {
    headline("VF4 is released");
    auto& guest = guests_.at(kReleased);
    guest.report->order = GuestOrder::Finish;
    guest.process->wait_exit(kStepTimeout);
    host_.ctl({"destroy", "gpu0/vf4"});
    checks_.claim(pf_.is_zero(kReleased), "after the release every byte of it reads zero",
                  "verified by the device");
    checks_.claim(pf_.vf(kReleased).state == VGPU_PF_VF_ABSENT, "the VF is absent", "");
    fmt::print("{}", host_.ctl({"list"}));
}

void Show::finish() {
    for (const auto vf : {kAttacker, kEndless}) {
        guests_.at(vf).report->order = GuestOrder::Finish;
        guests_.at(vf).process->wait_exit(kStepTimeout);
    }
    checks_.claim(wrong_results() == 0, "at the end: all results of all programs bit-exact", "");
}

std::map<std::uint32_t, std::uint64_t> Show::rounds() const {
    std::map<std::uint32_t, std::uint64_t> out;
    for (const auto& [vf, guest] : guests_) out[vf] = guest.report->rounds;
    return out;
}

void Show::wait_rounds(const std::string& what, const std::vector<std::uint32_t>& vfs) {
    const auto before = rounds();
    wait_for(what, kStepTimeout, [&] {
        check_guests_alive();
        return std::ranges::all_of(
            vfs, [&](auto vf) { return guests_.at(vf).report->rounds >= before.at(vf) + 2; });
    });
}

void Show::check_guests_alive() const {
    for (const auto& [vf, guest] : guests_)
        if (guest.report->state == GuestState::Failed)
            throw VfError(fmt::format("guest of VF{}: {}", vf, guest.report->text.data()));
}

std::uint64_t Show::wrong_results() const {
    std::uint64_t wrong = 0;
    for (const auto& [vf, guest] : guests_) wrong += guest.report->wrong;
    return wrong;
}

}  // namespace vgpu::demo
