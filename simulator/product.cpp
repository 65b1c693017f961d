// SPDX-License-Identifier: MIT
#include "simulator/product.h"

#include "daemon/service/gpu.h"
#include "pf-driver/hw/mailbox.h"
#include "simulator/virtual_pf.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace vgpu::simulator {

using daemon::ErrorId;
using daemon::fail;
using daemon::Result;

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::uint32_t kVramMb = 1024;
constexpr std::uint64_t kVfBytes = 32u << 20;
constexpr std::int64_t kNsPerUs = 1'000;
constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::uint32_t kSwitchSteps = 4;
/// After that long in an overrun the PF core resets the VF, which is not simulated.
constexpr std::int64_t kLongestOverrunNs = 400 * kNsPerMs;
constexpr std::int64_t kSettleNs = 1500 * kNsPerMs;

/// A state file that nobody reads again.
class Memory final : public daemon::StatePort {
public:
    Result<std::optional<std::string>> read(daemon::StateFile) override { return std::nullopt; }
    Result<> replace(daemon::StateFile, std::string_view) override { return {}; }
    Result<> append(std::uint64_t, std::string_view) override { return {}; }
    Result<> cut(std::uint64_t) override { return {}; }
    [[nodiscard]] std::string where(daemon::StateFile) const override { return "memory"; }
};

daemon::GpuConfig gpu_config() {
    daemon::GpuConfig config;
    config.id = "gpu0";
    config.max_gap_ms = daemon::kMaxGapMs;  // each VF has a gap of its own
    return config;
}

ModelGpu::Options device_options() {
    return {.total_vfs = kProductVfs, .vram_mb = kVramMb, .aperture_mb = 256, .cu_count = 8};
}

daemon::VfQos qos_of(const daemon::scheduler::Contract& contract) {
    daemon::VfQos qos;
    qos.min_pct = contract.min_pct;
    qos.max_pct = contract.max_pct;
    qos.burst_ms = contract.burst_ms;
    qos.latency_ms = contract.latency_ms;
    qos.max_gap_ms = contract.max_gap_ms;
    qos.mode = contract.mode;
    qos.band = contract.band;
    return qos;
}

class ProductRun {
public:
    ProductRun(const Simulation& setup, Witness* witness, const VgpudModel& vgpud);

    Result<Figures> run();

private:
    struct Vf {
        std::uint32_t number = 0;  ///< on the device; 0: none
        std::deque<Job> jobs{};
        std::int64_t waits_since_ns = 0;
        bool is_held_back = false;
        std::uint32_t weight = 0;  ///< as the witness knows it
        std::uint64_t life = 0;
    };

    [[nodiscard]] std::int64_t now() const {
        return static_cast<std::int64_t>(pf_.gpu.now()) - begin_ns_;
    }
    void settle();
    void go_on();
    [[nodiscard]] std::int64_t vgpud_acts_at() const;
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] std::int64_t next_ns() const;
    void pass_to(std::int64_t at_ns);
    void pass_one_event();
    void account();
    void serve(std::uint32_t index, std::int64_t ns);
    void complete_job(std::uint32_t index, std::int64_t at_ns);
    void start(std::uint32_t number);
    void end();
    void step_vgpud();
    Result<> deliver();
    Result<> deliver_change(const Change& change);
    void arrive(const Arrival& arrival);
    Result<> join(std::uint32_t index, std::uint32_t weight);
    Result<> load_driver(std::uint32_t number);
    Result<> leave(std::uint32_t index);
    void note_table(std::uint64_t generation);
    void note_weights();
    void note_held_back();
    [[nodiscard]] std::uint64_t overrun(std::uint32_t number);
    [[nodiscard]] bool is_reserved() const;
    [[nodiscard]] bool somebody_waits() const;
    [[nodiscard]] bool is_backlogged(std::uint32_t index) const {
        return setup_.vfs[index - 1].work.arrivals == Arrivals::Backlogged;
    }
    [[nodiscard]] std::uint32_t index_of(std::uint32_t number) const;

    const Simulation& setup_;
    Witness* witness_;
    VgpudModel vgpud_model_;
    Dice dice_;
    VirtualPf pf_;
    ModelClock clock_;
    Memory memory_;
    daemon::StateStore store_;
    daemon::GpuModel vgpud_;
    std::vector<Vf> vfs_;  ///< by place in the setup; 0 unused
    ArrivalQueue arrivals_;
    std::size_t next_change_ = 0;
    std::int64_t begin_ns_ = 0;
    std::int64_t accounted_ns_ = 0;
    std::uint32_t running_ = 0;          ///< place in the setup of the VF that runs
    std::int64_t hears_at_ns_ = kNever;  ///< when vgpud looks at the events there are
    std::uint64_t heard_ = 0;            ///< notifications
    bool has_begun_ = false;
    std::map<std::uint64_t, std::vector<std::uint32_t>> weights_;  ///< by generation and place
    std::uint64_t generation_ = 0;                                 ///< of the table in force
    Figures figures_;
};

ProductRun::ProductRun(const Simulation& setup, Witness* witness, const VgpudModel& vgpud)
    : setup_(setup),
      witness_(witness),
      vgpud_model_(vgpud),
      dice_(setup.seed),
      pf_(device_options()),
      clock_(pf_.gpu),
      store_(memory_),
      vgpud_(gpu_config(), {},
             {.pf = pf_.port(), .companions = nullptr, .store = store_, .clock = clock_}),
      vfs_(setup.vfs.size() + 1) {
    figures_.vfs.resize(vfs_.size());
    store_.load();
    const std::int64_t switch_ns = setup.device.switch_ns + setup.device.decision_ns;
    pf_.gpu.step_ns = static_cast<std::uint64_t>(switch_ns) / kSwitchSteps;
    pf_.gpu.overruns_hold = true;
    pf_.gpu.overrun = [this](std::uint32_t number) { return overrun(number); };
    pf_.gpu.on_start = [this](std::uint32_t number) { start(number); };
    pf_.gpu.on_run = [this](const vgpu_hw_run_log_entry&) { end(); };
    pf_.wait = [this] { pass_one_event(); };
    pf_.on_table = [this](std::uint64_t generation) { note_table(generation); };
}

Result<Figures> ProductRun::run() {
    vgpud_.step();
    if (!vgpud_.is_connected()) return fail(ErrorId::PfLost, "vgpud does not reach the PF core");
    begin_ns_ = static_cast<std::int64_t>(pf_.gpu.now());
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (!setup_.vfs[i - 1].joins_later) TRY_VOID(join(i, setup_.vfs[i - 1].policy.weight));
    settle();
    const std::uint64_t switches = pf_.gpu.total_switches();
    has_begun_ = true;
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (vfs_[i].number != 0)
            arrivals_.begin(setup_.vfs[i - 1].work, {0, i, vfs_[i].life}, dice_);
    while (!is_over()) {
        TRY_VOID(deliver());
        go_on();
    }
    account();
    figures_.elapsed_ns = now();
    figures_.switches = pf_.gpu.total_switches() - switches;
    if (witness_) {
        TRY(const daemon::trace::Piece piece, vgpud_.trace({}));
        witness_->recorded(piece.bytes);
    }
    return std::move(figures_);
}

/// vgpud has planned for the VFs there are when they get their first work.
void ProductRun::settle() {
    while (now() < kSettleNs) go_on();
    begin_ns_ = static_cast<std::int64_t>(pf_.gpu.now());
    accounted_ns_ = 0;
    if (hears_at_ns_ != kNever) hears_at_ns_ = 0;
}

void ProductRun::go_on() {
    if (vgpud_acts_at() <= now()) step_vgpud();
    pass_to(next_ns());
}

bool ProductRun::is_over() const {
    if (setup_.max_runs > 0 && figures_.runs >= setup_.max_runs) return true;
    return setup_.duration_ns > 0 && now() >= setup_.duration_ns;
}

std::int64_t ProductRun::vgpud_acts_at() const {
    const std::int64_t at_ns = std::min(hears_at_ns_, vgpud_.wake_at().count() - begin_ns_);
    const bool is_stopped = has_begun_ && std::max(at_ns, now()) >= vgpud_model_.stops_at_ns;
    return is_stopped ? std::max(at_ns, vgpud_model_.continues_at_ns) : at_ns;
}

/// When something happens next, at least a nanosecond from now.
std::int64_t ProductRun::next_ns() const {
    std::int64_t next = std::min(arrivals_.next_ns(), vgpud_acts_at());
    if (has_begun_ && next_change_ < setup_.changes.size())
        next = std::min(next, setup_.changes[next_change_].at_ns);
    if (const std::uint64_t event = pf_.gpu.next_event(); event != kEndless)
        next = std::min(next, static_cast<std::int64_t>(event) - begin_ns_);
    if (has_begun_ && setup_.duration_ns > 0) next = std::min(next, setup_.duration_ns);
    return std::max(next, now() + (arrivals_.next_ns() <= now() ? 0 : 1));
}

/// Device and core go on; the caller looks at what else is due.
void ProductRun::pass_to(std::int64_t at_ns) {
    pf_.gpu.run_until(static_cast<std::uint64_t>(at_ns + begin_ns_));
    account();
    if (has_begun_) {
        note_weights();
        note_held_back();
    }
    if (pf_.gpu.notifications == heard_) return;
    heard_ = pf_.gpu.notifications;
    if (hears_at_ns_ == kNever) hears_at_ns_ = now() + vgpud_model_.plan_delay_ns;
}

/// While vgpud waits for an answer.
void ProductRun::pass_one_event() {
    pass_to(static_cast<std::int64_t>(pf_.gpu.next_event()) - begin_ns_);
}

void ProductRun::step_vgpud() {
    hears_at_ns_ = kNever;
    vgpud_.step();
    vgpud_.take_notices();
}

// --- the engine

bool ProductRun::is_reserved() const {
    const vgpu_pf_executor& executor = pf_.core().executor;
    const std::uint32_t number = vfs_[running_].number;
    const vgpu_run& run = executor.run.vf == number ? executor.run : executor.next;
    return run.vf == number && run.kind == VGPU_RUN_CONTRACT;
}

/// Everything up to now: nothing changed since it was called last.
void ProductRun::account() {
    const std::int64_t ns = now() - accounted_ns_;
    accounted_ns_ = now();
    if (ns <= 0 || !has_begun_) return;
    if (running_ != 0 && !vfs_[running_].jobs.empty()) return serve(running_, ns);
    if (running_ == 0 && pf_.core().executor.state == VGPU_EXECUTOR_SWITCHING) {
        figures_.switching_ns += ns;
        return;
    }
    figures_.idle_ns += ns;
    if (somebody_waits()) figures_.idle_with_work_ns += ns;
}

void ProductRun::serve(std::uint32_t index, std::int64_t ns) {
    VfFigures& figures = figures_.vfs[index];
    Vf& vf = vfs_[index];
    std::int64_t at_ns = now() - ns;
    const bool reserved = is_reserved();
    while (ns > 0 && !vf.jobs.empty()) {
        const std::int64_t part = std::min(ns, vf.jobs.front().left_ns);
        ns -= part;
        at_ns += part;
        figures.service_ns += part;
        figures_.service_ns += part;
        if (reserved) figures.reserved_ns += part;
        if (witness_) witness_->served(index, part, reserved, at_ns);
        if (is_backlogged(index)) continue;
        vf.jobs.front().left_ns -= part;
        if (vf.jobs.front().left_ns == 0) complete_job(index, at_ns);
    }
    figures_.idle_ns += ns;
}

void ProductRun::complete_job(std::uint32_t index, std::int64_t at_ns) {
    Vf& vf = vfs_[index];
    figures_.vfs[index].complete(vf.jobs.front(), setup_.vfs[index - 1].work, at_ns);
    vf.jobs.pop_front();
    if (vf.jobs.empty() && witness_ && !vf.is_held_back) witness_->competes(index, false);
}

void ProductRun::start(std::uint32_t number) {
    account();
    running_ = index_of(number);
    if (running_ == 0 || !has_begun_) return;
    Vf& vf = vfs_[running_];
    VfFigures& figures = figures_.vfs[running_];
    if (!vf.jobs.empty())
        figures.longest_wait_ns = std::max(figures.longest_wait_ns, now() - vf.waits_since_ns);
    ++figures.runs;
    ++figures_.runs;
    if (witness_) witness_->decided();
}

void ProductRun::end() {
    account();
    vfs_[running_].waits_since_ns = now();
    running_ = 0;
}

std::uint64_t ProductRun::overrun(std::uint32_t number) {
    const std::uint32_t index = index_of(number);
    if (!has_begun_ || index == 0 || vfs_[index].jobs.empty()) return 0;
    if (!dice_.chance(setup_.device.overrun_part)) return 0;
    const std::int64_t ns =
        std::min(dice_.exponential(setup_.device.overrun_mean_ns), setup_.device.overrun_max_ns);
    VfFigures& figures = figures_.vfs[index];
    figures.worst_overrun_ns = std::max(figures.worst_overrun_ns, ns);
    if (witness_) witness_->overran(ns);
    return static_cast<std::uint64_t>(ns);
}

bool ProductRun::somebody_waits() const {
    return std::any_of(vfs_.begin(), vfs_.end(),
                       [](const Vf& vf) { return !vf.jobs.empty() && !vf.is_held_back; });
}

std::uint32_t ProductRun::index_of(std::uint32_t number) const {
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (vfs_[i].number == number) return i;
    return 0;
}

// --- operators and guests

Result<> ProductRun::deliver() {
    while (next_change_ < setup_.changes.size() && setup_.changes[next_change_].at_ns <= now())
        TRY_VOID(deliver_change(setup_.changes[next_change_++]));
    while (arrivals_.next_ns() <= now()) arrive(arrivals_.take());
    return {};
}

Result<> ProductRun::deliver_change(const Change& change) {
    Vf& vf = vfs_[change.vf];
    if (change.kind == ChangeKind::Join && vf.number == 0) {
        TRY_VOID(join(change.vf, change.weight));
        arrivals_.begin(setup_.vfs[change.vf - 1].work, {now(), change.vf, vf.life}, dice_);
    }
    if (change.kind == ChangeKind::Leave && vf.number != 0) return leave(change.vf);
    if (change.kind != ChangeKind::Weight || vf.number == 0) return {};
    if (witness_) witness_->wants_weight(change.vf, change.weight);
    daemon::VfChange wanted;
    wanted.weight = change.weight;
    return vgpud_.change(vf.number, wanted);
}

void ProductRun::arrive(const Arrival& arrival) {
    Vf& vf = vfs_[arrival.vf];
    if (vf.number == 0 || vf.life != arrival.life) return;
    const Workload& work = setup_.vfs[arrival.vf - 1].work;
    arrivals_.follow(work, arrival, dice_);
    if (vf.jobs.size() >= Simulator::kMaxJobs) {
        ++figures_.vfs[arrival.vf].dropped;
        return;
    }
    const bool is_endless = is_backlogged(arrival.vf);
    const bool had_work = !vf.jobs.empty();
    vf.jobs.push_back({arrival.at_ns, is_endless ? kNever / 2 : arrival.work_ns});
    if (witness_) witness_->arrived(arrival.vf, vf.jobs.back().left_ns);
    if (!had_work) {
        vf.waits_since_ns = now();
        if (witness_ && !vf.is_held_back) witness_->competes(arrival.vf, true);
    }
    pf_.gpu.give_work(vf.number,
                      is_endless ? kEndless : static_cast<std::uint64_t>(arrival.work_ns));
}

Result<> ProductRun::join(std::uint32_t index, std::uint32_t weight) {
    const VfSetup& setup = setup_.vfs[index - 1];
    Vf& vf = vfs_[index];
    daemon::CreateRequest request;
    request.name = setup.name;
    request.vram_bytes = kVfBytes;
    request.weight = weight;
    request.quantum_us = static_cast<std::uint32_t>(setup.contract.quantum_ms * 1000);
    request.qos = qos_of(setup.contract);
    TRY(vf.number, vgpud_.create(request));
    ++vf.life;
    vf.weight = weight;
    TRY_VOID(load_driver(vf.number));
    if (witness_) witness_->joined(index, weight);
    if (witness_) witness_->wants_weight(index, weight);
    return {};
}

/// A guest's driver comes up: full access for as long as one message takes.
Result<> ProductRun::load_driver(std::uint32_t number) {
    constexpr std::int64_t kPatienceNs = 10'000 * kNsPerMs;
    const std::int64_t limit_ns = now() + kPatienceNs;
    pf_.gpu.guest_sends(number, MAILBOX_REQ_GPU_INIT_ACCESS);
    while (!pf_.gpu.vf(number).to_vf_valid && now() < limit_ns) pass_to(now() + kNsPerUs);
    pf_.gpu.guest_acknowledges(number);
    pf_.gpu.guest_sends(number, MAILBOX_REL_GPU_INIT_ACCESS);
    while (pf_.core().vfs[number].state != VGPU_PF_VF_READY) {
        if (now() >= limit_ns)
            return fail(ErrorId::TimedOut, fmt::format("VF {} gets no full access", number));
        pass_to(now() + kNsPerUs);
    }
    step_vgpud();
    return {};
}

Result<> ProductRun::leave(std::uint32_t index) {
    Vf& vf = vfs_[index];
    account();
    vf.jobs.clear();
    if (witness_) witness_->left(index);
    const std::uint32_t number = std::exchange(vf.number, 0);
    if (running_ == index) running_ = 0;
    vf.is_held_back = false;
    return vgpud_.destroy(number, daemon::Force::Yes);
}

// --- what the witness is told of the side of the policy

void ProductRun::note_table(std::uint64_t generation) {
    std::vector<std::uint32_t> weights(vfs_.size());
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (vfs_[i].number != 0 && vgpud_.has_vf(vfs_[i].number))
            weights[i] = vgpud_.view(vfs_[i].number).record.weight;
    weights_[generation] = std::move(weights);
}

void ProductRun::note_weights() {
    const vgpu_pf_executor& executor = pf_.core().executor;
    const std::uint64_t generation = executor.tables[executor.active].generation;
    if (generation == generation_) return;
    generation_ = generation;
    weights_.erase(weights_.begin(), weights_.lower_bound(generation));
    const auto found = weights_.find(generation);
    if (found == weights_.end()) return;
    for (std::uint32_t i = 1; i < vfs_.size(); ++i) {
        const std::uint32_t weight = found->second[i];
        if (vfs_[i].number == 0 || weight == 0 || weight == vfs_[i].weight) continue;
        vfs_[i].weight = weight;
        if (witness_) witness_->reweighted(i, weight, now());
    }
}

void ProductRun::note_held_back() {
    for (std::uint32_t i = 1; i < vfs_.size(); ++i) {
        Vf& vf = vfs_[i];
        if (vf.number == 0 || pf_.is_capped(vf.number) == vf.is_held_back) continue;
        vf.is_held_back = !vf.is_held_back;
        vf.waits_since_ns = now();
        if (witness_ && !vf.jobs.empty()) witness_->competes(i, !vf.is_held_back);
    }
}

}  // namespace

Result<Figures> run_product(const Simulation& setup, Witness* witness, const VgpudModel& vgpud) {
    if (setup.vfs.size() > kProductVfs)
        return fail(ErrorId::OutOfRange, fmt::format("{} VFs; one GPU shares its engine among {}",
                                                     setup.vfs.size(), kProductVfs));
    if (setup.duration_ns == 0 && setup.max_runs == 0)
        return fail(ErrorId::OutOfRange,
                    "neither a duration nor a number of runs ends the simulation");
    if (setup.device.overrun_part > 0 && setup.device.overrun_max_ns > kLongestOverrunNs)
        return fail(
            ErrorId::OutOfRange,
            fmt::format("overruns of up to {} ms; a VF that does not leave the engine within "
                        "{} ms is reset, which is not simulated",
                        setup.device.overrun_max_ns / kNsPerMs, kLongestOverrunNs / kNsPerMs));
    return ProductRun(setup, witness, vgpud).run();
}

}  // namespace vgpu::simulator
