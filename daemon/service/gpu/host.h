// SPDX-License-Identifier: MIT
//
// GpuHost: one GpuModel and the two threads it is known to. The GPU's own thread (a GpuRunner's)
// takes turns: it does what was asked for, in order, gives the model its step, and publishes a
// snapshot. The main loop looks at snapshots, asks, and gets its answers in finish(); it never
// waits for a PF core. Without a runner (unit tests) everything happens at once in the caller.
//
//   main loop    ask() --> queue --> turn(): work(model), step, publish --> finished   GPU thread
//                finish() <---------------------- done(result) ----------------+
//
// Settings that come one after the other get one table: the step that plans it waits a moment for
// more of them, so that neither a script's next request nor an apply's waits for a table that is
// out of date when it is made.
//
// A request that waited longer than kPatience behind others is answered TimedOut, not done: its
// caller has given up. Requests under way are bounded by the PfPort's own limits.
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

/// What was known of a GPU at the end of a turn.
struct GpuSnapshot {
    GpuView gpu;
    VfViews vfs;                       ///< those in service
    std::uint64_t vram_available = 0;  ///< for one new VF
    bool is_connected = false;
    std::shared_ptr<const vgpu_pf_run_table> table;  ///< as last read or set; may be null
    std::shared_ptr<const EventPort> events;         ///< of the PF core; null before there is one
    std::uint64_t events_read_to = 0;                ///< all with a smaller number are in here
    Nanoseconds made_at{0};

    [[nodiscard]] bool has_vf(std::uint32_t vf) const { return vfs.contains(vf); }
    [[nodiscard]] std::uint32_t vf_state(std::uint32_t vf) const;
    /// No event has come since.
    [[nodiscard]] bool is_current() const { return events && events->next_seq() == events_read_to; }
    /// False for one that differs from the snapshot `before` in no more than when it was made.
    [[nodiscard]] bool has_more_than(const GpuSnapshot& before) const;
};

/// Called once, in the main loop, unless the host is destroyed first.
template <typename T = void> using Done = std::function<void(Result<T>)>;

/// What is shared between the two threads is behind mutex_ and small: a pointer to a snapshot that
/// nobody changes, the queue, the answers, the notices.
class GpuHost final : public GpuTurns {
public:
    static constexpr Nanoseconds kPatience = std::chrono::seconds(15);
    /// Least time between two snapshots that nobody asked for.
    static constexpr Nanoseconds kPublish = std::chrono::milliseconds(10);
    /// A new table waits so long for another setting, but not longer than kLatestTable after the
    /// first.
    static constexpr Nanoseconds kTablePause = std::chrono::milliseconds(1);
    static constexpr Nanoseconds kLatestTable = std::chrono::milliseconds(10);

    GpuHost(std::unique_ptr<GpuModel> model, const Clock& clock);
    ~GpuHost() override;
    GpuHost(const GpuHost&) = delete;
    GpuHost& operator=(const GpuHost&) = delete;

    // --- main loop
    /// `on_news`: called in the GPU's thread when there is something new to look at or to finish().
    void start(std::unique_ptr<GpuRunner> runner, std::function<void()> on_news);
    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] std::shared_ptr<const GpuSnapshot> look() const;
    /// True if look() tells something new since the last call with this `seen`, which begins as 0,
    /// or there are answers or notices. Takes no lock: the main loop asks it of every GPU in every
    /// turn.
    [[nodiscard]] bool is_newer(std::uint64_t& seen) const {
        const std::uint64_t made = snapshots_.load(std::memory_order_acquire);
        return std::exchange(seen, made) != made;
    }
    /// Has `work` done in the GPU's thread; `done` is called by finish().
    template <typename T> void ask(std::function<Result<T>(GpuModel&)> work, Done<T> done) {
        enqueue([work = std::move(work), done = std::move(done)](GpuModel* model, Error why) {
            auto result = model != nullptr ? work(*model) : Result<T>(tl::make_unexpected(why));
            return Answer([done, result = std::move(result)] { done(result); });
        });
    }
    /// Gives the answers there are.
    /// In the order in which the work was done. Answers may ask for more.
    void finish();
    /// Asks for a snapshot that is as fresh as `wanted` and waits for it, but no longer than
    /// `limit`; and not at all if the last one asked for has not come yet.
    void freshen(Freshness wanted, Nanoseconds limit);
    /// The two halves of freshen(), so that many GPUs look at the same time. False: there is
    /// nothing to wait for, since the GPU is late, or was looked at as closely no more than
    /// `max_age` ago, or has no event to tell of and none but those are wanted.
    [[nodiscard]] bool ask_fresh(Freshness wanted, Nanoseconds max_age = Nanoseconds::zero());
    void await_fresh(Nanoseconds limit);
    /// Waits (bounded) until there was a first turn.
    void wait_for_first(Nanoseconds limit);
    /// Since the last call, oldest first.
    std::vector<Notice> take_notices();

    // --- GpuTurns
    void turn() override;
    [[nodiscard]] std::vector<int> wait_fds() const override { return model_->wait_fds(); }
    [[nodiscard]] Nanoseconds wake_at() const override;
    [[nodiscard]] Nanoseconds awake_until() const override {
        return put_off_since_ ? step_at_ : Nanoseconds::zero();
    }
    void interrupt() override { model_->interrupt(); }

    /// The model itself; only without a runner.
    [[nodiscard]] GpuModel& model() { return *model_; }

private:
    /// A Done with its result, to be called in the main loop.
    using Answer = std::function<void()>;
    /// Does the work (or, without a model, fails it with the error given).
    using Job = std::function<Answer(GpuModel* model, Error why)>;

    /// A request in the order in which it came; `since` is when it was asked for.
    struct Queued {
        Nanoseconds since{0};
        Job job;
    };

    void enqueue(Job job);
    [[nodiscard]] Answer do_job(const Queued& queued);
    /// True if the step is put off, since requests only changed settings and more may follow.
    [[nodiscard]] bool puts_off_step();
    void note_look(Freshness freshness, Nanoseconds at);
    /// What depends on the time alone is no older than GpuModel::kFreshEnough.
    [[nodiscard]] bool knows_all_events() const;
    /// Snapshot, answers and notices in one go, under one lock.
    void publish(std::vector<Answer> answers);
    /// The same after a job that changed what is on record of `vf` and nothing else: the other VFs
    /// are shown as they were, until the next publish().
    void publish_record(std::uint32_t vf, std::vector<Answer> answers);
    [[nodiscard]] GpuSnapshot snapshot_without_vfs();
    void hand_out(GpuSnapshot fresh, std::vector<Answer> answers);

    std::string id_;
    std::unique_ptr<GpuModel> model_;  ///< of the GPU's thread
    const Clock& clock_;
    Nanoseconds published_at_{0};  ///< of the GPU's thread
    bool has_unpublished_ = false;
    std::optional<Nanoseconds> put_off_since_;  ///< a step, until step_at_
    Nanoseconds step_at_{0};
    std::function<void()> on_news_;
    std::unique_ptr<GpuRunner> runner_;
    /// Snapshots with something new that there were, or with answers or notices.
    std::atomic<std::uint64_t> snapshots_{0};
    std::uint64_t finished_ = 0, told_ = 0;  ///< those that finish() and take_notices() have seen

    mutable std::mutex mutex_;  ///< of what follows
    std::condition_variable turned_;
    std::shared_ptr<const GpuSnapshot> snapshot_ = std::make_shared<const GpuSnapshot>();
    std::vector<Queued> queue_;
    std::vector<Answer> answers_;
    std::vector<Notice> notices_;
    std::uint64_t turns_ = 0;
    std::uint64_t fresh_wanted_ = 0, fresh_done_ = 0;
    Freshness freshness_ = Freshness::Events;  ///< of what is wanted and not done
    /// When a look that was at least as close was begun, by Freshness.
    std::array<std::optional<Nanoseconds>, kFreshnesses> fresh_at_;
};

}  // namespace vgpu::daemon
