// SPDX-License-Identifier: MIT
//
// GpuHost: connects the main loop with one GpuModel. The GPU's thread (of a GpuRunner) does the
// queued requests in order, steps the model and publishes a snapshot. The main loop reads
// snapshots, queues requests by ask(), and gets answers in finish(). It does not wait for requests;
// only a call that lists objects waits for fresh values, up to 20 ms (await_refresh()). Without a
// runner (unit tests) the caller's thread does all of this.
//
//   main loop    ask() --> queue --> iterate(): work, step, publish --> finished   GPU thread
//                finish() <------------------ done(result) -----------------+
//
// Consecutive settings get one table: the step waits a moment for more settings, so that no request
// waits for a table that the next setting replaces. A request that waited longer than kTimeout is
// not carried out and gets TimedOut, because its caller has timed out. Backend bounds the time of a
// request under way.
#pragma once

#include "daemon/ports/gpu_runner.h"
#include "daemon/service/gpu/gpu.h"
#include "daemon/service/views/vf_views.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace vgpu::daemon {

/// The state of a GPU at the end of a request or of an iteration.
struct GpuSnapshot {
    GpuView gpu;
    VfViews vfs;                       ///< VFs with resources or a record
    std::uint64_t vram_available = 0;  ///< VRAM that one new VF could get
    bool is_connected = false;
    std::shared_ptr<const vgpu_pf_run_table>
        table;                                ///< run table, as last read or set; may be null
    std::shared_ptr<const EventPort> events;  ///< event ring of the PF core; may be null
    std::uint64_t events_read_to = 0;         ///< all smaller sequence numbers are included
    Nanoseconds made_at{0};

    [[nodiscard]] bool has_vf(std::uint32_t vf) const { return vfs.contains(vf); }
    [[nodiscard]] std::uint32_t vf_state(std::uint32_t vf) const;
    /// True if no event has come since the snapshot. False if the driver reports no events.
    [[nodiscard]] bool is_current() const { return events && events->next_seq() == events_read_to; }
    /// True if anything but made_at differs from `before`.
    [[nodiscard]] bool differs_from(const GpuSnapshot& before) const;
};

/// Gets the result of a request. Called once, in the main loop, unless the host is destroyed first.
template <typename T = void> using Done = std::function<void(Result<T>)>;

/// Calls `start`, which keeps a copy of `done`. If `start` fails, `done` gets the error.
template <typename T, typename Start> void or_refuse(const Done<T>& done, const Start& start) {
    if (const Result<> started = start(); !started) done(tl::make_unexpected(started.error()));
}

/// mutex_ guards the members that both threads use: queue, answers, events, and the pointer to the
/// current snapshot.
class GpuHost final : public GpuLoop {
public:
    static constexpr Nanoseconds kTimeout = std::chrono::seconds(15);
    /// Minimum time between two snapshots that only events of the PF core cause.
    static constexpr Nanoseconds kPublish = std::chrono::milliseconds(10);
    /// After a setting, a new table waits this long for another setting.
    static constexpr Nanoseconds kTablePause = std::chrono::milliseconds(1);
    /// A new table waits at most this long after the first of several settings.
    static constexpr Nanoseconds kLatestTable = std::chrono::milliseconds(10);

    GpuHost(std::unique_ptr<GpuModel> model, const Clock& clock);
    ~GpuHost() override;
    GpuHost(const GpuHost&) = delete;
    GpuHost& operator=(const GpuHost&) = delete;

    // --- main loop
    /// `on_change`: called in the GPU's thread when snapshot() or finish() has something new.
    void start(std::unique_ptr<GpuRunner> runner, std::function<void()> on_change);
    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] std::shared_ptr<const GpuSnapshot> snapshot() const;
    /// True if snapshot(), answers or events have changed since the last call with this `seen`
    /// (initially 0). Takes no lock: the main loop calls this for every GPU in each of its
    /// iterations.
    [[nodiscard]] bool is_newer(std::uint64_t& seen) const {
        const std::uint64_t made = snapshots_.load(std::memory_order_acquire);
        return std::exchange(seen, made) != made;
    }
    /// Runs `work` in the GPU's thread; finish() calls `done`.
    template <typename T> void ask(std::function<Result<T>(GpuModel&)> work, Done<T> done) {
        enqueue([work = std::move(work), done = std::move(done)](GpuModel* model, Error why) {
            auto result = model != nullptr ? work(*model) : Result<T>(tl::make_unexpected(why));
            return Answer([done, result = std::move(result)] { done(result); });
        });
    }
    /// Calls `done` of finished requests, in the order of the work. `done` may call ask().
    void finish();
    /// Requests a snapshot as fresh as `desired`; await_refresh() waits for it, so that many GPUs
    /// refresh at once. False if the caller should not wait: an earlier request is late, the GPU
    /// was read as fully at most `max_age` ago, only events are desired and none is unread, or
    /// there is no runner.
    [[nodiscard]] bool request_refresh(Freshness desired,
                                       Nanoseconds max_age = Nanoseconds::zero());
    void await_refresh(Nanoseconds limit);
    /// Waits for the first iteration.
    void wait_for_first(Nanoseconds limit);
    /// Events since the last call, oldest first.
    std::vector<AdminEvent> take_admin_events();

    // --- GpuLoop
    void iterate() override;
    [[nodiscard]] std::vector<int> wait_fds() const override { return model_->wait_fds(); }
    [[nodiscard]] Nanoseconds wake_at() const override;
    [[nodiscard]] Nanoseconds awake_until() const override {
        return deferred_since_ ? step_at_ : Nanoseconds::zero();
    }
    void interrupt() override { model_->interrupt(); }

    /// Call it only without a runner.
    [[nodiscard]] GpuModel& model() { return *model_; }

private:
    /// Calls a Done with its result, in the main loop.
    using Answer = std::function<void()>;
    /// Does the work and returns the answer. Without a model, the answer is the error `why`.
    using Job = std::function<Answer(GpuModel* model, Error why)>;

    struct Queued {
        Nanoseconds since{0};
        Job job;
    };

    void enqueue(Job job);
    [[nodiscard]] Answer do_job(const Queued& queued);
    /// True if the step must wait, because a request has changed settings and more settings may
    /// follow.
    [[nodiscard]] bool defers_step();
    void record_refresh(Freshness freshness, Nanoseconds at);
    /// True if all events are read, and other values are at most GpuModel::kFreshness old.
    [[nodiscard]] bool knows_all_events() const;
    void publish(std::vector<Answer> answers);
    /// For a job that changed only the record of `vf`: the views of other VFs stay.
    void publish_record(std::uint32_t vf, std::vector<Answer> answers);
    [[nodiscard]] GpuSnapshot snapshot_without_vfs();
    void publish_snapshot(GpuSnapshot current, std::vector<Answer> answers);

    std::string id_;
    std::unique_ptr<GpuModel> model_;  ///< GPU thread only
    const Clock& clock_;
    Nanoseconds published_at_{0};                ///< GPU thread only
    bool has_unpublished_ = false;               ///< true if the model may differ from the snapshot
    std::optional<Nanoseconds> deferred_since_;  ///< since when the step is deferred to step_at_
    Nanoseconds step_at_{0};
    std::function<void()> on_change_;
    std::unique_ptr<GpuRunner> runner_;
    /// Number of snapshots with changes, answers or events.
    std::atomic<std::uint64_t> snapshots_{0};
    std::uint64_t finished_ = 0;  ///< snapshots_, as finish() last saw it
    std::uint64_t reported_ = 0;  ///< snapshots_, as take_admin_events() last saw it

    mutable std::mutex mutex_;  ///< guards the members below
    std::condition_variable iterated_;
    std::shared_ptr<const GpuSnapshot> snapshot_ = std::make_shared<const GpuSnapshot>();
    std::vector<Queued> queue_;
    std::vector<Answer> answers_;
    std::vector<AdminEvent> admin_events_;
    std::uint64_t iterations_ = 0;             ///< number of iterations with a step
    std::uint64_t refresh_requested_ = 0;      ///< number of requested refreshes
    std::uint64_t refresh_done_ = 0;           ///< number of requested refreshes that are done
    Freshness freshness_ = Freshness::Events;  ///< freshness that the pending request desires
    /// By Freshness: start of the last read that was at least as full.
    std::array<std::optional<Nanoseconds>, kFreshnesses> refreshed_at_;
};

}  // namespace vgpu::daemon
