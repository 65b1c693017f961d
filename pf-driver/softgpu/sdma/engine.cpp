// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/sdma/engine.h"

#include <algorithm>
#include <atomic>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/sdma/compare.h"

namespace vgpu::softgpu::sdma {

namespace {

constexpr std::uint64_t kDwordBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kDwordMask = kDwordBytes - 1;
constexpr std::uint32_t kEngineStride = REG_STRIDE_SDMA0_SDMA0_CNTL;
constexpr unsigned kBaseShift = 8;        ///< RB_BASE holds an address in units of 256 bytes
constexpr std::uint32_t kStatusIdle = 1;  ///< bit of SDMA_STATUS_REG
constexpr std::uint32_t kMaxIbDwords = HW_FIELD_MASK(SDMA_INDIRECT_3, SIZE);

/// The position of a preempted queue inside an IB or packet, as unmap() saves it in the MQD.
/// softgpu defines the layout; drivers keep these dwords unchanged and do not interpret them.
struct SavedPosition {
    std::uint32_t mark = 0;  ///< kPositionMark if softgpu wrote this position
    std::uint32_t ib_depth = 0;
    std::uint64_t progress = 0;
    std::uint32_t skip = 0;
    std::uint32_t polls = 0;
    std::array<Engine::Ib, Engine::kIbDepth> ibs{};
};
constexpr std::uint32_t kPositionMark = 0x534d4453;  // "SDMS"
constexpr std::uint64_t kPositionOffset = SDMA_MQD_PRIVATE * kDwordBytes;
static_assert(kPositionOffset + sizeof(SavedPosition) <= SDMA_MQD_ENGINE_ID * kDwordBytes);

std::uint64_t ring_bytes(const Engine::Queue& queue) {
    return kDwordBytes << queue.ring_log2;
}

/// Drops the position in the packet at the read pointer, because another packet is there now. Does
/// nothing if the position belongs to a packet of an IB.
void forget_packet(Engine::Queue& queue) {
    if (queue.ib_depth != 0) return;
    queue.progress = 0;
    queue.skip = 0;
    queue.polls = 0;
    queue.wait = {};
}

/// Drops the position in IBs and packets, and ends the halt: a ring that is enabled again starts
/// with the packet at its read pointer.
void forget_position(Engine::Queue& queue) {
    queue.is_halted = 0;
    queue.ib_depth = 0;
    queue.ibs = {};
    forget_packet(queue);
}

/// True if the indices and sizes in the queue are in range; for load().
bool is_consistent(const Engine::Queue& queue) {
    const bool are_ibs_good = std::all_of(
        queue.ibs.begin(), queue.ibs.end(),
        [](const Engine::Ib& ib) { return ib.position <= ib.dwords && ib.vmid < mem::kVmids; });
    return queue.ring_log2 <= Engine::kMaxRingLog2 && queue.vmid < mem::kVmids &&
           queue.ib_depth <= Engine::kIbDepth && queue.wait.kind <= Engine::WaitKind::MoreData &&
           queue.wait.vmid < mem::kVmids && are_ibs_good;
}

}  // namespace

Engine::Engine(unsigned index, regs::RegisterFile& regs, const Clock& clock, Hooks hooks)
    : index_(index), regs_(regs), clock_(clock), hooks_(std::move(hooks)) {
    claim_registers();
}

// ---- registers

/// The registers of engine 1 lie at a fixed distance after the registers of engine 0.
RegisterIndex Engine::reg(std::uint32_t engine0_register) const {
    return RegisterIndex{engine0_register + index_ * kEngineStride};
}

std::uint32_t Engine::get(std::uint32_t engine0_register) const {
    return regs_.get(reg(engine0_register));
}

std::uint64_t Engine::get_pair(std::uint32_t low, std::uint32_t high) const {
    return join(get(low), get(high));
}

void Engine::claim_registers() {
    const auto claim = [this](std::uint32_t engine0_register, void (Engine::*action)()) {
        regs_.claim(reg(engine0_register), 1, {},
                    [this, action](RegisterIndex, std::uint32_t) { (this->*action)(); });
    };
    claim(REG_SDMA0_SDMA0_GFX_RB_CNTL, &Engine::on_ring_control);
    for (const std::uint32_t which :
         {REG_SDMA0_SDMA0_GFX_RB_BASE, REG_SDMA0_SDMA0_GFX_RB_BASE_HI,
          REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO, REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI,
          REG_SDMA0_SDMA0_GFX_DOORBELL, REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET})
        claim(which, &Engine::configure_kernel_ring);
    claim(REG_SDMA0_SDMA0_GFX_RB_RPTR, &Engine::on_read_pointer);
    claim(REG_SDMA0_SDMA0_GFX_RB_RPTR_HI, &Engine::on_read_pointer);
    claim(REG_SDMA0_SDMA0_GFX_RB_WPTR, &Engine::on_write_pointer);
    claim(REG_SDMA0_SDMA0_GFX_RB_WPTR_HI, &Engine::on_write_pointer);
    regs_.claim(reg(REG_SDMA0_SDMA0_STATUS_REG), 1,
                [this](RegisterIndex, std::uint32_t stored) {
                    const bool is_busy =
                        std::any_of(state_.queues.begin(), state_.queues.end(),
                                    [this](const Queue& queue) { return is_active(queue); });
                    return is_busy ? stored & ~kStatusIdle : stored;
                },
                {});
}

/// A ring that the driver enables takes its pointers from the registers, which drivers set first
/// (Linux, sdma_v4_0_gfx_resume).
void Engine::on_ring_control() {
    Queue& ring = state_.queues[0];
    const std::uint32_t control = get(REG_SDMA0_SDMA0_GFX_RB_CNTL);
    const bool is_on = HW_GET(SDMA_RB_CNTL, RB_ENABLE, control) != 0;
    if (is_on && ring.is_mapped == 0) {
        forget_position(ring);
        on_read_pointer();
        on_write_pointer();
    }
    ring.is_mapped = is_on;
    configure_kernel_ring();
}

/// The driver writes the pointers at start-up. Afterwards doorbells or poll_write_pointer() move
/// the write pointer, and the engine moves the read pointer.
void Engine::on_read_pointer() {
    Queue& ring = state_.queues[0];
    const std::uint64_t pointer =
        get_pair(REG_SDMA0_SDMA0_GFX_RB_RPTR, REG_SDMA0_SDMA0_GFX_RB_RPTR_HI) & ~kDwordMask;
    if (pointer != ring.read_pointer) forget_packet(ring);
    ring.read_pointer = pointer;
    ring.reported = pointer;
}

/// Leaves the read pointer alone: its registers are up to date only between steps, and a packet of
/// the ring may do the write.
void Engine::on_write_pointer() {
    state_.queues[0].write_pointer =
        get_pair(REG_SDMA0_SDMA0_GFX_RB_WPTR, REG_SDMA0_SDMA0_GFX_RB_WPTR_HI) & ~kDwordMask;
}

void Engine::configure_kernel_ring() {
    Queue& ring = state_.queues[0];
    const std::uint32_t control = get(REG_SDMA0_SDMA0_GFX_RB_CNTL);
    const std::uint64_t base = get_pair(REG_SDMA0_SDMA0_GFX_RB_BASE, REG_SDMA0_SDMA0_GFX_RB_BASE_HI)
                               << kBaseShift;
    if (base != ring.base) forget_packet(ring);
    ring.base = base;
    ring.ring_log2 = std::min(HW_GET(SDMA_RB_CNTL, RB_SIZE, control), kMaxRingLog2);
    ring.vmid = static_cast<std::uint8_t>(HW_GET(SDMA_RB_CNTL, RB_VMID, control));
    const bool is_reported = HW_GET(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, control) != 0;
    const std::uint64_t report =
        get_pair(REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_LO, REG_SDMA0_SDMA0_GFX_RB_RPTR_ADDR_HI);
    ring.report_address = is_reported ? report & ~kDwordMask : 0;
    ring.has_doorbell = HW_GET(SDMA_DOORBELL, ENABLE, get(REG_SDMA0_SDMA0_GFX_DOORBELL));
    ring.doorbell = HW_GET(SDMA_DOORBELL_OFFSET, OFFSET, get(REG_SDMA0_SDMA0_GFX_DOORBELL_OFFSET));
}

void Engine::show_read_pointer() {
    const std::uint64_t value = state_.queues[0].read_pointer;
    regs_.set(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR), low32(value));
    regs_.set(reg(REG_SDMA0_SDMA0_GFX_RB_RPTR_HI), high32(value));
}

/// True if the driver publishes the write pointer of the kernel's ring in memory, not by a
/// doorbell.
bool Engine::polls_write_pointer() const {
    const Queue& ring = state_.queues[0];
    const std::uint32_t control = get(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_CNTL);
    return ring.is_mapped != 0 && ring.has_doorbell == 0 &&
           HW_GET(SDMA_WPTR_POLL_CNTL, F32_POLL, control) != 0;
}

void Engine::poll_write_pointer() {
    if (!polls_write_pointer()) return;
    Queue& ring = state_.queues[0];
    const std::uint64_t address = get_pair(REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_ADDR_LO,
                                           REG_SDMA0_SDMA0_GFX_RB_WPTR_POLL_ADDR_HI);
    mem::Port& memory = hooks_.port(Vmid{ring.vmid});
    std::uint64_t value = 0;
    if (memory.read(GpuVa{address & ~kDwordMask}, bytes_of(value)))
        ring.write_pointer = value & ~kDwordMask;
    memory.clear_fault();
}

// ---- mapping

/// Copies the MQD once and checks the copy, so later changes of the MQD do not affect the queue.
bool Engine::map(const MapRequest& request) {
    const auto users = std::span(state_.queues).subspan(1);
    const auto is_same = [&](const Queue& q) { return q.is_mapped && q.mqd == raw(request.mqd); };
    if (std::any_of(users.begin(), users.end(), is_same)) return true;
    const auto slot =
        std::find_if(users.begin(), users.end(), [](const Queue& q) { return q.is_mapped == 0; });
    if (slot == users.end() || raw(request.vmid) >= mem::kVmids) return false;

    std::array<std::uint32_t, SDMA_MQD_DWORDS> mqd{};
    mem::Port& kernel = hooks_.port(Vmid{0});
    const bool is_read = kernel.read(request.mqd, std::as_writable_bytes(std::span(mqd)));
    kernel.clear_fault();
    const std::uint32_t log2 = HW_GET(SDMA_RB_CNTL, RB_SIZE, mqd[SDMA_MQD_RB_CNTL]);
    if (!is_read || log2 > kMaxRingLog2) return false;

    Queue queue;
    queue.is_mapped = 1;
    queue.mqd = raw(request.mqd);
    queue.ring_log2 = log2;
    queue.base = join(mqd[SDMA_MQD_RB_BASE], mqd[SDMA_MQD_RB_BASE_HI]) << kBaseShift;
    queue.read_pointer = join(mqd[SDMA_MQD_RB_RPTR], mqd[SDMA_MQD_RB_RPTR_HI]) & ~kDwordMask;
    queue.write_pointer = join(mqd[SDMA_MQD_RB_WPTR], mqd[SDMA_MQD_RB_WPTR_HI]) & ~kDwordMask;
    queue.reported = queue.read_pointer;
    queue.report_address =
        join(mqd[SDMA_MQD_RPTR_ADDR_LO], mqd[SDMA_MQD_RPTR_ADDR_HI]) & ~kDwordMask;
    queue.doorbell = raw(request.doorbell);
    queue.has_doorbell = 1;
    queue.vmid = raw(request.vmid);
    queue.pasid = request.pasid;
    load_position(queue, mqd);

    mem::Port& user = hooks_.port(request.vmid);
    std::uint64_t published = 0;
    if (raw(request.write_pointer) != 0 && user.read(request.write_pointer, bytes_of(published)))
        queue.write_pointer = published & ~kDwordMask;
    user.clear_fault();
    *slot = queue;
    return true;
}

bool Engine::unmap(DoorbellIndex doorbell) {
    for (Queue& queue : std::span(state_.queues).subspan(1)) {
        if (queue.is_mapped == 0 || queue.doorbell != raw(doorbell)) continue;
        save_position(queue);
        queue = {};
        return true;
    }
    return false;
}

/// Writes pointers and position to the MQD. If the MQD cannot be written, counts a fault; the
/// position is lost.
void Engine::save_position(const Queue& queue) {
    const std::array pointers = {queue.read_pointer, queue.write_pointer};
    const SavedPosition position{kPositionMark, queue.ib_depth, queue.progress,
                                 queue.skip,    queue.polls,    queue.ibs};
    mem::Port& kernel = hooks_.port(Vmid{0});
    if (!kernel.write(GpuVa{queue.mqd + SDMA_MQD_RB_RPTR * kDwordBytes}, bytes_of(pointers)) ||
        !kernel.write(GpuVa{queue.mqd + kPositionOffset}, bytes_of(position)))
        ++state_.faults;
    kernel.clear_fault();
}

/// The position was in guest memory, so its values are checked: sizes are masked to the width of
/// their packet fields, and a packet whose progress is beyond its end counts as done.
void Engine::load_position(Queue& queue, std::span<const std::uint32_t> mqd) {
    const auto saved = softgpu::load<SavedPosition>(std::as_bytes(mqd), kPositionOffset);
    if (saved.mark != kPositionMark) return;
    queue.skip = saved.skip & HW_FIELD_MASK(SDMA_COND_EXE_4, COUNT);
    queue.progress = saved.progress;
    queue.polls = saved.polls;
    queue.ib_depth = static_cast<std::uint8_t>(std::min<std::uint32_t>(saved.ib_depth, kIbDepth));
    for (unsigned i = 0; i < kIbDepth; ++i) {
        const Ib& ib = saved.ibs[i];
        const std::uint32_t dwords = ib.dwords & kMaxIbDwords;
        queue.ibs[i] = {ib.address & ~kDwordMask, dwords, std::min(ib.position, dwords), queue.vmid,
                        0};
    }
}

bool Engine::doorbell(DoorbellIndex index, std::uint64_t value) {
    for (Queue& queue : state_.queues) {
        if (queue.has_doorbell == 0 || queue.doorbell != raw(index)) continue;
        // A driver may write the doorbell before it enables the ring; such a write is ignored.
        if (queue.is_mapped != 0) queue.write_pointer = value & ~kDwordMask;
        if (&queue == &state_.queues[0] && queue.is_mapped != 0) {
            regs_.set(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR), low32(queue.write_pointer));
            regs_.set(reg(REG_SDMA0_SDMA0_GFX_RB_WPTR_HI), high32(queue.write_pointer));
        }
        return true;
    }
    return false;
}

// ---- running

bool Engine::is_halted() const {
    return HW_GET(SDMA_F32_CNTL, HALT, get(REG_SDMA0_SDMA0_F32_CNTL)) != 0;
}

std::uint64_t Engine::pending_dwords(const Queue& queue) {
    return ((queue.write_pointer - queue.read_pointer) & (ring_bytes(queue) - 1)) / kDwordBytes;
}

bool Engine::is_active(const Queue& queue) const {
    return queue.is_mapped != 0 && queue.is_halted == 0 &&
           (queue.ib_depth != 0 || pending_dwords(queue) != 0);
}

/// Checks the condition without executing the packet, because has_work() also runs while the VF is
/// off the engine.
bool Engine::is_wait_over(const Queue& queue) {
    const Wait& wait = queue.wait;
    switch (wait.kind) {
        case WaitKind::None:
        case WaitKind::Retry:
            return true;
        case WaitKind::MoreData:
            return queue.write_pointer != wait.address;
        case WaitKind::Register: {
            const std::uint32_t value =
                regs_.read(RegisterIndex{static_cast<std::uint32_t>(wait.address)});
            return compare(wait.function, value & wait.mask, wait.reference);
        }
        case WaitKind::Memory:
            break;
    }
    mem::Port& memory = hooks_.port(Vmid{wait.vmid});
    std::uint64_t value = 0;
    const auto bytes = bytes_of(value).first(std::min<std::size_t>(wait.width, sizeof(value)));
    const bool is_read = memory.read(GpuVa{wait.address}, bytes);
    memory.clear_fault();
    // An unreadable address ends the wait, so that step() executes the packet and reports the
    // fault.
    return !is_read || compare(wait.function, value & wait.mask, wait.reference);
}

bool Engine::has_work() {
    if (is_halted()) return false;
    poll_write_pointer();
    return std::any_of(state_.queues.begin(), state_.queues.end(), [this](const Queue& queue) {
        return is_active(queue) && is_wait_over(queue);
    });
}

/// A doorbell ends only a wait for more dwords. Memory and registers change without a report to the
/// engine, and a poll with a retry count ends only by further polls.
bool Engine::needs_polling() const {
    if (is_halted()) return false;
    if (polls_write_pointer()) return true;
    return std::any_of(state_.queues.begin(), state_.queues.end(), [this](const Queue& queue) {
        return is_active(queue) && queue.wait.kind != WaitKind::None &&
               queue.wait.kind != WaitKind::MoreData;
    });
}

/// A queue that only waits for more dwords in its ring is idle, not blocked: its doorbell ends the
/// wait.
StepResult Engine::step(StepBudget budget) {
    if (is_halted()) return StepResult::Idle;
    budget_ = budget;
    poll_write_pointer();
    bool is_blocked = false;
    for (std::uint32_t i = 0; i < kQueues; ++i) {
        const std::uint32_t which = (state_.next_queue + i) % kQueues;
        Queue& queue = state_.queues[which];
        if (!is_active(queue)) continue;
        if (run_queue(queue)) {
            state_.next_queue = (which + 1) % kQueues;
            return StepResult::Progress;
        }
        is_blocked = is_blocked || queue.wait.kind != WaitKind::MoreData;
    }
    return is_blocked ? StepResult::Blocked : StepResult::Idle;
}

/// Progress is a completed packet or skip, moved data or a halt. A failed poll is no progress, even
/// if it counts as a retry.
bool Engine::run_queue(Queue& queue) {
    queue_ = &queue;
    const std::uint64_t packets = state_.packets;
    const std::uint64_t bytes = state_.bytes;
    bool is_going = true;
    while (is_going && !budget_.is_spent() && is_active(queue)) {
        const Outcome outcome = run_packet();
        finish_packet(outcome);
        is_going = outcome == Outcome::Done || outcome == Outcome::Partial;
    }
    report_read_pointer();
    queue_ = nullptr;
    return packets != state_.packets || bytes != state_.bytes || queue.is_halted != 0;
}

/// Passes over the dwords that a NOP or COND_EXE skips, as far as the stream has them already. Done
/// if no dword is left to skip; else Starved in a ring, Bad in an IB.
Engine::Outcome Engine::skip_dwords() {
    const std::uint64_t passed = std::min<std::uint64_t>(queue_->skip, available());
    queue_->skip -= static_cast<std::uint32_t>(passed);
    length_ = passed;
    if (queue_->skip == 0) return Outcome::Done;
    advance(passed);
    return truncation_outcome();
}

/// Applies the outcome of a packet to its queue.
void Engine::finish_packet(Outcome outcome) {
    Queue& queue = *queue_;
    if (outcome != Outcome::Blocked) queue.wait = {};
    switch (outcome) {
        case Outcome::Done:
            advance(length_);
            queue.progress = 0;
            queue.polls = 0;
            ++state_.packets;
            --budget_.packets;
            if (call_.dwords != 0) queue.ibs[queue.ib_depth++] = call_;
            while (queue.ib_depth != 0 && available() == 0 && queue.skip == 0) --queue.ib_depth;
            break;
        case Outcome::Partial:
        case Outcome::Blocked:
            break;
        case Outcome::Starved:
            queue.wait.kind = WaitKind::MoreData;
            queue.wait.address = queue.write_pointer;
            break;
        case Outcome::Fault: {
            mem::Port& memory = port();
            mem::Fault fault = memory.fault();
            if (!memory.has_fault()) fault.kind = mem::FaultKind::OutOfRange;
            memory.clear_fault();
            queue.is_halted = 1;
            ++state_.faults;
            hooks_.fault({mem::Hub::Mm, vmid(), queue.pasid, fault});
            break;
        }
        case Outcome::Bad:
            queue.is_halted = 1;
            ++state_.bad_packets;
            break;
    }
}

/// Called once per step of a queue, after all writes of its packets.
void Engine::report_read_pointer() {
    Queue& queue = *queue_;
    if (queue.reported == queue.read_pointer) return;
    queue.reported = queue.read_pointer;
    if (&queue == &state_.queues[0]) show_read_pointer();
    if (queue.report_address == 0) return;
    mem::Port& memory = hooks_.port(Vmid{queue.vmid});
    std::atomic_thread_fence(std::memory_order_release);
    if (!memory.write(GpuVa{queue.report_address}, bytes_of(queue.reported))) ++state_.faults;
    memory.clear_fault();
}

// ---- the stream

Vmid Engine::vmid() const {
    const Queue& queue = *queue_;
    if (queue.ib_depth == 0) return Vmid{queue.vmid};
    return Vmid{static_cast<std::uint8_t>(queue.ibs[queue.ib_depth - 1u].vmid)};
}

bool Engine::is_privileged() const {
    return queue_ == &state_.queues[0] && raw(vmid()) == 0;
}

std::uint64_t Engine::available() const {
    const Queue& queue = *queue_;
    if (queue.ib_depth == 0) return pending_dwords(queue);
    const Ib& ib = queue.ibs[queue.ib_depth - 1u];
    return ib.dwords - ib.position;
}

/// In a ring the rest of the packet may follow, unless the packet is too long for the ring. In an
/// IB the rest never follows. Skipped dwords need not fit into the ring, because skip_dwords()
/// takes them in pieces.
Engine::Outcome Engine::truncation_outcome() const {
    const bool is_in_ring = queue_->ib_depth == 0;
    const bool fits = length_ * kDwordBytes < ring_bytes(*queue_) || queue_->skip != 0;
    return is_in_ring && fits ? Outcome::Starved : Outcome::Bad;
}

bool Engine::fetch(std::uint64_t first, std::span<std::uint32_t> out) {
    const Queue& queue = *queue_;
    if (queue.ib_depth != 0) {
        const Ib& ib = queue.ibs[queue.ib_depth - 1u];
        return port().read(GpuVa{ib.address + (ib.position + first) * kDwordBytes},
                           std::as_writable_bytes(out));
    }
    const std::uint64_t bytes = ring_bytes(queue);
    std::uint64_t at = (queue.read_pointer + first * kDwordBytes) & (bytes - 1);
    while (!out.empty()) {
        const auto part = out.first(std::min<std::size_t>(out.size(), (bytes - at) / kDwordBytes));
        if (!port().read(GpuVa{queue.base + at}, std::as_writable_bytes(part))) return false;
        out = out.subspan(part.size());
        at = 0;
    }
    return true;
}

void Engine::advance(std::uint64_t dwords) {
    Queue& queue = *queue_;
    if (queue.ib_depth == 0)
        queue.read_pointer += dwords * kDwordBytes;
    else
        queue.ibs[queue.ib_depth - 1u].position += static_cast<std::uint32_t>(dwords);
}

// ---- block

void Engine::reset() {
    state_ = {};
}

void Engine::save(Writer& out) const {
    out.value(state_);
}

Result<> Engine::load(Reader& in) {
    State state;
    Result<> read = in.value(state);
    if (read && !(std::all_of(state.queues.begin(), state.queues.end(), is_consistent) &&
                  state.next_queue < kQueues))
        read = fail(EPROTO, "state stream holds an impossible SDMA queue");
    state_ = read ? state : State{};
    return read;
}

}  // namespace vgpu::softgpu::sdma
