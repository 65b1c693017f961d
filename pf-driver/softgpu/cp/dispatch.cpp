// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/dispatch.h"

#include <algorithm>
#include <cassert>

#include "pf-driver/hw/fields.h"

namespace vgpu::softgpu::cp {

namespace {

/// Maximum number of unused groups whose memory is kept for new groups. The registers and LDS of a
/// group may take hundreds of KiB; allocating them would take longer than a small kernel runs.
constexpr std::size_t kSpareGroups = 64;
/// Maximum number of kernels that load() accepts for one queue: kAqlWindow kernels of AQL packets,
/// and as many that the IBs of vendor packets have started.
constexpr std::uint64_t kMaxQueueDispatches = 2 * std::uint64_t{kAqlWindow};
/// Maximum number of kernels that load() accepts in the state stream of a VF.
constexpr std::uint64_t kMaxDispatches = kQueues * kMaxQueueDispatches;
/// Maximum length of each list of groups (ready, halted) of a kernel in a state stream: groups of
/// one wave on 64 full CUs (no device has more CUs), plus the one group that start_group() allows
/// on full CUs.
constexpr std::uint64_t kMaxGroups = std::uint64_t{64} * kWavesPerCu + 1;

/// True if scratch slot n is the same memory for both kernels, for every n.
bool has_same_scratch(const DispatchState& a, const DispatchState& b) {
    return a.spec.scratch_base == b.spec.scratch_base &&
           a.spec.scratch_wave_bytes == b.spec.scratch_wave_bytes && a.vmid == b.vmid;
}

}  // namespace

// --- life of a dispatch -------------------------------------------------------------------------

void Dispatcher::start(const DispatchState& state) {
    auto dispatch = std::make_unique<Dispatch>();
    dispatch->state = state;
    dispatch->footprint = Footprint::of(state.spec);
    dispatches_.push_back(std::move(dispatch));
}

std::uint32_t Dispatcher::in_flight(QueueId queue) const {
    return static_cast<std::uint32_t>(
        std::count_if(dispatches_.begin(), dispatches_.end(),
                      [&](const Owned& d) { return d->state.queue == queue && !d->is_dropped; }));
}

bool Dispatcher::has_leased_groups(QueueId queue) const {
    return std::any_of(dispatches_.begin(), dispatches_.end(), [&](const Owned& d) {
        return d->state.queue == queue && !d->leased.empty();
    });
}

bool Dispatcher::has_leased_groups() const {
    return std::any_of(dispatches_.begin(), dispatches_.end(),
                       [](const Owned& d) { return !d->leased.empty(); });
}

void Dispatcher::suspend(QueueId queue) {
    is_suspended_[raw(queue)] = true;
    for (const Owned& dispatch : dispatches_) {
        if (dispatch->state.queue != queue) continue;
        for (const auto& group : dispatch->leased) group->stop->store(true);
    }
}

void Dispatcher::resume(QueueId queue) {
    is_suspended_[raw(queue)] = false;
}

/// Sets the stop flags of leased groups, so that workers return the groups soon; reclaim() then
/// discards them.
void Dispatcher::drop(Dispatch& dispatch) {
    dispatch.is_dropped = true;
    for (const auto& group : dispatch.leased) group->stop->store(true);
    for (auto& group : dispatch.ready) free_group(dispatch, std::move(group));
    for (auto& group : dispatch.halted) free_group(dispatch, std::move(group));
    dispatch.ready.clear();
    dispatch.halted.clear();
    remove_if([](const Dispatch& d) { return d.is_dropped && d.leased.empty(); });
}

/// Collects the kernels first, because drop() of a kernel may remove it from the list.
void Dispatcher::drop(QueueId queue) {
    std::vector<Dispatch*> victims;
    for (const Owned& dispatch : dispatches_)
        if (dispatch->state.queue == queue) victims.push_back(dispatch.get());
    for (Dispatch* victim : victims) drop(*victim);
}

void Dispatcher::remove(Dispatch* dispatch) {
    remove_if([&](const Dispatch& d) { return &d == dispatch; });
}

void Dispatcher::remove_if(const std::function<bool(const Dispatch&)>& goes) {
    std::erase_if(dispatches_, [&](const Owned& d) { return goes(*d); });
    if (next_ >= dispatches_.size()) next_ = 0;
}

// --- groups -------------------------------------------------------------------------------------

bool Dispatcher::may_start(const Dispatch& dispatch, const ScratchTurns& turns) const {
    return dispatch.state.is_launched == 0 && find_scratch(dispatch, turns).has_value();
}

/// Repeats the conditions of acquire() without its effects. Every kernel may have one resident
/// group even on full CUs, so full CUs keep no kernel from running.
bool Dispatcher::is_runnable(const Dispatch& dispatch, const ScratchTurns& turns) const {
    if (dispatch.is_dropped || is_suspended_[raw(dispatch.state.queue)]) return false;
    if (!dispatch.ready.empty()) return true;
    if (!may_start(dispatch, turns)) return false;
    return dispatch.resident() == 0 || occupancy_.can_take(dispatch.footprint, cu_mask(dispatch));
}

bool Dispatcher::has_runnable() const {
    const ScratchTurns turns = scratch_turns();
    return std::any_of(dispatches_.begin(), dispatches_.end(),
                       [&](const Owned& d) { return is_runnable(*d, turns); });
}

/// Kernels of a queue get scratch slots in the order of their packets, as on hardware. Otherwise a
/// later kernel that waits for an earlier kernel could hold the slots that the earlier kernel
/// needs. So the first kernel with groups left to start has the turn. If an earlier kernel has
/// different scratch memory, no kernel has the turn until the earlier one uses no slot.
Dispatcher::ScratchTurns Dispatcher::scratch_turns() const {
    ScratchTurns turns{};
    ScratchTurns users{};                    // the first kernel that uses slots
    std::array<bool, kQueues> is_decided{};  // a later kernel cannot have the turn
    for (const Owned& dispatch : dispatches_) {
        const DispatchState& state = dispatch->state;
        const std::size_t queue = raw(state.queue);
        if (state.scratch_slots == 0 || is_decided[queue]) continue;
        const Dispatch*& user = users[queue];
        const bool is_moved = user != nullptr && !has_same_scratch(user->state, state);
        if (!dispatch->is_dropped && state.is_launched == 0) {
            turns[queue] = is_moved ? nullptr : dispatch.get();
            is_decided[queue] = true;
        } else if (dispatch->resident() != 0) {
            is_decided[queue] = is_moved;
            if (user == nullptr) user = dispatch.get();
        }
    }
    return turns;
}

/// The first slot of a run of free scratch slots that is long enough for a group (first fit). Wave
/// n of the group, counted from 0, uses this slot plus n. 0 if the kernel takes no slots; nullopt
/// if the group must wait for slots.
std::optional<std::uint32_t> Dispatcher::find_scratch(const Dispatch& dispatch,
                                                      const ScratchTurns& turns) const {
    if (dispatch.state.scratch_slots == 0) return 0;
    if (turns[raw(dispatch.state.queue)] != &dispatch) return std::nullopt;
    const std::vector<bool>& used = scratch_used_[raw(dispatch.state.queue)];
    std::uint32_t run = 0;
    for (std::uint32_t slot = 0; slot < dispatch.state.scratch_slots; ++slot) {
        run = slot < used.size() && used[slot] ? 0 : run + 1;
        if (run == dispatch.footprint.waves) return slot + 1 - run;
    }
    return std::nullopt;
}

void Dispatcher::mark_scratch(const Dispatch& dispatch, std::uint32_t first, bool is_used) {
    if (dispatch.state.scratch_slots == 0) return;
    std::vector<bool>& used = scratch_used_[raw(dispatch.state.queue)];
    if (used.size() < dispatch.state.scratch_slots) used.resize(dispatch.state.scratch_slots);
    for (std::uint32_t i = 0; i < dispatch.footprint.waves; ++i) used[first + i] = is_used;
}

/// Moves `next` to the next group: x first, then y, then z, as the hardware walks a grid. Sets
/// is_launched after the last group.
void Dispatcher::advance(DispatchState& state) {
    for (unsigned i = 0; i < 3; ++i) {
        if (++state.next[i] < state.end[i]) return;
        state.next[i] = state.start[i];
    }
    state.is_launched = 1;
}

CuMask Dispatcher::cu_mask(const Dispatch& dispatch) const {
    return queues_[raw(dispatch.state.queue)].cu_mask();
}

/// The HW_ID register of a group's wave 0 (Vega ISA manual); SIMD_ID and WAVE_ID are 0.
/// start_workgroup() adds the wave's number for the other waves.
std::uint32_t Dispatcher::hw_id(const DispatchState& state, std::uint32_t cu) const {
    const CuPlace place = occupancy_.place(cu);
    const QueuePlace queue = queues_[raw(state.queue)].place();
    return HW_PREP(SQ_WAVE_HW_ID, CU_ID, place.cu) | HW_PREP(SQ_WAVE_HW_ID, SE_ID, place.engine) |
           HW_PREP(SQ_WAVE_HW_ID, VM_ID, raw(state.vmid)) |
           HW_PREP(SQ_WAVE_HW_ID, ME_ID, queue.me) | HW_PREP(SQ_WAVE_HW_ID, PIPE_ID, queue.pipe) |
           HW_PREP(SQ_WAVE_HW_ID, QUEUE_ID, queue.queue);
}

std::unique_ptr<ResidentGroup> Dispatcher::start_group(Dispatch& dispatch,
                                                       const ScratchTurns& turns,
                                                       const isa::LaunchExceptions& debug) {
    if (!may_start(dispatch, turns)) return nullptr;
    const CuMask mask = cu_mask(dispatch);
    std::optional<std::uint32_t> cu = occupancy_.take(dispatch.footprint, mask);
    if (!cu && dispatch.resident() == 0) cu = occupancy_.force(dispatch.footprint, mask);
    if (!cu) return nullptr;
    std::unique_ptr<ResidentGroup> group;
    if (spare_.empty()) {
        group = std::make_unique<ResidentGroup>();
    } else {
        group = std::move(spare_.back());
        spare_.pop_back();
    }
    group->owner = &dispatch;
    group->cu = *cu;
    group->scratch_slot = *find_scratch(dispatch, turns);
    mark_scratch(dispatch, group->scratch_slot, true);
    isa::Placement placement;
    placement.group_id = dispatch.state.next;
    placement.first_scratch_slot = group->scratch_slot;
    placement.hw_id = hw_id(dispatch.state, *cu);
    placement.debug = debug;
    isa::start_workgroup(group->group, dispatch.state.spec, placement);
    advance(dispatch.state);
    return group;
}

/// Prefers new groups to groups in `ready`, because a kernel whose groups wait for each other needs
/// all its groups resident.
ResidentGroup* Dispatcher::acquire(std::atomic<bool>& stop, const isa::LaunchExceptions& debug) {
    const ScratchTurns turns = scratch_turns();
    for (std::size_t i = 0; i < dispatches_.size(); ++i) {
        Dispatch& dispatch = *dispatches_[(next_ + i) % dispatches_.size()];
        if (dispatch.is_dropped || is_suspended_[raw(dispatch.state.queue)]) continue;
        std::unique_ptr<ResidentGroup> group = start_group(dispatch, turns, debug);
        if (!group && !dispatch.ready.empty()) {
            group = std::move(dispatch.ready.front());
            dispatch.ready.pop_front();
        }
        if (!group) continue;
        group->stop = &stop;
        dispatch.leased.push_back(std::move(group));
        next_ = (next_ + i + 1) % dispatches_.size();
        return dispatch.leased.back().get();
    }
    return nullptr;
}

/// A dropped kernel never completes; the return of its last leased group frees the kernel.
Dispatch* Dispatcher::reclaim(ResidentGroup* group, Return how) {
    Dispatch& dispatch = *group->owner;
    const auto found = std::find_if(dispatch.leased.begin(), dispatch.leased.end(),
                                    [&](const auto& leased) { return leased.get() == group; });
    assert(found != dispatch.leased.end());
    std::unique_ptr<ResidentGroup> owned = std::move(*found);
    dispatch.leased.erase(found);
    owned->stop = nullptr;
    if (dispatch.is_dropped) {
        free_group(dispatch, std::move(owned));
        remove_if([&](const Dispatch& d) { return &d == &dispatch && d.leased.empty(); });
        return nullptr;
    }
    switch (how) {
        case Return::Again:
            dispatch.ready.push_back(std::move(owned));
            break;
        case Return::Halted:
            dispatch.halted.push_back(std::move(owned));
            break;
        case Return::Ended:
            free_group(dispatch, std::move(owned));
            break;
    }
    return dispatch.is_complete() ? &dispatch : nullptr;
}

void Dispatcher::free_group(Dispatch& dispatch, std::unique_ptr<ResidentGroup> group) {
    occupancy_.release(group->cu, dispatch.footprint);
    mark_scratch(dispatch, group->scratch_slot, false);
    group->owner = nullptr;
    if (spare_.size() < kSpareGroups) spare_.push_back(std::move(group));
}

// --- state --------------------------------------------------------------------------------------

void Dispatcher::reset() {
    assert(!has_leased_groups());
    dispatches_.clear();
    occupancy_.clear();
    is_suspended_.fill(false);
    for (std::vector<bool>& used : scratch_used_) used.clear();
    spare_.clear();
    next_ = 0;
}

void Dispatcher::save(Writer& out, QueueId queue) const {
    const auto is_included = [&](const Owned& d) {
        return queue == kNoQueue || d->state.queue == queue;
    };
    out.value(static_cast<std::uint64_t>(
        std::count_if(dispatches_.begin(), dispatches_.end(), is_included)));
    for (const Owned& dispatch : dispatches_) {
        if (!is_included(dispatch)) continue;
        assert(dispatch->leased.empty());
        out.value(dispatch->state);
        const auto save_group = [&](const ResidentGroup& group) {
            out.value(group.cu);
            out.value(group.scratch_slot);
            group.group.save(out);
        };
        out.value(static_cast<std::uint64_t>(dispatch->ready.size()));
        for (const auto& group : dispatch->ready) save_group(*group);
        out.value(static_cast<std::uint64_t>(dispatch->halted.size()));
        for (const auto& group : dispatch->halted) save_group(*group);
    }
}

Result<> Dispatcher::load(Reader& in) {
    return load_all(in, kMaxDispatches, [](DispatchState&) {});
}

Result<> Dispatcher::load(Reader& in, QueueId queue, std::optional<Vmid> vmid) {
    return load_all(in, kMaxQueueDispatches, [&](DispatchState& state) {
        state.queue = queue;
        if (vmid) state.vmid = *vmid;
    });
}

/// Calls `adopt` for the state of each kernel. Reads all kernels into a separate list before it
/// adds them, so that a bad stream changes nothing.
Result<> Dispatcher::load_all(Reader& in, std::uint64_t limit,
                              const std::function<void(DispatchState&)>& adopt) {
    std::uint64_t count = 0;
    TRY_VOID(in.value(count));
    if (count > limit) return fail(EPROTO, "state stream holds too many dispatches");
    std::vector<Owned> loaded;
    for (std::uint64_t i = 0; i < count; ++i) {
        TRY(Owned one, load_one(in));
        adopt(one->state);
        if (raw(one->state.queue) >= kQueues)
            return fail(EPROTO, "state stream names a queue that does not exist");
        loaded.push_back(std::move(one));
    }
    for (Owned& dispatch : loaded) {
        const auto restore = [&](const ResidentGroup& group) {
            occupancy_.restore(group.cu, dispatch->footprint);
            mark_scratch(*dispatch, group.scratch_slot, true);
        };
        for (const auto& group : dispatch->ready) restore(*group);
        for (const auto& group : dispatch->halted) restore(*group);
        dispatches_.push_back(std::move(dispatch));
    }
    return {};
}

Result<Dispatcher::Owned> Dispatcher::load_one(Reader& in) {
    auto dispatch = std::make_unique<Dispatch>();
    DispatchState& state = dispatch->state;
    TRY_VOID(in.value(state));
    const bool is_sound = isa::check(state.spec) == isa::DispatchError::None &&
                          state.scratch_slots <= (1u << COMPUTE_TMPRING_SIZE__WAVES__WIDTH) &&
                          raw(state.vmid) < CP_VMIDS;
    if (!is_sound) return fail(EPROTO, "state stream holds an impossible dispatch");
    dispatch->footprint = Footprint::of(state.spec);
    const auto groups = isa::group_counts(state.spec);
    for (unsigned i = 0; i < 3; ++i) {
        if (state.end[i] != groups[i] || state.next[i] >= groups[i] ||
            state.start[i] > state.next[i])
            return fail(EPROTO, "state stream holds an impossible grid");
    }
    if (!dispatch->footprint.fits_a_cu())
        return fail(EPROTO, "state stream holds a group larger than a compute unit");
    TRY_VOID(load_groups(in, *dispatch));
    if (dispatch->is_complete()) return fail(EPROTO, "state stream holds a finished dispatch");
    return dispatch;
}

Result<> Dispatcher::load_groups(Reader& in, Dispatch& dispatch) {
    for (const bool is_halted : {false, true}) {
        std::uint64_t count = 0;
        TRY_VOID(in.value(count));
        if (count > kMaxGroups) return fail(EPROTO, "state stream holds too many groups");
        for (std::uint64_t i = 0; i < count; ++i) {
            auto group = std::make_unique<ResidentGroup>();
            TRY_VOID(in.value(group->cu));
            TRY_VOID(in.value(group->scratch_slot));
            TRY_VOID(group->group.load(in));
            const bool has_slot =
                dispatch.state.scratch_slots == 0 ||
                (dispatch.footprint.waves <= dispatch.state.scratch_slots &&
                 group->scratch_slot <= dispatch.state.scratch_slots - dispatch.footprint.waves);
            if (group->cu >= occupancy_.compute_units() || !has_slot ||
                group->group.waves.empty() ||
                group->group.waves.size() > dispatch.footprint.waves ||
                group->group.lds.size() > kLdsBytesPerCu)
                return fail(EPROTO, "state stream holds an impossible group");
            group->owner = &dispatch;
            if (is_halted)
                dispatch.halted.push_back(std::move(group));
            else
                dispatch.ready.push_back(std::move(group));
        }
    }
    return {};
}

}  // namespace vgpu::softgpu::cp
