// SPDX-License-Identifier: MIT
#include "daemon/service/gpu/host.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon {

std::uint32_t GpuSnapshot::vf_state(std::uint32_t vf) const {
    const auto at = vfs.find(vf);
    return at == vfs.end() ? static_cast<std::uint32_t>(VGPU_PF_VF_ABSENT)
                           : at->second.active.state;
}

bool GpuSnapshot::differs_from(const GpuSnapshot& before) const {
    return !vfs.is_shared_with(before.vfs) || gpu != before.gpu ||
           vram_available != before.vram_available || is_connected != before.is_connected ||
           table != before.table || events != before.events ||
           events_read_to != before.events_read_to;
}

GpuHost::GpuHost(std::unique_ptr<GpuModel> model, const Clock& clock)
    : id_(model->id()), model_(std::move(model)), clock_(clock) {
    publish({});
}

GpuHost::~GpuHost() {
    // Stop the runner first, because an iteration that is under way uses all members.
    if (runner_) runner_->stop();
}

void GpuHost::start(std::unique_ptr<GpuRunner> runner, std::function<void()> on_change) {
    on_change_ = std::move(on_change);
    runner_ = std::move(runner);
    runner_->start(*this);
}

std::shared_ptr<const GpuSnapshot> GpuHost::snapshot() const {
    const std::scoped_lock lock(mutex_);
    return snapshot_;
}

/// Wakes the runner after unlocking, because the runner's iteration takes the lock at once.
void GpuHost::enqueue(Job job) {
    {
        const std::scoped_lock lock(mutex_);
        queue_.push_back({.since = clock_.now(), .job = std::move(job)});
    }
    if (runner_) return runner_->wake();
    iterate();
    finish();
}

void GpuHost::finish() {
    if (!is_newer(finished_)) return;
    std::vector<Answer> answers;
    {
        const std::scoped_lock lock(mutex_);
        answers.swap(answers_);
    }
    for (const Answer& answer : answers) answer();
}

/// Returns false for a GPU that is late, so that one hung PF core does not delay every list.
bool GpuHost::request_refresh(Freshness desired, Nanoseconds max_age) {
    std::unique_lock lock(mutex_);
    if (desired == Freshness::Events && knows_all_events()) return false;
    const auto refreshed_at = refreshed_at_.at(static_cast<std::size_t>(desired));
    if (max_age > Nanoseconds::zero() && refreshed_at && clock_.now() - *refreshed_at <= max_age)
        return false;
    const bool is_late = refresh_requested_ != refresh_done_;
    // A running iteration may have taken the earlier request, which asked for less freshness.
    if (!is_late || desired > freshness_) ++refresh_requested_;
    freshness_ = std::max(freshness_, desired);
    lock.unlock();
    if (!runner_) {
        iterate();
        return false;
    }
    runner_->wake();
    return !is_late;
}

bool GpuHost::knows_all_events() const {
    return clock_.now() - snapshot_->made_at <= GpuModel::kFreshness && snapshot_->is_current();
}

void GpuHost::record_refresh(Freshness freshness, Nanoseconds at) {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(freshness); ++i) refreshed_at_.at(i) = at;
}

void GpuHost::await_refresh(Nanoseconds limit) {
    std::unique_lock lock(mutex_);
    iterated_.wait_for(lock, limit, [this] { return refresh_requested_ == refresh_done_; });
}

void GpuHost::wait_for_first(Nanoseconds limit) {
    std::unique_lock lock(mutex_);
    iterated_.wait_for(lock, limit, [this] { return iterations_ > 0; });
}

std::vector<AdminEvent> GpuHost::take_admin_events() {
    if (!is_newer(reported_)) return {};
    const std::scoped_lock lock(mutex_);
    return std::exchange(admin_events_, {});
}

// --- the GPU's thread

GpuHost::Answer GpuHost::do_job(const Queued& queued) {
    // After kTimeout the caller may have timed out on the bus: answer without doing the work.
    const Nanoseconds waited = clock_.now() - queued.since;
    if (waited <= kTimeout) return queued.job(model_.get(), {});
    return queued.job(
        nullptr,
        {ErrorId::TimedOut,
         fmt::format("{}: its PF driver was busy for {} s; the request was not started", id_,
                     std::chrono::duration_cast<std::chrono::seconds>(waited).count())});
}

void GpuHost::iterate() {
    std::vector<Queued> queue;
    std::uint64_t refresh_requested = 0;
    bool has_request = false;
    Freshness freshness = Freshness::Events;
    {
        const std::scoped_lock lock(mutex_);
        // Swap under the lock and work outside it, so that the main loop can queue more.
        queue.swap(queue_);
        refresh_requested = refresh_requested_;
        has_request = refresh_requested_ != refresh_done_;
        freshness = std::exchange(freshness_, Freshness::Events);
    }
    std::vector<Answer> answers;
    for (Queued& queued : queue) {
        static_cast<void>(model_->take_only_changed_vf());  // drops a change that a step has made
        answers.push_back(do_job(queued));
        // Now only the answer holds the caller's `done`, so the main loop frees its captures.
        queued.job = nullptr;
        // Publish after each job, because the caller must see the result in snapshot().
        if (const auto vf = model_->take_only_changed_vf())
            publish_record(*vf, std::exchange(answers, {}));
        else
            publish(std::exchange(answers, {}));
    }
    if (!queue.empty() && !has_request && defers_step()) return;
    deferred_since_.reset();
    const Nanoseconds began_at = clock_.now();
    const auto refreshed_before = model_->checked_at();
    model_->step();
    if (has_request) model_->refresh(freshness);
    // The model also reads everything every kRefresh, without a request.
    const bool has_refreshed = model_->checked_at() != refreshed_before;
    const bool is_due = has_refreshed || clock_.now() - published_at_ >= kPublish;
    has_unpublished_ = true;
    // Each world switch is an event. A snapshot per event would cost more than the iteration.
    if (is_due || has_request || model_->has_admin_events() || !runner_) publish({});
    const std::scoped_lock lock(mutex_);
    ++iterations_;
    refresh_done_ = refresh_requested;
    if (has_request) record_refresh(freshness, began_at);
    if (has_refreshed) record_refresh(Freshness::Counters, *model_->checked_at());
    iterated_.notify_all();
}

/// False without a runner, because then nothing begins the next iteration.
bool GpuHost::defers_step() {
    if (!runner_ || !model_->may_need_table()) return false;
    const Nanoseconds now = clock_.now();
    if (!deferred_since_) deferred_since_ = now;
    step_at_ = std::min(now + kTablePause, *deferred_since_ + kLatestTable);
    return now < step_at_;
}

Nanoseconds GpuHost::wake_at() const {
    if (deferred_since_) return step_at_;
    const Nanoseconds at = model_->wake_at();
    return has_unpublished_ ? std::min(at, published_at_ + kPublish) : at;
}

GpuSnapshot GpuHost::snapshot_without_vfs() {
    return {.gpu = model_->view(),
            .vfs = {},
            .vram_available = model_->vram_available(),
            .is_connected = model_->is_connected(),
            .table = model_->table(),
            .events = model_->events(),
            .events_read_to = model_->events_read_to(),
            .made_at = clock_.now()};
}

void GpuHost::publish(std::vector<Answer> answers) {
    const auto before = snapshot();
    GpuSnapshot current = snapshot_without_vfs();
    for (const std::uint32_t vf : model_->vfs()) current.vfs.set(vf, model_->view(vf), before->vfs);
    published_at_ = current.made_at;
    has_unpublished_ = false;
    publish_snapshot(std::move(current), std::move(answers));
}

void GpuHost::publish_record(std::uint32_t vf, std::vector<Answer> answers) {
    GpuSnapshot current = snapshot_without_vfs();
    current.vfs = snapshot()->vfs;
    current.vfs.set(vf, model_->view(vf));
    has_unpublished_ = true;
    publish_snapshot(std::move(current), std::move(answers));
}

/// Wakes the main loop only for changes, because most refreshes change nothing.
void GpuHost::publish_snapshot(GpuSnapshot current, std::vector<Answer> answers) {
    // not const: after swap(), `made` frees the previous snapshot outside the lock
    std::shared_ptr<const GpuSnapshot> made = std::make_shared<GpuSnapshot>(std::move(current));
    std::vector<AdminEvent> admin_events = model_->take_admin_events();
    const bool is_change =
        made->differs_from(*snapshot()) || !answers.empty() || !admin_events.empty();
    {
        const std::scoped_lock lock(mutex_);
        snapshot_.swap(made);
        answers_.insert(answers_.end(), std::make_move_iterator(answers.begin()),
                        std::make_move_iterator(answers.end()));
        for (AdminEvent& event : admin_events)
            if (admin_events_.size() < kMaxAdminEvents) admin_events_.push_back(std::move(event));
        if (is_change) snapshots_.fetch_add(1, std::memory_order_release);
    }
    if (is_change && on_change_) on_change_();
}

}  // namespace vgpu::daemon
