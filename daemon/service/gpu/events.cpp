// SPDX-License-Identifier: MIT
//
// GpuModel: handles the events of the PF core, reads the GPU and its VFs, and installs run tables.
#include "daemon/service/gpu/gpu.h"
#include "daemon/service/vf/shares.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace vgpu::daemon {

namespace {

/// An event of the PF core that administrators see. In the text, {0} is the name of the reason or
/// of the guard limit (name_in()), {1} is event.arg, and {2} is event.arg2.
struct EventText {
    vgpu_pf_event_type type;
    EventKind kind;
    std::string_view text;
};

constexpr std::array kEventTexts{
    EventText{VGPU_PF_EVENT_HANG, EventKind::Hang,
              "does not give up the engine ({0}); it will be reset"},
    EventText{VGPU_PF_EVENT_RESET_DONE, EventKind::ResetDone, "was reset ({0})"},
    EventText{VGPU_PF_EVENT_GUARD, EventKind::Guard, "exceeded the guard limit '{0}', level {2}"},
    EventText{VGPU_PF_EVENT_GUEST_ERROR, EventKind::GuestError,
              "the guest driver reports {1:#x} {2:#x}"},
    EventText{VGPU_PF_EVENT_UNREPORTED, EventKind::GuestError,
              "its guest caused {1} more errors, resets or log lines within a minute"},
    EventText{VGPU_PF_EVENT_DEVICE_RESET, EventKind::DeviceReset,
              "the whole GPU is being reset (reset {1} since the PF driver started)"},
};

/// True for a GUARD event with level 0: the guest is within its limits again. Such an event names
/// no limit.
bool is_relaxed(const vgpu_pf_event& event) {
    return event.type == VGPU_PF_EVENT_GUARD && event.arg2 == 0;
}

/// The name of the guard limit (GUARD), or of the reason (other events), in event.arg.
std::string name_in(const vgpu_pf_event& event) {
    if (event.type != VGPU_PF_EVENT_GUARD)
        return std::string(reason_name(static_cast<std::uint32_t>(event.arg)));
    return event.arg < kGuardKinds.size() ? std::string(kGuardKinds[event.arg])
                                          : std::to_string(event.arg);
}

/// True if the run table includes a VF in this state. A VF that is being reset stays in the table,
/// because the table would otherwise be replaced twice, before and after the reset.
bool may_compete(std::uint32_t state) {
    constexpr std::array kCompeting{VGPU_PF_VF_PROVISIONED, VGPU_PF_VF_READY, VGPU_PF_VF_RUNNING,
                                    VGPU_PF_VF_RESETTING};
    return std::find(kCompeting.begin(), kCompeting.end(), state) != kCompeting.end();
}

/// True if the STATE event is a change from READY to RUNNING or back. The VF then need not be read
/// again. Our PF core pushes no such events, because a RUN event reports the run
/// (pf-driver/core/vf/control.c).
bool is_mere_switch(const vgpu_pf_event& event) {
    const auto is_ready_or_running = [](std::uint64_t state) {
        return state == VGPU_PF_VF_READY || state == VGPU_PF_VF_RUNNING;
    };
    return is_ready_or_running(event.arg) && is_ready_or_running(event.arg2);
}

/// The events that may have VF number 0.
constexpr std::array kEventsOfTheGpu{VGPU_PF_EVENT_POLICY, VGPU_PF_EVENT_TABLE,
                                     VGPU_PF_EVENT_DEVICE_LOST, VGPU_PF_EVENT_DEVICE_BACK,
                                     VGPU_PF_EVENT_DEVICE_RESET};
constexpr std::uint64_t kUsPerMs = 1000;
/// Limit of RUN's duration_ns, 19.5 hours: longer than any run, and short enough that the sum of
/// 100,000 such runs does not overflow.
constexpr std::uint64_t kLongestRunNs = 1ull << 46;
/// Limit of the service of a VF, 4.5 years, so that the sum for 64 VFs does not overflow.
constexpr std::uint64_t kMaxServiceNs = (1ull << 57) - 1;
/// Event times after now + kAhead are reduced to now + kAhead.
constexpr Nanoseconds kAhead = std::chrono::seconds(1);

/// False for an impossible event (GpuModel::kImpossiblePause). Another program writes the ring, so
/// vgpud checks the numbers before use.
bool is_possible(const vgpu_pf_event& event, std::uint32_t total_vfs) {
    const bool is_run_possible =
        event.duration_ns <= kLongestRunNs && event.reserved_ns <= event.duration_ns;
    if (event.type == VGPU_PF_EVENT_RUN && !is_run_possible) return false;
    if (event.vf != 0) return event.vf <= total_vfs;
    return std::any_of(kEventsOfTheGpu.begin(), kEventsOfTheGpu.end(),
                       [&](const vgpu_pf_event_type type) { return type == event.type; });
}

/// The time of the event, but at most kAhead after `now`.
Nanoseconds time_of(const vgpu_pf_event& event, Nanoseconds now) {
    const auto latest = static_cast<std::uint64_t>((now + kAhead).count());
    return Nanoseconds{std::min(event.time_ns, latest)};
}

}  // namespace

void GpuModel::read_events(Nanoseconds now) {
    // Limits the batches, so that a PF core that writes faster than vgpud reads does not delay
    // requests.
    constexpr int kMaxBatches = 16;
    for (int i = 0; i < kMaxBatches && events_; ++i) {
        // before read(), so that an event that arrives after read() does not count as read
        const std::uint64_t end = events_->next_seq();
        const EventBatch batch = events_->read();
        for (const vgpu_pf_event& event : batch.events) on_event(event, now);
        if (batch.lost > 0) on_lost_events(batch.lost);
        if (!batch.events.empty()) continue;
        if (events_) events_read_to_ = end;
        break;
    }
    const std::set<std::uint32_t> dirty = std::move(dirty_);
    dirty_.clear();
    for (const std::uint32_t vf : dirty) refresh(vf);
    if (!dirty.empty()) refresh_members(now);
}

void GpuModel::on_event(const vgpu_pf_event& event, Nanoseconds now) {
    if (!is_possible(event, info_.total_vfs)) return record_impossible(event, now);
    switch (event.type) {
        case VGPU_PF_EVENT_RUN:
            on_run(event, now);
            return;
        case VGPU_PF_EVENT_WAKE:
            on_wake(event, now);
            return;
        case VGPU_PF_EVENT_IDLE:
            if (event.arg == VGPU_PF_IDLE_THROTTLED)
                record_throttled(event.vf, time_of(event, now));
            else if (event.arg == VGPU_PF_IDLE_INACTIVE)
                record_inactive_idle(event.vf, time_of(event, now));
            else
                record_idle(event.vf, time_of(event, now));
            return;
        case VGPU_PF_EVENT_STATE:
            if (is_mere_switch(event) && vfs_.contains(event.vf)) {
                vfs_.at(event.vf).active.state = static_cast<std::uint32_t>(event.arg);
                return;
            }
            break;
        case VGPU_PF_EVENT_POLICY:
            policies_.push_back(event);
            return;
        case VGPU_PF_EVENT_SCRUBBED:
            if (!vfs_.contains(event.vf)) return record_impossible(event, now);
            vfs_.at(event.vf).scrubbed = static_cast<std::uint32_t>(event.arg);
            break;
        case VGPU_PF_EVENT_DEVICE_LOST:
        case VGPU_PF_EVENT_DEVICE_BACK:
            refreshed_at_ = now - kRefresh;
            break;
        default:
            break;
    }
    if (event.vf != 0) dirty_.insert(event.vf);
    record_event(event);
}

void GpuModel::on_run(const vgpu_pf_event& event, Nanoseconds now) {
    const Nanoseconds length{event.duration_ns}, reserved{event.reserved_ns};
    // kAhead: the device's clock may have drifted since read_info() measured its offset.
    const Nanoseconds end = std::clamp(
        Nanoseconds{std::min<std::uint64_t>(event.time_ns, INT64_MAX / 2)} - device_clock_ahead_,
        Nanoseconds::zero(), now + kAhead);
    if (const auto at = vfs_.find(event.vf); at != vfs_.end()) {
        at->second.counted_service_ns += event.duration_ns;
        at->second.counted_reserved_ns += event.reserved_ns;
    }
    schedule_.apply(trace::Ran{
        .end = end, .vf = event.vf, .ns = length.count(), .reserved_ns = reserved.count()});
    waits_.on_run(event.vf, length, end);
}

void GpuModel::record_impossible(const vgpu_pf_event& event, Nanoseconds now) {
    ++impossible_;
    if (now < impossible_at_) return;
    impossible_at_ = now + kImpossiblePause;
    emit(0, EventKind::ImpossibleEvents,
         fmt::format(
             "{} impossible events of vgpu-pf were ignored, the last one: type {}, VF {}, {} ns",
             std::exchange(impossible_, 0), event.type, event.vf, event.duration_ns));
}

/// event.arg: mask of the VFs that got work or tokens, bit n - 1 for VF n. event.vf: the first of
/// these VFs.
void GpuModel::on_wake(const vgpu_pf_event& event, Nanoseconds now) {
    const Nanoseconds at = std::min(time_of(event, now), now);
    record_wake(event.vf, at);
    for (std::uint32_t vf = 1; vf <= info_.total_vfs; ++vf)
        if ((event.arg >> (vf - 1) & 1) != 0) record_wake(vf, at);
}

void GpuModel::record_wake(std::uint32_t vf, Nanoseconds at) {
    schedule_.on_wake(vf, at);
    waits_.on_wake(vf, at);
}

void GpuModel::record_idle(std::uint32_t vf, Nanoseconds at) {
    schedule_.apply(trace::WentIdle{.at = at, .vf = vf, .is_inactive = false});
    waits_.on_idle(vf);
}

void GpuModel::record_inactive_idle(std::uint32_t vf, Nanoseconds at) {
    schedule_.apply(trace::WentIdle{.at = at, .vf = vf, .is_inactive = true});
    waits_.on_inactive_idle(vf, at);
}

/// Reports the VF to waits_ as idle, because a VF that waits for tokens does not wait for the
/// engine.
void GpuModel::record_throttled(std::uint32_t vf, Nanoseconds at) {
    schedule_.apply(trace::Throttled{.at = at, .vf = vf});
    waits_.on_inactive_idle(vf, at);
}

void GpuModel::record_event(const vgpu_pf_event& event) {
    const auto found = std::find_if(kEventTexts.begin(), kEventTexts.end(),
                                    [&](const EventText& row) { return row.type == event.type; });
    if (found == kEventTexts.end()) return;
    const std::string_view text =
        is_relaxed(event) ? "is within its guard limits again" : found->text;
    emit(event.vf, found->kind,
         fmt::format(fmt::runtime(text), name_in(event), event.arg, event.arg2));
}

void GpuModel::handle_policy_events() {
    for (const vgpu_pf_event& policy : std::exchange(policies_, {})) {
        std::vector<std::uint32_t> numbers{policy.vf};
        if (policy.vf == 0) numbers = vfs();
        for (const std::uint32_t vf : numbers) {
            const auto applied = apply_policy(policy, vf);
            const std::string_view file = policy_name(static_cast<std::uint32_t>(policy.arg));
            if (applied)
                emit(vf, EventKind::Policy, fmt::format("{} {}, from sysfs", file, policy.arg2));
            else
                emit(vf, EventKind::PolicyRefused,
                     fmt::format("{} {}, from sysfs: {}", file, policy.arg2,
                                 text_of(applied.error())));
        }
    }
}

Result<> GpuModel::apply_policy(const vgpu_pf_event& policy, std::uint32_t vf) {
    const auto value = [&](std::uint64_t min, std::uint64_t max,
                           std::uint64_t unit) -> Result<std::uint32_t> {
        if (policy.arg2 >= min && policy.arg2 <= max)
            return static_cast<std::uint32_t>(policy.arg2 * unit);
        return fail(ErrorId::OutOfRange, fmt::format("it must be {} to {}", min, max));
    };
    VfChange desired;
    if (policy.arg == VGPU_PF_POLICY_WEIGHT) {
        TRY(desired.to.weight, value(scheduler::kMinWeight, scheduler::kMaxWeight, 1));
        desired.given = {"weight"};
    } else if (policy.arg == VGPU_PF_POLICY_EXEC_QUANTUM_MS) {
        TRY(desired.to.quantum_us, value(0, scheduler::kMaxQuantumUs / kUsPerMs, kUsPerMs));
        desired.given = {"quantum_us"};
    } else {
        return fail(ErrorId::PolicyNotTaken,
                    "while vgpud manages the GPU, sysfs can set only weight and exec_quantum_ms");
    }
    return change(vf, desired);
}

void GpuModel::on_lost_events(std::uint64_t count) {
    events_lost_ += count;
    waits_.on_lost();
    emit(0, EventKind::EventsLost,
         fmt::format("{} events were overwritten; shares are reconciled", count));
    count_missed_service();
    // Lost events may include state changes, so all VFs are read again.
    for (auto& [vf, one] : vfs_) {
        dirty_.insert(vf);
        one.may_be_idle = true;
        one.may_be_scrubbed = true;
    }
}

/// Adds the service in lost events: the PF core's counters minus the service that vgpud has
/// counted. Skips the unread events, because the counters include their service. Skips them before
/// it reads the VFs, so that an event that arrives meanwhile, such as SCRUBBED, is not skipped. A
/// run that ends meanwhile may count twice.
void GpuModel::count_missed_service() {
    if (events_) events_->skip_to_end();
    for (auto& [vf, one] : vfs_) {
        auto active = ask_vf(vf);
        if (!active) return;
        one.active = *std::move(active);
        // Below, min() keeps reserved service within total service even if the counters contradict
        // each other.
        const std::uint64_t service = one.active.service_ns.value_or(0);
        const std::uint64_t reserved = one.active.reserved_ns();
        const std::uint64_t missed = service - std::min(one.counted_service_ns, service);
        const std::uint64_t missed_reserved =
            reserved - std::min(one.counted_reserved_ns, reserved);
        if (missed > 0)
            schedule_.apply(trace::Missed{
                .vf = vf,
                .ns = static_cast<std::int64_t>(missed),
                .reserved_ns = static_cast<std::int64_t>(std::min(missed, missed_reserved))});
        sync_counted_service(one);
    }
}

void GpuModel::finish_scrubs(Nanoseconds now) {
    if (now < record_retry_at_ || ports_.store.is_read_only(id_)) return;
    for (const std::uint32_t vf :
         numbers_where(vfs_, [](const Vf& one) { return one.scrubbed.has_value(); })) {
        Vf& one = vfs_.at(vf);
        const std::uint32_t generation = *one.scrubbed;
        // The event SCRUBBED did not match the VF, or the VF could not be read since its release.
        if (one.active.state != VGPU_PF_VF_SCRUBBING || one.active.generation != generation) {
            one.scrubbed.reset();
            one.may_be_scrubbed = true;
            vgpu_pf_event scrubbed_event{};
            scrubbed_event.type = VGPU_PF_EVENT_SCRUBBED;
            scrubbed_event.vf = vf;
            record_impossible(scrubbed_event, now);
            continue;
        }
        const auto done = finish_scrub(vf, generation);
        if (done) continue;
        // lose() has already reported the loss of the PF core. The record may be on disk, so
        // ScrubNotRecorded could be wrong.
        if (!pf_.is_connected()) return;
        // If the record could not be written, or the PF core refused SCRUB_DURABLE, a later step
        // tries again. Until then the VRAM stays out of use.
        record_retry_at_ = now + kRefresh;
        emit(vf, EventKind::ScrubNotRecorded, done.error().cause);
    }
}

/// Writes the record first, because SCRUB_DURABLE lets the PF core reuse the VRAM. One write
/// records that the scrub has ended and whether the VF will be recreated. If vgpud crashes before
/// SCRUB_DURABLE, the VF is still SCRUBBING, and the next vgpud requests a check that the VRAM is
/// zero (record_scrub()). After a refused SCRUB_DURABLE, the VF may be off the record already.
Result<> GpuModel::finish_scrub(std::uint32_t vf, std::uint32_t generation) {
    GpuRecord record = record_.get();
    record.scrubs[vf] = generation;
    const auto known = record.vfs.find(vf);
    const VfRecord desired = known == record.vfs.end() ? vfs_.at(vf).defined : known->second;
    const bool is_recreated =
        known != record.vfs.end() && action_for(&desired, {.vf = vf}) != VfAction::Forget;
    if (!is_recreated) record.vfs.erase(vf);
    TRY_VOID(commit(record));
    TRY_VOID(pf_.ask(&Backend::confirm_scrub, vf, generation));
    vfs_.at(vf).scrubbed.reset();
    make_refresh_due();
    restore_at_ = Nanoseconds{0};
    if (is_recreated) {
        reset_vf(desired);
        are_members_stale_ = true;
        return recreate(desired);
    }
    reset_assignment_mode(desired);
    emit(vf, EventKind::Released, fmt::format("VF {} is scrubbed and free", vf));
    dirty_.insert(vf);
    return {};
}

void GpuModel::refresh(std::uint32_t vf) {
    if (!pf_.is_connected() || vf == 0 || vf > info_.total_vfs) return;
    static_cast<void>(read_vf(vf));
}

Result<VfFacts> GpuModel::ask_vf(std::uint32_t vf) {
    TRY(VfFacts active, pf_.ask(&Backend::get_vf, vf));
    active.vf = vf;
    if (active.service_ns) active.service_ns = std::min(*active.service_ns, kMaxServiceNs);
    if (active.core)
        active.core->reserved_service_ns =
            std::min(active.reserved_ns(), active.service_ns.value_or(0));
    return active;
}

void GpuModel::record_scrub(Vf& one) {
    const VfFacts& active = one.active;
    one.may_be_scrubbed = false;
    if (active.state != VGPU_PF_VF_SCRUBBING || one.scrubbed == active.generation) return;
    if (pf_.ask(&Backend::check_scrubbed, active.vf, active.generation))
        one.scrubbed = active.generation;
    else
        one.may_be_scrubbed = true;
}

Result<> GpuModel::read_vf(std::uint32_t vf) {
    auto active = ask_vf(vf);
    if (!active) return tl::make_unexpected(active.error());
    if (active->state == VGPU_PF_VF_ABSENT) {
        record_absent(*active);
        return {};
    }
    const auto [at, is_new] = vfs_.try_emplace(vf);
    Vf& one = at->second;
    one.active = *std::move(active);
    one.client.reset();  // the VF may have another client now
    if (is_new) {
        one.defined = record_for(one.active, record_.get());
        sync_counted_service(one);
    }
    const bool may_be_idle = std::exchange(one.may_be_idle, false);
    if (!events_ || is_new || one.may_be_scrubbed) record_scrub(one);
    if (one.active.has_work())
        schedule_.on_wake(vf, ports_.clock.now());
    else if (may_be_idle)
        record_inactive_idle(vf, ports_.clock.now());
    return {};
}

Result<> GpuModel::check_gpu() {
    if (const auto read = read_info(); !read)
        return fail(read.error().id, fmt::format("{}: {}", id_, read.error().cause));
    notice_device_state();
    return {};
}

void GpuModel::refresh_all(Nanoseconds now) {
    if (!pf_.is_connected() || now - refreshed_at_ < kRefresh) return;
    refreshed_at_ = now;
    if (const auto checked = check_gpu(); !checked) {
        if (checked.error().id == ErrorId::DriverBusy) message_ = checked.error().cause;
        return;
    }
    checked_at_ = now;
    check_assignment_modes();
    for (const auto& [vf, one] : vfs_) dirty_.insert(vf);
}

void GpuModel::refresh(Freshness desired) {
    const Nanoseconds now = ports_.clock.now();
    if (!pf_.is_connected() || now - refreshed_at_ < kFreshness) return;
    // Without events, vgpud notices the changes of a VF only by reading the VF.
    if (!events_) desired = Freshness::Counters;
    if (desired == Freshness::Gpu) static_cast<void>(check_gpu());
    if (desired != Freshness::Counters) return;
    refreshed_at_ = now - kRefresh;
    refresh_all(now);
    read_events(now);
}

/// Reads the GPU after the VF, to notice a device that was lost before the VF was read.
Result<> GpuModel::refresh_now(std::uint32_t vf) {
    TRY_VOID(check_in_reach());
    TRY_VOID(check_known(vf));
    TRY_VOID(read_vf(vf));
    TRY_VOID(check_gpu());
    TRY_VOID(check_in_reach());
    return check_known(vf);
}

/// Makes the next step read GPU and VFs again.
void GpuModel::make_refresh_due() {
    refreshed_at_ = ports_.clock.now() - kRefresh;
}

void GpuModel::refresh_members(Nanoseconds now) {
    are_members_stale_ = false;
    const GpuSettings settings = record_.settings();
    std::vector<GpuSchedule::Member> members;
    for (const auto& [vf, one] : vfs_)
        if (may_compete(one.active.state) && !one.defined.is_releasing)
            members.push_back(GpuSchedule::member_of(vf, one.defined.spec, settings.quantum_us));
    if (abilities_->has_run_tables) {
        mark_formerly_strict(members);
        schedule_.set_members(members, settings.max_gap_ms, now);
        return;
    }
    std::vector<VfShare> shares;
    for (const GpuSchedule::Member& member : members)
        shares.push_back(
            share_of(*abilities_, settings, member.vf, vfs_.at(member.vf).defined.spec));
    are_shares_due_ = are_shares_due_ || shares != shares_;
    shares_ = std::move(shares);
}

/// The schedule ignores the IDLE event of a strict VF, and the PF core does not repeat the event
/// when the VF stops being strict. So this function marks each VF that has stopped being strict, to
/// be read again.
void GpuModel::mark_formerly_strict(const std::vector<GpuSchedule::Member>& members) {
    for (const GpuSchedule::Member& member : members) {
        const bool is_strict = member.qos.mode == scheduler::SlotMode::Strict;
        if (is_strict || !schedule_->is_strict(member.vf)) continue;
        vfs_.at(member.vf).may_be_idle = true;
        dirty_.insert(member.vf);
    }
}

bool GpuModel::may_plan() const {
    return pf_.is_connected() && !ports_.store.is_read_only(id_) && state_ == GpuState::Ok;
}

/// Reads the generation of the table in force each time, because another program may have set a
/// table while no client held the lease. After a refusal the next attempt is delayed
/// (GpuSchedule::refused()).
void GpuModel::install_table(Nanoseconds now) {
    if (!may_plan()) return;
    if (!abilities_->has_run_tables) return set_shares();
    if (!schedule_->needs_table(now)) return;
    auto in_force = pf_.ask(&Backend::get_run_table);
    if (!in_force) {
        // without a delay, the GPU's thread would ask again at once
        schedule_.apply(trace::TableRefused{.at = now});
        return;
    }
    auto table = schedule_.make_table(in_force->generation + 1, now);
    const auto set = table ? pf_.ask(&Backend::set_run_table, *table)
                           : Result<>(tl::make_unexpected(table.error()));
    if (set) {
        schedule_.apply(trace::TableInstalled{.at = now});
        table_ = std::make_shared<const vgpu_pf_run_table>(*table);
    } else {
        schedule_.apply(trace::TableRefused{.at = now});
    }
    record_table_condition(set ? "" : set.error().cause);
}

/// If the driver refuses the shares, the next step sets them again.
void GpuModel::set_shares() {
    constexpr std::array kShares{Change::Weight, Change::QuantumUs, Change::PreemptTimeoutMs};
    const bool can_any = std::ranges::any_of(
        kShares, [this](const Change change) { return abilities_->can(change); });
    if (!are_shares_due_ || !can_any) return;
    const auto set = pf_.ask(&Backend::set_shares, std::span<const VfShare>(shares_));
    are_shares_due_ = !set;
    record_table_condition(set ? "" : set.error().cause);
}

void GpuModel::report_notices() {
    for (BackendNotice& notice : pf_.take_notices())
        emit(notice.vf,
             notice.kind == NoticeKind::DriverChanged ? EventKind::DriverChanged
                                                      : EventKind::VfCountChanged,
             std::move(notice.text));
}

/// Emits an event only when a new condition begins.
void GpuModel::record_table_condition(std::string condition) {
    if (condition == table_condition_) return;
    table_condition_ = std::move(condition);
    if (!table_condition_.empty()) emit(0, EventKind::TableRefused, table_condition_);
}

}  // namespace vgpu::daemon
