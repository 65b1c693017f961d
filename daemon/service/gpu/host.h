// SPDX-License-Identifier: MIT
//
// GpuHost: connects the main loop with one GpuModel. The GPU's thread (run by a GpuRunner) carries
// out the queued requests in order, calls GpuModel::step() and publishes a snapshot. The main loop
// reads snapshots, queues requests by ask(), and gets answers in finish(). The main loop does not
// wait for requests; only the D-Bus calls ListGpus, ListVfs and Capacity wait for fresh values, up
// to 20 ms (await_refresh()). Without a runner (unit tests) the caller's thread does all of this.
//
//   main loop                            GPU's thread
//   ask()       --- queued request --->  iterate(): carry out requests, step, publish
//   finish()    <-- answers -----------
//   snapshot()  <-- snapshot ----------
//
// Changes of settings in quick succession get one run table: the step waits a moment for more
// changes, so that no request waits for a table that the next change replaces. A request that
// waited longer than kTimeout gets TimedOut and is not carried out, because its caller may have
// timed out.
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
    VfViews vfs;                       ///< the VFs of GpuModel::vfs()
    std::uint64_t vram_available = 0;  ///< VRAM that a new VF could get, in bytes
    bool is_connected = false;
    std::shared_ptr<const vgpu_pf_run_table>
        table;                                ///< run table, as last read or set; may be null
    std::shared_ptr<const EventPort> events;  ///< event ring of the PF core; may be null
    std::uint64_t events_read_to = 0;         ///< as GpuModel::events_read_to()
    Nanoseconds made_at{0};

    [[nodiscard]] bool has_vf(std::uint32_t vf) const { return vfs.contains(vf); }
    /// enum vgpu_pf_vf_state; ABSENT if `vfs` has no such VF.
    [[nodiscard]] std::uint32_t vf_state(std::uint32_t vf) const;
    /// True if no event is unread. False if that is unknown: the driver reports no events, the GPU
    /// is not connected, or the schedule lacks a change of settings (GpuModel::events_read_to()).
    [[nodiscard]] bool is_current() const { return events && events->next_seq() == events_read_to; }
    /// True if anything except made_at differs from `before`. The views of a VF are equal only if
    /// both snapshots share one object.
    [[nodiscard]] bool differs_from(const GpuSnapshot& before) const;
};

/// Receives the result of a request. Called once, in the main loop; not called if the host is
/// destroyed first.
template <typename T = void> using Done = std::function<void(Result<T>)>;

/// Calls `start`, which keeps a copy of `done`. If `start` fails, `done` gets the error.
template <typename T, typename Start> void or_refuse(const Done<T>& done, const Start& start) {
    if (const Result<> started = start(); !started) done(tl::make_unexpected(started.error()));
}

/// mutex_ guards the members that both threads use: queue, answers, events, counts of refreshes,
/// and the pointer to the current snapshot.
class GpuHost final : public GpuLoop {
public:
    /// A request that waited longer in the queue is not carried out.
    static constexpr Nanoseconds kTimeout = std::chrono::seconds(15);
    /// Minimum time between two snapshots that only events of the PF core cause.
    static constexpr Nanoseconds kPublish = std::chrono::milliseconds(10);
    /// After a change of settings, the new run table waits this long for another change.
    static constexpr Nanoseconds kTablePause = std::chrono::milliseconds(1);
    /// A new run table waits at most this long after the first of several changes of settings.
    static constexpr Nanoseconds kLatestTable = std::chrono::milliseconds(10);

    GpuHost(std::unique_ptr<GpuModel> model, const Clock& clock);
    ~GpuHost() override;
    GpuHost(const GpuHost&) = delete;
    GpuHost& operator=(const GpuHost&) = delete;

    // --- main loop
    /// Starts the GPU's thread, which calls `on_change` when there is a new snapshot or answer.
    void start(std::unique_ptr<GpuRunner> runner, std::function<void()> on_change);
    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] std::shared_ptr<const GpuSnapshot> snapshot() const;
    /// True if there are changed snapshots, answers or events since the last call with this `seen`
    /// (initially 0). Sets `seen`. Takes no lock, because the main loop calls this for every GPU in
    /// each iteration.
    [[nodiscard]] bool is_newer(std::uint64_t& seen) const {
        const std::uint64_t made = snapshots_.load(std::memory_order_acquire);
        return std::exchange(seen, made) != made;
    }
    /// Queues `work` for the GPU's thread. finish() then calls `done` with the result.
    template <typename T> void ask(std::function<Result<T>(GpuModel&)> work, Done<T> done) {
        enqueue([work = std::move(work), done = std::move(done)](GpuModel* model, Error why) {
            auto result = model != nullptr ? work(*model) : Result<T>(tl::make_unexpected(why));
            return Answer([done, result = std::move(result)] { done(result); });
        });
    }
    /// Calls the `done` of all finished requests, in the order of ask(). `done` may call ask().
    void finish();
    /// Requests a snapshot as fresh as `desired`. await_refresh() is a separate call, so that many
    /// GPUs refresh at the same time. False if the caller should not wait: an earlier refresh is
    /// not done yet, a refresh as fresh as `desired` began at most `max_age` ago (0: not checked),
    /// only events are desired and the snapshot has them all, or there is no runner.
    [[nodiscard]] bool request_refresh(Freshness desired,
                                       Nanoseconds max_age = Nanoseconds::zero());
    /// Waits until the requested snapshot is published, at most for `limit`.
    void await_refresh(Nanoseconds limit);
    /// Waits until the first iteration has ended, at most for `limit`.
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
    /// Calls the Done of one request with its result. finish() calls it in the main loop.
    using Answer = std::function<void()>;
    /// Carries out a request and returns its Answer. If `model` is null, the result is the error
    /// `why`.
    using Job = std::function<Answer(GpuModel* model, Error why)>;

    struct Queued {
        Nanoseconds since{0};  ///< when ask() queued the request
        Job job;
    };

    void enqueue(Job job);
    [[nodiscard]] Answer do_job(const Queued& queued);
    /// True if the step must wait, because a request has changed settings and more changes may
    /// follow. Sets step_at_.
    [[nodiscard]] bool defers_step();
    void record_refresh(Freshness freshness, Nanoseconds at);
    /// True if no event is unread, and the snapshot is at most GpuModel::kFreshness old.
    [[nodiscard]] bool knows_all_events() const;
    void publish(std::vector<Answer> answers);
    /// As publish(), for a job that changed only the record of `vf`: keeps the views of other VFs.
    void publish_record(std::uint32_t vf, std::vector<Answer> answers);
    [[nodiscard]] GpuSnapshot snapshot_without_vfs();
    void publish_snapshot(GpuSnapshot current, std::vector<Answer> answers);

    std::string id_;
    std::unique_ptr<GpuModel> model_;  ///< used in the GPU's thread only
    const Clock& clock_;
    Nanoseconds published_at_{0};                ///< used in the GPU's thread only
    bool has_unpublished_ = false;               ///< true if the model may differ from the snapshot
    std::optional<Nanoseconds> deferred_since_;  ///< since when the step waits; none: it does not
    Nanoseconds step_at_{0};                     ///< when a deferred step is due
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
    Freshness freshness_ = Freshness::Events;  ///< what the pending refresh must read at least
    /// By Freshness: when the last refresh of at least this freshness began; none: never.
    std::array<std::optional<Nanoseconds>, kFreshnesses> refreshed_at_;
};

}  // namespace vgpu::daemon
