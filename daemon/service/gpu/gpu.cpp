// SPDX-License-Identifier: MIT
#include "daemon/service/gpu/gpu.h"

#include "daemon/service/words.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

GpuModel::GpuModel(const GpuConfig& config, GpuPaths paths, Ports ports)
    : id_(config.id),
      config_(config),
      paths_(std::move(paths)),
      ports_(std::move(ports)),
      pf_(std::move(ports_.backend),
          [this](const Error& error) { lose(error, ports_.clock.now()); }),
      record_(ports_.store, id_),
      schedule_(trace_source()) {}

trace::Recorder::Source GpuModel::trace_source() const {
    return {.gpu = id_,
            .names =
                [this] {
                    std::map<std::uint32_t, std::string> names;
                    for (const auto& [vf, one] : vfs_) names[vf] = one.defined.spec.name;
                    return names;
                },
            .unix_time = [this] { return ports_.clock.unix_time().count(); }};
}

void GpuModel::step() {
    const Nanoseconds now = ports_.clock.now();
    for (AdminEvent& due : fold_.take_due(now)) report(std::move(due), now);
    if (ports_.managed_processes && now >= managed_processes_at_) {
        managed_processes_message_ = ports_.managed_processes->step(now);
        managed_processes_at_ = ports_.managed_processes->next_step(now);
    }
    // retry_record() comes before attaching, because it needs no PF core.
    retry_record(now);
    if (pf_.is_connected() && pf_.take_changes()) make_refresh_due();
    if (!pf_.is_connected()) try_attach(now);
    if (!pf_.is_connected()) return;
    read_events(now);
    handle_policy_events();
    finish_scrubs(now);
    refresh_all(now);
    report_notices();
    // refresh_all() may have added VFs to dirty_. Read these VFs now, so that the run table is made
    // from current states.
    if (!dirty_.empty()) read_events(now);
    scrub_released(now);
    retry_scrubs(now);
    restore_missing(now);
    find_orphans(now);
    // change() and change_gpu() leave refresh_members() to step(), so that they answer sooner.
    if (are_members_stale_) refresh_members(now);
    install_table(now);
}

Nanoseconds GpuModel::wake_at() const {
    const Nanoseconds now = ports_.clock.now();
    Nanoseconds at = pf_.is_connected() ? refreshed_at_ + kRefresh : retry_at_;
    if (may_plan() && abilities_->has_run_tables) at = std::min(at, schedule_->next_check(now));
    if (ports_.managed_processes) at = std::min(at, managed_processes_at_);
    if (const auto due = fold_.next_due()) at = std::min(at, *due);
    // Events and refreshes report a client that disconnects. The deadline below is for a client
    // that stays connected.
    for (const auto& [vf, one] : vfs_)
        if (one.released_at && state_ == GpuState::Ok)
            at = std::min(at, std::max(*one.released_at + kDetachTimeout, scrub_begin_at_));
    return at;
}

std::vector<int> GpuModel::wait_fds() const {
    if (!pf_.is_connected()) return {};
    return {pf_.connection_fd(), events_ ? events_->wait_fd() : -1};
}

std::vector<std::uint32_t> GpuModel::vfs() const {
    return numbers_where(vfs_, [](const Vf&) { return true; });
}

std::string GpuModel::socket_of(std::uint32_t vf) const {
    return paths_.vf_socket_dir.empty() ? ""
                                        : fmt::format("{}/vf{}.sock", paths_.vf_socket_dir, vf);
}

std::string GpuModel::client_of(std::uint32_t vf) const {
    const std::string socket = socket_of(vf);
    if (!vfs_.at(vf).active.is_attached || socket.empty() || ports_.owners == nullptr) return "";
    return printable(ports_.owners->client_of(socket));
}

VfView GpuModel::view(std::uint32_t vf) {
    Vf& one = vfs_.at(vf);
    if (!one.client) one.client = client_of(vf);
    VfView view{.gpu = id_, .record = one.defined, .active = one.active, .socket = socket_of(vf)};
    view.client = *one.client;
    view.abilities = abilities_;
    view.service_ns = view.active.service_ns;
    if (abilities_->has_run_tables) {
        view.service_ns = one.counted_service_ns;
        view.timing = timing(vf);
    }
    view.assignment_mode = one.assignment_mode;
    view.lease_expires = ports_.store.leases().wall_time(view.record.owner.expires);
    view.condition = condition(vf);
    if (view.condition.empty()) view.condition = one.assignment_mode_condition;
    if (const auto at = name_clashes_.find(vf); view.condition.empty() && at != name_clashes_.end())
        view.condition = at->second;
    view.orphan = one.orphan;
    return view;
}

/// Part of each snapshot, because only the GPU's thread may read the schedule.
VfTiming GpuModel::timing(std::uint32_t vf) {
    const auto wait = [&](double part) {
        return static_cast<std::uint64_t>(waits_.quantile(vf, part, ports_.clock.now()).count());
    };
    return {.share_window = schedule_->account().share_window(vf),
            .share_total = schedule_->account().share_total(vf),
            .share_ideal = schedule_->ideal_share(vf),
            .lag_ns = schedule_->fluid().lag_ns(vf),
            .lag_quanta = schedule_->lag_quanta(vf),
            .worst_lag_quanta = schedule_->worst_lag_quanta(vf),
            .wait_ns = static_cast<std::uint64_t>(waits_.waited(vf).count()),
            .wait_p50_ns = wait(0.5),
            .wait_p99_ns = wait(0.99),
            .is_throttled = schedule_->is_throttled(vf)};
}

std::string GpuModel::state_text() const {
    if (const std::size_t count = count_vfs_with_problems(); state_ == GpuState::Ok && count > 0)
        return fmt::format(
            "{} of its VFs differ from their definitions; 'vgpuctl doctor' shows which and why",
            count);
    const bool is_complete = state_ == GpuState::Ok || state_ == GpuState::Failed;
    if (is_complete || managed_processes_message_.empty()) return message_;
    return message_ + "; " + managed_processes_message_;
}

GpuView GpuModel::view() {
    const GpuSettings settings = record_.settings();
    const scheduler::Plan& plan = schedule_->plan();
    GpuFacts info = info_;
    if (info.core) info.core->device_time_ns = 0;
    std::optional<TableView> table;
    if (info.abilities.has_run_tables)
        table = {.entries = plan.entries.size(),
                 .cycle_us = plan.cycle_us,
                 .worst_gap_us = plan.worst_gap_us,
                 .is_exact = plan.is_exact};
    return {.id = id_,
            .state = state_,
            .message = state_text(),
            .is_read_only = ports_.store.is_read_only(id_),
            .uapi_socket = paths_.uapi_socket,
            .vf_socket_dir = paths_.vf_socket_dir,
            .softgpu_pid = ports_.managed_processes ? ports_.managed_processes->softgpu_pid() : 0,
            .pf_pid = ports_.managed_processes ? ports_.managed_processes->pf_pid() : 0,
            .quantum_us = settings.quantum_us,
            .max_gap_ms = settings.max_gap_ms,
            .info = std::move(info),
            .table = table,
            .events_lost = abilities_->has_run_tables ? std::optional(events_lost_) : std::nullopt};
}

Result<> GpuModel::commit(const GpuRecord& after) {
    TRY_VOID(record_.commit(after));
    show(after);
    return {};
}

void GpuModel::put(std::uint32_t vf, const GpuRecord& after) {
    if (const auto done = record_.put(after); !done)
        emit(vf, EventKind::RecordLeft, done.error().cause);
    show(after);
}

/// A VF with another UUID than the VF on record keeps the record that record_for() made.
void GpuModel::show(const GpuRecord& record) {
    for (auto& [vf, one] : vfs_) {
        const auto known = record.vfs.find(vf);
        if (known != record.vfs.end() && known->second.spec.uuid == one.defined.spec.uuid)
            one.defined = known->second;
    }
}

VfRecord& GpuModel::record_in(GpuRecord& record, std::uint32_t vf) const {
    return record.vfs.try_emplace(vf, vfs_.at(vf).defined).first->second;
}

void GpuModel::retry_record(Nanoseconds now) {
    if (now >= record_retry_at_ && !record_.retry()) record_retry_at_ = now + kRefresh;
}

std::vector<AdminEvent> GpuModel::take_admin_events() {
    return std::exchange(admin_events_, {});
}

void GpuModel::emit(std::uint32_t vf, EventKind kind, std::string text) {
    const Nanoseconds now = ports_.clock.now();
    AdminEvent admin_event{.gpu = id_, .vf = vf, .kind = kind, .text = std::move(text)};
    if (fold_.admits(admin_event, now)) report(std::move(admin_event), now);
}

void GpuModel::report(AdminEvent admin_event, Nanoseconds now) {
    schedule_.annotate(admin_event.vf, name_of(admin_event.kind), admin_event.text, now);
    if (admin_events_.size() < kMaxAdminEvents) admin_events_.push_back(std::move(admin_event));
}

}  // namespace vgpu::daemon
