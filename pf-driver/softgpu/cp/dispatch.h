// SPDX-License-Identifier: MIT
//
// Dispatcher: the kernels that a VF has in flight. A Dispatch is a kernel whose packet has been
// executed: its description, the position in the grid of the next work-group (group) to start, and
// its resident groups, which have started but not ended. The dispatcher leases a group to a worker:
// only this worker uses the group until the worker returns it, after one run. A new group starts
// when a compute unit has room or the kernel has no resident group. If the kernel needs scratch,
// enough scratch slots (DispatchState) must also be free. A returned group that can run again goes
// to the end of `ready`, so that groups that wait for each other in loops all make progress.
// Kernels are served round robin.
//
// Dispatches and groups are state of the VF. Workers return every leased group at an instruction
// boundary. The dispatches of one queue (context save) or of all queues (world switch) can be saved
// while none of their groups is leased.
//
// Call all functions with the VF's lock held. Only the Workgroup of a leased group is used without
// the lock, by the worker that has the lease.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/cp/occupancy.h"
#include "pf-driver/softgpu/cp/queue.h"
#include "pf-driver/softgpu/isa/dispatch.h"
#include "pf-driver/softgpu/isa/execute.h"
#include "pf-driver/softgpu/isa/wave.h"

namespace vgpu::softgpu::cp {

/// The description and progress of a dispatch; trivially copyable. It is in the saved state of a VF
/// and in context save areas, which a guest can write. So load() checks sizes, positions and ids.
struct DispatchState {
    isa::DispatchSpec spec;
    std::array<std::uint32_t, 3> start{};  ///< position in the grid of the first work-group
    std::array<std::uint32_t, 3> end{};    ///< number of work-groups in each dimension of the grid
    std::array<std::uint32_t, 3> next{};   ///< position in the grid of the next work-group to start
    /// Number of scratch slots of the queue; 0: the kernel takes none. A slot is the scratch memory
    /// of one wave. A work-group takes consecutive slots, one for each wave. All kernels of a queue
    /// share the queue's slots.
    std::uint32_t scratch_slots = 0;
    std::uint64_t packet = 0;       ///< AQL: index of the packet
    std::uint64_t signal = 0;       ///< AQL: address of the completion signal; 0: none
    std::uint64_t start_ticks = 0;  ///< Core::ticks() when the kernel was accepted
    QueueId queue = kNoQueue;
    Vmid vmid{};
    std::uint8_t is_launched = 0;  ///< 1 if every group has started
    std::uint8_t is_profiled = 0;  ///< 1 if the signal gets timestamps
    /// 1 if the CP asks the runtime to take the scratch back when the kernel has ended
    /// (AQL_QUEUE_USE_SCRATCH_ONCE).
    std::uint8_t gives_scratch_back = 0;
    std::uint8_t is_aql = 0;  ///< 1: AQL packet number `packet`; 0: PM4 dispatch
    std::array<std::uint8_t, 2> reserved{};
};

struct Dispatch;

/// A work-group that has started but not ended; it takes room on a CU and perhaps scratch.
struct ResidentGroup {
    isa::Workgroup group;
    Dispatch* owner = nullptr;
    /// Index of the CU in Occupancy, 0 to compute_units - 1.
    std::uint32_t cu = 0;
    std::uint32_t scratch_slot = 0;     ///< the group's first scratch slot, if it has any
    std::atomic<bool>* stop = nullptr;  ///< stop flag of the group's worker; nullptr: not leased
};

/// A kernel in flight; never moves, because its groups point to it.
struct Dispatch {
    DispatchState state;
    Footprint footprint;  ///< of each group
    /// Groups that a worker may lease.
    std::deque<std::unique_ptr<ResidentGroup>> ready;
    /// Groups in which no wave can run, because waves are halted (s_sethalt).
    std::vector<std::unique_ptr<ResidentGroup>> halted;
    /// Groups that workers run.
    std::vector<std::unique_ptr<ResidentGroup>> leased;
    /// True if the kernel is dropped: the return of its last leased group frees the kernel.
    bool is_dropped = false;

    [[nodiscard]] std::size_t resident() const {
        return ready.size() + halted.size() + leased.size();
    }
    /// True if every group has started and ended.
    [[nodiscard]] bool is_complete() const { return state.is_launched != 0 && resident() == 0; }
};

/// Owned by Core; one per VF.
class Dispatcher {
public:
    /// `queues` holds all queues of the VF, by id. The CU mask of a queue limits the CUs that the
    /// queue's work-groups may use.
    Dispatcher(std::uint32_t compute_units, std::span<const Queue> queues)
        : queues_(queues), occupancy_(compute_units) {}

    /// Accepts a kernel. The caller has checked the kernel with isa::check() and
    /// Footprint::fits_a_cu(), and that scratch_slots is 0 or enough for one group.
    void start(const DispatchState& state);

    /// Number of kernels of the queue that are neither complete nor dropped.
    [[nodiscard]] std::uint32_t in_flight(QueueId queue) const;
    /// True if a worker has a group of the queue.
    [[nodiscard]] bool has_leased_groups(QueueId queue) const;
    [[nodiscard]] bool has_leased_groups() const;
    /// True if a group could be leased now.
    [[nodiscard]] bool has_runnable() const;

    /// Suspends a queue: sets the stop flags of its leased groups. Until resume(), no group of the
    /// queue starts or is leased.
    void suspend(QueueId queue);
    /// Ends suspend(); groups may be leased again.
    void resume(QueueId queue);
    /// Drops the kernels of the queue: they never complete. reclaim() discards their leased groups.
    void drop(QueueId queue);
    /// Drops one kernel; the caller reports the error.
    void drop(Dispatch& dispatch);

    /// Tries the kernels round robin and leases a group of the first kernel that has one to lease:
    /// a new group if one can start, else the first group in `ready`. nullptr if no kernel has one.
    /// The dispatcher sets `stop` to get the group back early; the flag must exist until the worker
    /// has returned the group. `debug` holds a debugger's settings for a new group.
    [[nodiscard]] ResidentGroup* acquire(std::atomic<bool>& stop,
                                         const isa::LaunchExceptions& debug);
    /// The state of a returned group. Again: the group can run again. Halted: no wave can run.
    /// Ended: all waves have ended.
    enum class Return : std::uint8_t { Again, Halted, Ended };
    /// Takes a leased group back: moves the group to `ready` or `halted`, or frees the group
    /// (Ended, or its kernel is dropped). Returns the dispatch if the dispatch is now complete; the
    /// caller then calls remove(). Else returns nullptr.
    [[nodiscard]] Dispatch* reclaim(ResidentGroup* group, Return how);
    /// Frees a complete dispatch.
    void remove(Dispatch* dispatch);

    /// True if the resident groups take more than twice the room of the CUs.
    [[nodiscard]] bool is_overfull() const { return occupancy_.is_overfull(); }

    void set_compute_units(std::uint64_t mask) { occupancy_.set_mask(mask); }
    [[nodiscard]] std::uint32_t compute_units() const { return occupancy_.compute_units(); }

    /// Drops all kernels and ends all suspensions. No group may be leased.
    void reset();
    /// Saves the kernels of one queue, or of all queues for kNoQueue. None of their groups may be
    /// leased (asserted).
    void save(Writer& out, QueueId queue = kNoQueue) const;
    /// Adds the kernels of a stream, all or none. EPROTO if the stream is truncated or holds an
    /// impossible value, for example a group larger than a CU.
    [[nodiscard]] Result<> load(Reader& in);
    /// Like load() above, for a stream from a queue's save area. The guest may have changed the
    /// area, so all kernels become kernels of `queue` and, if `vmid` is given, run in `vmid`. Does
    /// not check whether the CUs have room: see is_overfull().
    [[nodiscard]] Result<> load(Reader& in, QueueId queue, std::optional<Vmid> vmid);

private:
    using Owned = std::unique_ptr<Dispatch>;
    /// By QueueId: the only kernel of the queue that may take scratch slots; nullptr: none may.
    using ScratchTurns = std::array<const Dispatch*, kQueues>;

    [[nodiscard]] bool may_start(const Dispatch& dispatch, const ScratchTurns& turns) const;
    [[nodiscard]] bool is_runnable(const Dispatch& dispatch, const ScratchTurns& turns) const;
    [[nodiscard]] std::unique_ptr<ResidentGroup> start_group(Dispatch& dispatch,
                                                             const ScratchTurns& turns,
                                                             const isa::LaunchExceptions& debug);
    [[nodiscard]] ScratchTurns scratch_turns() const;
    [[nodiscard]] std::optional<std::uint32_t> find_scratch(const Dispatch& dispatch,
                                                            const ScratchTurns& turns) const;
    void mark_scratch(const Dispatch& dispatch, std::uint32_t first, bool is_used);
    void free_group(Dispatch& dispatch, std::unique_ptr<ResidentGroup> group);
    void advance(DispatchState& state);
    [[nodiscard]] Result<> load_all(Reader& in, std::uint64_t limit,
                                    const std::function<void(DispatchState&)>& adopt);
    [[nodiscard]] Result<Owned> load_one(Reader& in);
    [[nodiscard]] Result<> load_groups(Reader& in, Dispatch& dispatch);
    void remove_if(const std::function<bool(const Dispatch&)>& goes);

    [[nodiscard]] CuMask cu_mask(const Dispatch& dispatch) const;
    [[nodiscard]] std::uint32_t hw_id(const DispatchState& state, std::uint32_t cu) const;

    const std::span<const Queue> queues_;
    Occupancy occupancy_;
    /// The dispatches of one queue are in the order of their packets.
    std::vector<Owned> dispatches_;
    std::size_t next_ = 0;  ///< index of the dispatch that acquire() tries first
    /// By QueueId. Has an element for each of the 256 values of QueueId, so that a damaged id
    /// cannot index beyond the end.
    std::array<bool, 256> is_suspended_{};
    /// By QueueId and scratch slot: true if the slot is used. Slots beyond the end of a vector are
    /// free.
    std::array<std::vector<bool>, kQueues> scratch_used_;
    std::vector<std::unique_ptr<ResidentGroup>> spare_;  ///< unused groups, for their memory
};

}  // namespace vgpu::softgpu::cp
