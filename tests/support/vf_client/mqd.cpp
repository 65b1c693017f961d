// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/mqd.h"

#include <algorithm>
#include <bit>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/mqd.h"
#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {
namespace {

using softgpu::high32;
using softgpu::low32;

constexpr std::uint32_t kPreloadSize = 0x53;
constexpr std::uint32_t kKernelEopControl = 9;                 // 4096 bytes
constexpr std::uint32_t kIbControl = (3u << 20) | (1u << 23);  // MIN_IB_AVAIL, IB_EXE_DISABLE
constexpr std::uint32_t kDispatchPointerByCp = 1u << 14;       // CP_HQD_HQ_STATUS0

void put(const Buffer& mqd, std::uint32_t dword, std::uint32_t value) {
    mqd.store<std::uint32_t>(std::uint64_t{dword} * 4, value);
}
void put64(const Buffer& mqd, std::uint32_t dword, std::uint64_t value) {
    put(mqd, dword, low32(value));
    put(mqd, dword + 1, high32(value));
}

std::uint32_t size_code(std::uint64_t dwords) {
    return static_cast<std::uint32_t>(std::countr_zero(dwords)) - 1;
}

void start(const Buffer& mqd, std::uint64_t bytes) {
    std::ranges::fill(mqd.cpu.first(bytes), std::byte{0});
}

}  // namespace

std::uint32_t pq_control_kiq() {
    return HW_PREP(CP_HQD_PQ_CONTROL, RPTR_BLOCK_SIZE, 9) |
           HW_PREP(CP_HQD_PQ_CONTROL, PRIV_STATE, 1) | HW_PREP(CP_HQD_PQ_CONTROL, KMD_QUEUE, 1);
}

std::uint32_t pq_control_hiq() {
    return HW_PREP(CP_HQD_PQ_CONTROL, RPTR_BLOCK_SIZE, 5) |
           HW_PREP(CP_HQD_PQ_CONTROL, UNORD_DISPATCH, 1) |
           HW_PREP(CP_HQD_PQ_CONTROL, PRIV_STATE, 1) | HW_PREP(CP_HQD_PQ_CONTROL, KMD_QUEUE, 1);
}

void write_kernel_mqd(const Buffer& mqd, const KernelMqd& queue) {
    start(mqd, MQD_BYTES);
    put(mqd, MQD_HEADER, MQD_HEADER_VALUE);
    put(mqd, MQD_STATIC_THREAD_MGMT_SE0, ~0u);
    put(mqd, MQD_STATIC_THREAD_MGMT_SE1, ~0u);
    put(mqd, MQD_STATIC_THREAD_MGMT_SE2, ~0u);
    put(mqd, MQD_STATIC_THREAD_MGMT_SE3, ~0u);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_MQD_BASE_ADDR), mqd.address);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_ACTIVE), 1);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PERSISTENT_STATE),
        HW_PREP(CP_HQD_PERSISTENT_STATE, PRELOAD_SIZE, kPreloadSize));
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_BASE), queue.ring >> 8);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR), queue.rptr);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR), queue.wptr);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL),
        HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET, queue.doorbell) |
            HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, EN, 1));
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_CONTROL),
        queue.pq_control | HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, size_code(queue.ring_dwords)));
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_IB_CONTROL), 3u << 20);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_EOP_BASE_ADDR), queue.eop >> 8);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_EOP_CONTROL), kKernelEopControl);
}

void write_aql_mqd(const Buffer& mqd, const AqlMqd& queue) {
    start(mqd, MQD_BYTES);
    put(mqd, MQD_HEADER, MQD_HEADER_VALUE);
    for (const auto se : {MQD_STATIC_THREAD_MGMT_SE0, MQD_STATIC_THREAD_MGMT_SE1,
                          MQD_STATIC_THREAD_MGMT_SE2, MQD_STATIC_THREAD_MGMT_SE3})
        put(mqd, se, ~0u);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_MQD_BASE_ADDR), mqd.address);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PERSISTENT_STATE),
        HW_PREP(CP_HQD_PERSISTENT_STATE, PRELOAD_REQ, 1) |
            HW_PREP(CP_HQD_PERSISTENT_STATE, PRELOAD_SIZE, kPreloadSize) |
            HW_PREP(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE, 1));
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_QUANTUM),
        HW_PREP(CP_HQD_QUANTUM, EN, 1) | HW_PREP(CP_HQD_QUANTUM, SCALE, 1) |
            HW_PREP(CP_HQD_QUANTUM, DURATION, 1));
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_BASE), queue.ring >> 8);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_RPTR_REPORT_ADDR), queue.read_dispatch_id);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_WPTR_POLL_ADDR), queue.write_dispatch_id);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL),
        HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET, queue.doorbell) |
            HW_PREP(CP_HQD_PQ_DOORBELL_CONTROL, BIF_DROP, 1));
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_CONTROL),
        HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, size_code(std::uint64_t{queue.packets} * 16)) |
            HW_PREP(CP_HQD_PQ_CONTROL, RPTR_BLOCK_SIZE, 5) |
            HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_FULL_EN, 1) |
            HW_PREP(CP_HQD_PQ_CONTROL, WPP_CLAMP_EN, 1) |
            HW_PREP(CP_HQD_PQ_CONTROL, SLOT_BASED_WPTR, 2) |
            HW_PREP(CP_HQD_PQ_CONTROL, NO_UPDATE_RPTR, 1) |
            HW_PREP(CP_HQD_PQ_CONTROL, UNORD_DISPATCH, 1));
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_IB_CONTROL), kIbControl);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_HQ_STATUS0), kDispatchPointerByCp);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_EOP_BASE_ADDR), queue.eop >> 8);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_EOP_CONTROL), kKernelEopControl);
    put64(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO), queue.save_area);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_CTX_SAVE_SIZE), queue.save_bytes);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_CNTL_STACK_SIZE), queue.control_stack_bytes);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_CNTL_STACK_OFFSET), queue.control_stack_bytes);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_WG_STATE_OFFSET), queue.control_stack_bytes);
    put(mqd, MQD_DWORD_OF(REG_GC_CP_HQD_AQL_CONTROL), 1);
}

void write_sdma_mqd(const Buffer& mqd, const SdmaMqd& queue) {
    constexpr std::uint32_t kWriteBackTimer = 6u << 16;
    start(mqd, SDMA_MQD_DWORDS * 4);
    put(mqd, SDMA_MQD_RB_CNTL,
        HW_PREP(SDMA_RB_CNTL, RB_SIZE, size_code(queue.ring_bytes / 4) + 1) |
            HW_PREP(SDMA_RB_CNTL, RPTR_WRITEBACK_ENABLE, 1) | kWriteBackTimer);
    put64(mqd, SDMA_MQD_RB_BASE, queue.ring >> 8);
    put(mqd, SDMA_MQD_RPTR_ADDR_HI, high32(queue.rptr));
    put(mqd, SDMA_MQD_RPTR_ADDR_LO, low32(queue.rptr));
    put(mqd, SDMA_MQD_DOORBELL_OFFSET, HW_PREP(SDMA_DOORBELL_OFFSET, OFFSET, queue.doorbell));
    put(mqd, SDMA_MQD_WPTR_POLL_ADDR_HI, high32(queue.wptr));
    put(mqd, SDMA_MQD_WPTR_POLL_ADDR_LO, low32(queue.wptr));
    put(mqd, SDMA_MQD_ENGINE_ID, queue.engine);
    put(mqd, SDMA_MQD_QUEUE_ID, queue.queue);
}

}  // namespace vgpu::test
