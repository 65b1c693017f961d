// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/queue.h"

#include "pf-driver/hw/aql.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/ih.h"

namespace vgpu::softgpu::cp {

namespace {

constexpr unsigned kHqdsPerMe = CP_PIPES_PER_MEC * CP_QUEUES_PER_PIPE;
/// CP_HQD_PQ_BASE holds an address in units of 256 bytes.
constexpr unsigned kRingAddressShift = 8;
/// Maximum of QUEUE_SIZE; larger values count as the maximum. A ring has 2 << QUEUE_SIZE dwords.
constexpr std::uint32_t kMaxQueueSize = 26;
constexpr std::uint64_t kAqlDwords = AQL_PACKET_BYTES / 4;

/// The largest number not above `limit` that has the same low 28 bits as `low`.
std::uint64_t extend_index(std::uint64_t low, std::uint64_t limit) {
    constexpr std::uint64_t kMask = (1ull << 28) - 1;
    return limit - ((limit - low) & kMask);
}

}  // namespace

bool Queue::is_aql() const {
    return !is_gfx() && HW_GET(CP_HQD_AQL_CONTROL, CONTROL0, reg(REG_GC_CP_HQD_AQL_CONTROL)) != 0;
}

bool Queue::is_privileged() const {
    return is_gfx() || HW_GET(CP_HQD_PQ_CONTROL, PRIV_STATE, reg(REG_GC_CP_HQD_PQ_CONTROL)) != 0;
}

Vmid Queue::vmid() const {
    return Vmid{static_cast<std::uint8_t>(HW_GET(CP_HQD_VMID, VMID, reg(REG_GC_CP_HQD_VMID)))};
}

GpuVa Queue::ring() const {
    return GpuVa{reg_pair(REG_GC_CP_HQD_PQ_BASE) << kRingAddressShift};
}

std::uint64_t Queue::ring_dwords() const {
    const std::uint32_t size = HW_GET(CP_HQD_PQ_CONTROL, QUEUE_SIZE, reg(REG_GC_CP_HQD_PQ_CONTROL));
    return 2ull << (size < kMaxQueueSize ? size : kMaxQueueSize);
}

GpuVa Queue::report_address() const {
    return GpuVa{reg_pair(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR) & ~3ull};
}

GpuVa Queue::mqd() const {
    return GpuVa{reg_pair(REG_GC_CP_MQD_BASE_ADDR)};
}

bool Queue::listens_to(DoorbellIndex index) const {
    const std::uint32_t control = reg(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL);
    return is_mapped() && HW_GET(CP_HQD_PQ_DOORBELL_CONTROL, EN, control) != 0 &&
           doorbell() == index;
}

DoorbellIndex Queue::doorbell() const {
    return DoorbellIndex{
        HW_GET(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET, reg(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL))};
}

/// ME 1 and 2 are the compute processors (MECs). Ids count the queues of a pipe, then the pipes of
/// an ME, then the MEs.
QueuePlace Queue::place() const {
    if (is_gfx()) return {};
    const unsigned index = raw(id);
    return {.me = 1 + index / kHqdsPerMe,
            .pipe = index / CP_QUEUES_PER_PIPE % CP_PIPES_PER_MEC,
            .queue = index % CP_QUEUES_PER_PIPE};
}

std::uint8_t Queue::ring_id() const {
    const QueuePlace at = place();
    return IH_CP_RING_ID(at.me, at.pipe, at.queue);
}

std::array<std::uint32_t, 4> Queue::cu_mask() const {
    return {state.sh[MQD_STATIC_THREAD_MGMT_SE0 - MQD_SH_FIRST],
            state.sh[MQD_STATIC_THREAD_MGMT_SE1 - MQD_SH_FIRST],
            state.sh[MQD_STATIC_THREAD_MGMT_SE2 - MQD_SH_FIRST],
            state.sh[MQD_STATIC_THREAD_MGMT_SE3 - MQD_SH_FIRST]};
}

/// CP_HQD_PQ_RPTR has 32 bits and counts dwords. An AQL packet has 16 dwords, so the register gives
/// only the low 28 bits of the 64-bit packet index. The other bits follow from the write pointer,
/// which is at most a ring ahead.
void Queue::load_pointers() {
    const std::uint64_t rptr = reg(REG_GC_CP_HQD_PQ_RPTR);
    state.wptr = reg_pair(REG_GC_CP_HQD_PQ_WPTR_LO);
    state.rptr =
        is_aql() ? extend_index(rptr / kAqlDwords, state.wptr) : rptr & (ring_dwords() - 1);
    state.next = state.rptr;
    state.reported = state.rptr;
}

void Queue::store_pointers() {
    const std::uint64_t rptr = is_aql() ? state.rptr * kAqlDwords : state.rptr;
    set_reg(REG_GC_CP_HQD_PQ_RPTR, low32(rptr));
    set_reg(REG_GC_CP_HQD_PQ_WPTR_LO, low32(state.wptr));
    set_reg(REG_GC_CP_HQD_PQ_WPTR_HI, high32(state.wptr));
}

void Queue::clear_progress() {
    QueueState fresh;
    fresh.hqd = state.hqd;
    fresh.sh = state.sh;
    state = fresh;
    free_stream();
}

/// Assigns a new vector, because clear() would keep the memory.
void Queue::free_stream() {
    stream = std::vector<std::byte>();
    stream_position = 0;
}

}  // namespace vgpu::softgpu::cp
