// SPDX-License-Identifier: MIT
#include "daemon/simulator/product.h"

#include "daemon/service/gpu/gpu.h"
#include "daemon/simulator/gang_round.h"
#include "daemon/simulator/guest_driver.h"
#include "daemon/simulator/product_setup.h"
#include "daemon/simulator/virtual_pf.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace vgpu::simulator {

using daemon::ErrorId;
using daemon::fail;
using daemon::Result;

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kVfBytes = 32u << 20;  ///< VRAM of each VF
constexpr std::int64_t kNsPerUs = 1'000;
constexpr std::uint32_t kSwitchSteps = 4;  ///< a world switch is IDLE, SAVE, LOAD and RUN

/// A StatePort that stores nothing, because a simulated vgpud never restarts.
class EmptyState final : public daemon::StatePort {
public:
    Result<std::vector<std::string>> list() override { return std::vector<std::string>{}; }
    Result<std::optional<std::string>> read(const std::string&) override { return std::nullopt; }
    Result<> replace(const std::string&, std::string_view, const std::string&) override {
        return {};
    }
    Result<> remove(const std::string&, const std::string&) override { return {}; }
    [[nodiscard]] std::string where(const std::string& name) const override { return name; }
};

/// One simulation. `index` is the position of a VF in the setup, from 1; `number` is its number on
/// the device. A VF that leaves and joins again keeps its index, but may get another number.
class ProductRun {
public:
    ProductRun(const Simulation& setup, Observer* observer, const VgpudModel& vgpud);

    Result<Figures> run();

private:
    struct Vf {
        std::uint32_t number = 0;  ///< 0: the VF does not exist now
        std::deque<Job> jobs{};
        std::int64_t waits_since_ns = 0;
        bool is_throttled = false;
        std::uint32_t weight = 0;  ///< last known weight
        /// Number of the VF whose lag account the observer keeps at this index; 0: none yet.
        std::uint32_t account_number = 0;
        bool is_listed = false;  ///< true if a run table has given the VF a share since it joined
        std::uint64_t incarnation = 0;
        std::optional<GuestDriver> driver{};  ///< while the VF exists
        std::int64_t hung_ns = 0;             ///< engine time since the VF began to hang
        bool stays_out = false;               ///< true if the driver must not load after a reset
    };

    [[nodiscard]] std::int64_t now() const {
        return static_cast<std::int64_t>(pf_.gpu.now()) - begin_ns_;
    }
    void warm_up();
    void step();
    [[nodiscard]] std::int64_t vgpud_acts_at() const;
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] std::int64_t next_ns() const;
    void pass_to(std::int64_t at_ns);
    void pass_one_event();
    void account();
    void idle(std::int64_t ns);
    void hang(std::uint32_t index, std::int64_t ns);
    void serve(std::uint32_t index, std::int64_t ns);
    void complete_job(std::uint32_t index, std::int64_t at_ns);
    void start(std::uint32_t number);
    void end();
    void drop_work(std::uint32_t number);
    void step_vgpud();
    Result<> deliver();
    Result<> deliver_change(const Change& change);
    void arrive(const Arrival& arrival);
    void inject_fault(const Arrival& arrival);
    void submit(const Arrival& arrival, std::int64_t work_ns);
    void service_guests();
    Result<> join(std::uint32_t index, std::uint32_t weight);
    void swap_accounts(std::uint32_t index);
    Result<> load_driver(GuestDriver& driver, std::uint32_t number);
    Result<> leave(std::uint32_t index);
    void record_weights();
    void begin_share(std::uint32_t index, std::uint32_t weight);
    void record_throttled();
    void record_competes(std::uint32_t index, bool competes);
    [[nodiscard]] std::uint64_t overrun(std::uint32_t number);
    [[nodiscard]] bool is_reserved() const;
    [[nodiscard]] bool is_any_waiting() const;
    [[nodiscard]] bool keeps_slots(std::uint32_t index) const {
        return policy(index).is_strict || policy(index).is_gang;
    }
    [[nodiscard]] const VfPolicy& policy(std::uint32_t index) const {
        return setup_.vfs[index - 1].policy;
    }
    [[nodiscard]] const Workload& work(std::uint32_t index) const {
        return setup_.vfs[index - 1].work;
    }
    [[nodiscard]] bool is_backlogged(std::uint32_t index) const {
        return work(index).arrivals == Arrivals::Backlogged;
    }
    [[nodiscard]] std::uint32_t index_of(std::uint32_t number) const;

    const Simulation& setup_;
    Observer* observer_;
    VgpudModel vgpud_model_;
    Rng overrun_rng_;
    VirtualPf pf_;
    ModelClock clock_;
    EmptyState state_;
    daemon::StateStore store_;
    daemon::GpuModel vgpud_;
    std::vector<Vf> vfs_;  ///< in the order of the setup, from 1; 0 unused
    ArrivalQueue arrivals_;
    std::size_t next_change_ = 0;
    std::int64_t begin_ns_ = 0;
    std::int64_t accounted_ns_ = 0;
    std::uint32_t running_ = 0;          ///< index of the running VF in vfs_; 0: none
    std::int64_t reads_at_ns_ = kNever;  ///< when vgpud reads events
    std::uint64_t notifications_ = 0;    ///< notifications of the PF core seen so far
    bool has_begun_ = false;
    std::set<std::uint32_t> spare_accounts_;  ///< VF numbers with a spare account
    Figures figures_;
};

ProductRun::ProductRun(const Simulation& setup, Observer* observer, const VgpudModel& vgpud)
    : setup_(setup),
      observer_(observer),
      vgpud_model_(vgpud),
      overrun_rng_(setup.seed),
      pf_(device_options(setup)),
      clock_(pf_.gpu),
      store_(state_, &clock_),
      vgpud_(
          gpu_config(), {},
          {.backend = pf_.port(), .managed_processes = nullptr, .store = store_, .clock = clock_}),
      vfs_(setup.vfs.size() + 1) {
    figures_.vfs.resize(vfs_.size());
    store_.load();
    const std::int64_t switch_ns = setup.device.switch_ns + setup.device.decision_ns;
    pf_.gpu.step_ns = static_cast<std::uint64_t>(switch_ns) / kSwitchSteps;
    pf_.gpu.overruns_hold = true;
    pf_.gpu.overrun = [this](std::uint32_t number) { return overrun(number); };
    pf_.gpu.on_start = [this](std::uint32_t number) { start(number); };
    pf_.gpu.on_run = [this](const vgpu_hw_run_log_entry&) { end(); };
    pf_.gpu.on_reset = [this](std::uint32_t number) { drop_work(number); };
    pf_.wait = [this] { pass_one_event(); };
}

Result<Figures> ProductRun::run() {
    vgpud_.step();
    if (!vgpud_.is_connected()) return fail(ErrorId::PfLost, "vgpud does not reach the PF core");
    begin_ns_ = static_cast<std::int64_t>(pf_.gpu.now());
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (!setup_.vfs[i - 1].joins_later) TRY_VOID(join(i, setup_.vfs[i - 1].policy.weight));
    warm_up();
    const std::uint64_t switches = pf_.gpu.total_switches();
    has_begun_ = true;
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (vfs_[i].number != 0)
            arrivals_.begin(work(i), {.at_ns = 0, .vf = i, .incarnation = vfs_[i].incarnation},
                            setup_.seed);
    while (!is_over()) {
        TRY_VOID(deliver());
        step();
    }
    account();
    figures_.elapsed_ns = now();
    figures_.switches = pf_.gpu.total_switches() - switches;
    if (observer_) {
        TRY(const daemon::trace::Piece piece, vgpud_.trace({}));
        observer_->recorded(piece.bytes);
    }
    return std::move(figures_);
}

/// Lets vgpud plan before the first work arrives. Time 0 of the simulation, at which the slots of
/// gangs with phase 0 begin, is the end of warm_up().
void ProductRun::warm_up() {
    while (now() < kWarmUpNs) step();
    const std::int64_t until_ns = begin_of_round(setup_, now() + begin_ns_) - begin_ns_;
    while (now() < until_ns) {
        if (vgpud_acts_at() <= now()) step_vgpud();
        pass_to(std::min(next_ns(), until_ns));
    }
    begin_ns_ = static_cast<std::int64_t>(pf_.gpu.now());
    accounted_ns_ = 0;
    if (reads_at_ns_ != kNever) reads_at_ns_ = 0;
}

void ProductRun::step() {
    if (vgpud_acts_at() <= now()) step_vgpud();
    pass_to(next_ns());
}

bool ProductRun::is_over() const {
    if (setup_.max_runs > 0 && figures_.runs >= setup_.max_runs) return true;
    return setup_.duration_ns > 0 && now() >= setup_.duration_ns;
}

std::int64_t ProductRun::vgpud_acts_at() const {
    const std::int64_t at_ns = std::min(reads_at_ns_, vgpud_.wake_at().count() - begin_ns_);
    const bool is_stopped = has_begun_ && std::max(at_ns, now()) >= vgpud_model_.stops_at_ns;
    return is_stopped ? std::max(at_ns, vgpud_model_.continues_at_ns) : at_ns;
}

/// Time of the next event. At least a nanosecond after now, unless an arrival is due now.
std::int64_t ProductRun::next_ns() const {
    std::int64_t next = std::min(arrivals_.next_ns(), vgpud_acts_at());
    if (has_begun_ && next_change_ < setup_.changes.size())
        next = std::min(next, setup_.changes[next_change_].at_ns);
    if (const std::uint64_t event = pf_.gpu.next_event(); event != kEndless)
        next = std::min(next, static_cast<std::int64_t>(event) - begin_ns_);
    if (has_begun_ && setup_.duration_ns > 0) next = std::min(next, setup_.duration_ns);
    return std::max(next, now() + (arrivals_.next_ns() <= now() ? 0 : 1));
}

/// Advances device and core to `at_ns`, and reports service, weights and throttling to the
/// observer. Does not run vgpud, and does not deliver arrivals or the changes of the setup.
void ProductRun::pass_to(std::int64_t at_ns) {
    pf_.gpu.run_until(static_cast<std::uint64_t>(at_ns + begin_ns_));
    account();
    if (has_begun_) {
        record_weights();
        record_throttled();
    }
    if (pf_.gpu.notifications == notifications_) return;
    notifications_ = pf_.gpu.notifications;
    if (reads_at_ns_ == kNever) reads_at_ns_ = now() + vgpud_model_.plan_delay_ns;
}

/// Advances time to the next event of the device. Called while vgpud waits for the PF core.
void ProductRun::pass_one_event() {
    pass_to(static_cast<std::int64_t>(pf_.gpu.next_event()) - begin_ns_);
}

void ProductRun::step_vgpud() {
    reads_at_ns_ = kNever;
    vgpud_.step();
    vgpud_.take_admin_events();
    if (has_begun_) record_weights();
}

// --- the engine

bool ProductRun::is_reserved() const {
    return (pf_.engine().reserved >> vfs_[running_].number & 1) != 0;
}

/// Adds the time since the last call to the figures. In this time, running_ did not change.
void ProductRun::account() {
    const std::int64_t ns = now() - accounted_ns_;
    accounted_ns_ = now();
    if (ns <= 0 || !has_begun_) return;
    if (running_ != 0 && pf_.gpu.vf(vfs_[running_].number).hangs) return hang(running_, ns);
    if (running_ != 0 && !vfs_[running_].jobs.empty()) return serve(running_, ns);
    const vgpu_pf_engine_view engine = pf_.engine();
    if (running_ == 0 && engine.is_switching) {
        figures_.switching_ns += ns;
        return;
    }
    if (running_ == 0 && engine.is_broken) {
        figures_.hung_ns += ns;
        return;
    }
    idle(ns);
}

void ProductRun::idle(std::int64_t ns) {
    figures_.idle_ns += ns;
    const bool is_own_slot = running_ != 0 && keeps_slots(running_);
    if (!is_own_slot && is_any_waiting()) figures_.idle_with_work_ns += ns;
}

/// Adds time of a hang to the figures. For the observer, a hang is service by weight.
void ProductRun::hang(std::uint32_t index, std::int64_t ns) {
    vfs_[index].hung_ns += ns;
    figures_.vfs[index].hung_ns += ns;
    figures_.hung_ns += ns;
    if (observer_) observer_->served(index, ns, false, now());
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
        if (observer_) observer_->served(index, part, reserved || !vf.is_listed, at_ns);
        if (is_backlogged(index)) continue;
        vf.jobs.front().left_ns -= part;
        if (vf.jobs.front().left_ns == 0) complete_job(index, at_ns);
    }
    figures_.idle_ns += ns;
}

void ProductRun::complete_job(std::uint32_t index, std::int64_t at_ns) {
    Vf& vf = vfs_[index];
    figures_.vfs[index].complete(vf.jobs.front(), work(index), at_ns);
    vf.jobs.pop_front();
    if (vf.jobs.empty() && !vf.is_throttled) record_competes(index, false);
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
    if (observer_) observer_->decided(0);
}

void ProductRun::end() {
    account();
    vfs_[running_].waits_since_ns = now();
    running_ = 0;
    if (observer_ && has_begun_) observer_->decided(0);
}

/// Drops all work of a VF that was reset, and informs the VF's driver.
void ProductRun::drop_work(std::uint32_t number) {
    const std::uint32_t index = index_of(number);
    if (!has_begun_ || index == 0 || !vfs_[index].driver) return;
    account();
    Vf& vf = vfs_[index];
    VfFigures& figures = figures_.vfs[index];
    // endless jobs do not count as lost
    const auto lost = std::count_if(vf.jobs.begin(), vf.jobs.end(), [](const Job& job) {
        return job.left_ns < Simulator::kEndlessNs / 2;
    });
    figures.lost += static_cast<std::uint64_t>(lost);
    ++figures.resets;
    figures.worst_overrun_ns = std::max(figures.worst_overrun_ns, std::exchange(vf.hung_ns, 0));
    if (!vf.jobs.empty() && !vf.is_throttled) record_competes(index, false);
    vf.jobs.clear();
    vf.driver->on_reset(vf.stays_out);
}

std::uint64_t ProductRun::overrun(std::uint32_t number) {
    const std::uint32_t index = index_of(number);
    if (!has_begun_ || index == 0 || vfs_[index].jobs.empty()) return 0;
    if (!overrun_rng_.chance(setup_.device.overrun_part)) return 0;
    const std::int64_t ns = std::min(overrun_rng_.exponential(setup_.device.overrun_mean_ns),
                                     setup_.device.overrun_max_ns);
    VfFigures& figures = figures_.vfs[index];
    figures.worst_overrun_ns = std::max(figures.worst_overrun_ns, ns);
    return static_cast<std::uint64_t>(ns);
}

bool ProductRun::is_any_waiting() const {
    for (std::uint32_t i = 1; i < vfs_.size(); ++i)
        if (!vfs_[i].jobs.empty() && !vfs_[i].is_throttled && !policy(i).is_gang) return true;
    return false;
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
    service_guests();
    return {};
}

Result<> ProductRun::deliver_change(const Change& change) {
    Vf& vf = vfs_[change.vf];
    if (change.kind == ChangeKind::Join && vf.number == 0) {
        TRY_VOID(join(change.vf, change.weight));
        arrivals_.begin(work(change.vf),
                        {.at_ns = now(), .vf = change.vf, .incarnation = vf.incarnation},
                        setup_.seed);
    }
    if (change.kind == ChangeKind::Leave && vf.number != 0) return leave(change.vf);
    if (change.kind != ChangeKind::Weight || vf.number == 0) return {};
    return vgpud_.change(vf.number, {.to = {.weight = change.weight}, .given = {"weight"}});
}

void ProductRun::arrive(const Arrival& arrival) {
    Vf& vf = vfs_[arrival.vf];
    if (vf.number == 0 || vf.incarnation != arrival.incarnation) return;
    if (arrival.fault.kind != BadKernel::None) return inject_fault(arrival);
    arrivals_.follow(work(arrival.vf), arrival);
    if (!vf.driver->is_loaded()) {
        ++figures_.vfs[arrival.vf].lost;
        return;
    }
    if (vf.jobs.size() >= Simulator::kMaxJobs) {
        ++figures_.vfs[arrival.vf].dropped;
        return;
    }
    submit(arrival, is_backlogged(arrival.vf) ? Simulator::kEndlessNs : arrival.work_ns);
}

/// Submits a kernel without an end and, if the fault is a hang, makes the VF hang. Does nothing
/// while the driver is not loaded.
void ProductRun::inject_fault(const Arrival& arrival) {
    Vf& vf = vfs_[arrival.vf];
    if (!vf.driver->is_loaded()) return;
    account();
    submit(arrival, Simulator::kEndlessNs);
    if (arrival.fault.kind != BadKernel::Hang) return;
    vf.stays_out = arrival.fault.stays_out;
    pf_.gpu.hang(vf.number);
}

void ProductRun::submit(const Arrival& arrival, std::int64_t work_ns) {
    Vf& vf = vfs_[arrival.vf];
    const bool had_work = !vf.jobs.empty();
    vf.jobs.push_back({arrival.at_ns, work_ns});
    if (observer_) observer_->arrived(arrival.vf, work_ns);
    if (!had_work) {
        vf.waits_since_ns = now();
        if (!vf.is_throttled) record_competes(arrival.vf, true);
    }
    pf_.gpu.give_work(vf.number, work_ns == Simulator::kEndlessNs
                                     ? kEndless
                                     : static_cast<std::uint64_t>(work_ns));
}

/// Lets drivers load again after resets. A VF whose work is backlogged gets work again as soon as
/// its driver is loaded; other VFs wait for their next arrival.
void ProductRun::service_guests() {
    for (std::uint32_t i = 1; i < vfs_.size(); ++i) {
        Vf& vf = vfs_[i];
        if (!vf.driver || vf.driver->is_loaded()) continue;
        vf.driver->step();
        if (vf.driver->is_loaded())
            arrivals_.begin_again(work(i),
                                  {.at_ns = now(), .vf = i, .incarnation = vf.incarnation});
    }
}

Result<> ProductRun::join(std::uint32_t index, std::uint32_t weight) {
    const VfSetup& setup = setup_.vfs[index - 1];
    Vf& vf = vfs_[index];
    const auto quantum_us = static_cast<std::uint32_t>(setup.contract.quantum_ms * 1000);
    TRY(vf.number, vgpud_.create({.spec = {.name = setup.name,
                                           .resources = {.vram_bytes = kVfBytes},
                                           .weight = weight,
                                           .quantum_us = quantum_us,
                                           .qos = qos_of(setup)}}));
    vgpud_.step();
    ++vf.incarnation;
    vf.weight = weight;
    vf.driver.emplace(pf_, vf.number);
    vf.is_listed = false;
    swap_accounts(index);
    TRY_VOID(load_driver(*vf.driver, vf.number));
    if (observer_ && policy(index).is_gang) observer_->joined(index, weight);
    return {};
}

/// Called when a VF joins. The PF core keeps the negative lag of each VF number, so a VF takes over
/// the negative lag of the last VF with the same number. The observer has a lag account at each
/// index and, for a number whose account is at no index, a spare account at vfs_.size() + number.
/// This function swaps accounts of the observer, so that the account of the number is at `index`.
void ProductRun::swap_accounts(std::uint32_t index) {
    const std::uint32_t number = vfs_[index].number;
    const std::uint32_t before = std::exchange(vfs_[index].account_number, number);
    if (before == number) return;
    std::uint32_t other = before == 0 ? 0 : static_cast<std::uint32_t>(vfs_.size()) + before;
    if (spare_accounts_.erase(number) > 0) other = static_cast<std::uint32_t>(vfs_.size()) + number;
    for (std::uint32_t i = 1; i < vfs_.size(); ++i) {
        if (i == index || vfs_[i].account_number != number) continue;
        vfs_[i].account_number = before;
        other = i;
    }
    if (other == 0) return;
    if (observer_) observer_->swapped(index, other);
    if (other >= vfs_.size()) {
        const std::uint32_t spare = static_cast<std::uint32_t>(vfs_.size()) + before;
        if (before != 0 && spare != other && observer_) observer_->swapped(other, spare);
        if (before != 0) spare_accounts_.insert(before);
    }
}

Result<> ProductRun::load_driver(GuestDriver& driver, std::uint32_t number) {
    constexpr std::int64_t kTimeoutNs = 10'000'000 * kNsPerUs;
    const std::int64_t limit_ns = now() + kTimeoutNs;
    driver.load();
    for (driver.step(); !driver.is_loaded(); driver.step()) {
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
    if (observer_ && vf.is_listed) observer_->left(index);
    const std::uint32_t number = std::exchange(vf.number, 0);
    if (running_ == index) running_ = 0;
    vf.is_throttled = false;
    vf.driver.reset();
    TRY_VOID(vgpud_.destroy(number, daemon::Force::Yes));
    vgpud_.step();
    return {};
}

// --- reports to the observer

/// Reports to the observer each VF whose weight in force in the PF core has changed.
void ProductRun::record_weights() {
    for (std::uint32_t i = 1; i < vfs_.size(); ++i) {
        Vf& vf = vfs_[i];
        if (vf.number == 0) continue;
        const std::uint32_t weight = pf_.vf(vf.number).weight;
        if (weight == 0) continue;
        if (!vf.is_listed) {
            begin_share(i, weight);
        } else if (vf.weight != weight && observer_) {
            observer_->reweighted(i, weight);
        }
        vf.weight = weight;
    }
}

void ProductRun::begin_share(std::uint32_t index, std::uint32_t weight) {
    Vf& vf = vfs_[index];
    vf.is_listed = true;
    if (observer_) observer_->joined(index, weight);
    if (!vf.jobs.empty() && !vf.is_throttled) record_competes(index, true);
}

void ProductRun::record_throttled() {
    for (std::uint32_t i = 1; i < vfs_.size(); ++i) {
        Vf& vf = vfs_[i];
        if (vf.number == 0 || pf_.vf(vf.number).is_throttled == vf.is_throttled) continue;
        vf.is_throttled = !vf.is_throttled;
        vf.waits_since_ns = now();
        if (!vf.jobs.empty()) record_competes(i, !vf.is_throttled);
    }
}

void ProductRun::record_competes(std::uint32_t index, bool competes) {
    if (!observer_ || policy(index).is_gang || !vfs_[index].is_listed) return;
    if (!competes) return observer_->stops_competing(index, running_ == index && !is_reserved());
    // as between two runs, the observer distributes the forfeited lag before a VF competes
    observer_->decided(0);
    observer_->competes(index);
}

}  // namespace

Result<Figures> run_product(const Simulation& setup, Observer* observer, const VgpudModel& vgpud) {
    if (setup.vfs.size() > kProductVfs)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{} VFs, but one GPU shares its engine among at most {}",
                                setup.vfs.size(), kProductVfs));
    if (setup.duration_ns == 0 && setup.max_runs == 0)
        return fail(ErrorId::OutOfRange,
                    "neither a duration nor a number of runs ends the simulation");
    if (!round_of_slots(setup))
        return fail(ErrorId::OutOfRange,
                    "slots of these gangs never begin at the same time; use one latency_ms for all "
                    "of them");
    return ProductRun(setup, observer, vgpud).run();
}

}  // namespace vgpu::simulator
