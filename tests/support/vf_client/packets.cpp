// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/packets.h"

#include <array>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::test {

using softgpu::high32;
using softgpu::low32;

namespace pm4 {
namespace {

// values the stock driver uses
constexpr std::uint32_t kUnmapLatency = 40;  // 100 ms units
constexpr std::uint32_t kProcessQuantumMs = 10;
constexpr std::uint32_t kCacheFlushAndInvTs = 0x14;
constexpr std::uint32_t kEndOfPipe = 5;
constexpr std::uint32_t kFenceAfterWriteAck = 2;
constexpr std::uint32_t kPollInterval = 4;
constexpr std::uint32_t kAcquireWholeIcache = 0x28840000;
constexpr std::uint32_t kNoBodyNop = 0xffff1000;

Dwords of(std::uint32_t opcode, std::initializer_list<std::uint32_t> body) {
    return packet(opcode, std::span(body.begin(), body.size()));
}

std::uint32_t map_queue_common(const MapQueue& queue) {
    return HW_PREP(MAP_QUEUES_1, ENGINE_SEL, queue.engine) | HW_PREP(MAP_QUEUES_1, NUM_QUEUES, 1);
}

Dwords map_queue(std::uint32_t control, const MapQueue& queue) {
    return of(PM4_OP_MAP_QUEUES,
              {control, HW_PREP(MAP_QUEUES_2, DOORBELL_OFFSET, queue.doorbell), low32(queue.mqd),
               high32(queue.mqd), low32(queue.wptr), high32(queue.wptr)});
}

}  // namespace

Dwords packet(std::uint32_t opcode, std::span<const std::uint32_t> body) {
    Dwords out{PM4_HEADER_OF(opcode, static_cast<std::uint32_t>(body.size()))};
    out.insert(out.end(), body.begin(), body.end());
    return out;
}

Dwords set_resources(std::uint32_t vmid_mask, std::uint64_t queue_mask, std::uint32_t queue_type) {
    const auto control = HW_PREP(SET_RESOURCES_1, VMID_MASK, vmid_mask) |
                         HW_PREP(SET_RESOURCES_1, UNMAP_LATENCY, kUnmapLatency) |
                         HW_PREP(SET_RESOURCES_1, QUEUE_TYPE, queue_type);
    return of(PM4_OP_SET_RESOURCES, {control, low32(queue_mask), high32(queue_mask), 0, 0, 0, 0});
}

Dwords map_process(const MapProcess& process) {
    std::array<std::uint32_t, 15> body{};
    body[0] = HW_PREP(MAP_PROCESS_1, PASID, process.pasid) |
              HW_PREP(MAP_PROCESS_1, PROCESS_QUANTUM, kProcessQuantumMs);
    body[1] = low32(process.page_directory);
    body[2] = high32(process.page_directory);
    body[3] = process.sh_mem_bases;
    body[4] = process.sh_mem_config;
    body[12] = HW_PREP(MAP_PROCESS_13, SDMA_ENABLE, 1) |
               HW_PREP(MAP_PROCESS_13, NUM_QUEUES, process.queues);
    return packet(PM4_OP_MAP_PROCESS, body);
}

Dwords map_queue_at_slot(const MapQueue& queue) {
    return map_queue(map_queue_common(queue) | HW_PREP(MAP_QUEUES_1, ME, queue.me - 1) |
                         HW_PREP(MAP_QUEUES_1, PIPE, queue.pipe) |
                         HW_PREP(MAP_QUEUES_1, QUEUE, queue.queue),
                     queue);
}

Dwords map_queue_anywhere(const MapQueue& queue) {
    return map_queue(map_queue_common(queue) | HW_PREP(MAP_QUEUES_1, QUEUE_SEL, 1), queue);
}

Dwords unmap_queues(std::uint32_t select, std::uint32_t action, std::uint32_t pasid_or_doorbell) {
    const auto control =
        HW_PREP(UNMAP_QUEUES_1, ACTION, action) | HW_PREP(UNMAP_QUEUES_1, QUEUE_SEL, select) |
        HW_PREP(UNMAP_QUEUES_1, NUM_QUEUES, select == PM4_UNMAP_BY_DOORBELL ? 1 : 0);
    const auto which = select == PM4_UNMAP_BY_DOORBELL
                           ? HW_PREP(UNMAP_QUEUES_2, DOORBELL_OFFSET, pasid_or_doorbell)
                           : HW_PREP(UNMAP_QUEUES_2, PASID, pasid_or_doorbell);
    return of(PM4_OP_UNMAP_QUEUES, {control, which, 0, 0, 0});
}

Dwords query_status(std::uint64_t fence, std::uint64_t value) {
    return of(PM4_OP_QUERY_STATUS, {HW_PREP(QUERY_STATUS_1, COMMAND, kFenceAfterWriteAck), 0,
                                    low32(fence), high32(fence), low32(value), high32(value)});
}

Dwords run_list(std::uint64_t address, std::uint32_t dwords) {
    return of(PM4_OP_RUN_LIST,
              {low32(address), high32(address),
               HW_PREP(RUN_LIST_3, IB_SIZE, dwords) | HW_PREP(RUN_LIST_3, VALID, 1)});
}

Dwords invalidate_tlbs(std::uint32_t pasid) {
    return of(PM4_OP_INVALIDATE_TLBS,
              {HW_PREP(INVALIDATE_TLBS_1, DST_SEL, 1) | HW_PREP(INVALIDATE_TLBS_1, ALL_HUB, 1) |
               HW_PREP(INVALIDATE_TLBS_1, PASID, pasid)});
}

Dwords nop(std::uint32_t body_dwords) {
    if (body_dwords == 0) return {kNoBodyNop};
    return packet(PM4_OP_NOP, Dwords(body_dwords, 0));
}

Dwords write_memory(std::uint64_t address, std::span<const std::uint32_t> data) {
    Dwords body{
        HW_PREP(WRITE_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY) | HW_PREP(WRITE_DATA_1, WR_CONFIRM, 1),
        low32(address), high32(address)};
    body.insert(body.end(), data.begin(), data.end());
    return packet(PM4_OP_WRITE_DATA, body);
}

Dwords write_register(std::uint32_t reg, std::uint32_t value) {
    return of(PM4_OP_WRITE_DATA, {HW_PREP(WRITE_DATA_1, ONE_ADDR, 1), reg, 0, value});
}

Dwords register_to_memory(std::uint32_t reg, std::uint64_t address) {
    return of(PM4_OP_COPY_DATA, {HW_PREP(COPY_DATA_1, SRC_SEL, PM4_COPY_REGISTER) |
                                     HW_PREP(COPY_DATA_1, DST_SEL, PM4_COPY_DST_MEMORY) |
                                     HW_PREP(COPY_DATA_1, WR_CONFIRM, 1),
                                 reg, 0, low32(address), high32(address)});
}

Dwords set_uconfig_reg(std::uint32_t reg, std::uint32_t value) {
    return of(PM4_OP_SET_UCONFIG_REG, {reg - HW_REG_BASE_UCONFIG, value});
}

Dwords set_sh_reg(std::uint32_t reg, std::uint32_t value) {
    return of(PM4_OP_SET_SH_REG, {reg - HW_REG_BASE_SH, value});
}

Dwords release_mem(std::uint64_t address, std::uint64_t value, std::uint32_t interrupt_context) {
    const auto event = HW_PREP(RELEASE_MEM_1, EVENT_TYPE, kCacheFlushAndInvTs) |
                       HW_PREP(RELEASE_MEM_1, EVENT_INDEX, kEndOfPipe);
    const auto select = HW_PREP(RELEASE_MEM_2, INT_SEL, interrupt_context != 0 ? 2 : 0) |
                        HW_PREP(RELEASE_MEM_2, DATA_SEL, 2);
    return of(PM4_OP_RELEASE_MEM, {event, select, low32(address), high32(address), low32(value),
                                   high32(value), interrupt_context});
}

Dwords acquire_mem_instruction_cache() {
    return of(PM4_OP_ACQUIRE_MEM, {kAcquireWholeIcache, ~0u, 0xff, 0, 0, kPollInterval});
}

Dwords wait_memory(std::uint64_t address, std::uint32_t reference, std::uint32_t mask) {
    return of(PM4_OP_WAIT_REG_MEM,
              {HW_PREP(WAIT_REG_MEM_1, FUNCTION, PM4_COMPARE_EQUAL) |
                   HW_PREP(WAIT_REG_MEM_1, MEM_SPACE, 1),
               low32(address), high32(address), reference, mask, kPollInterval});
}

Dwords write_and_wait_register(std::uint32_t reg_a, std::uint32_t reg_b, std::uint32_t reference,
                               std::uint32_t mask) {
    return of(PM4_OP_WAIT_REG_MEM, {HW_PREP(WAIT_REG_MEM_1, FUNCTION, PM4_COMPARE_EQUAL) |
                                        HW_PREP(WAIT_REG_MEM_1, OPERATION, 1),
                                    reg_a, reg_b, reference, mask, kPollInterval});
}

Dwords indirect_buffer(std::uint64_t address, std::uint32_t dwords, std::uint32_t vmid) {
    return of(PM4_OP_INDIRECT_BUFFER,
              {low32(address), high32(address),
               HW_PREP(INDIRECT_BUFFER_3, IB_SIZE, dwords) | HW_PREP(INDIRECT_BUFFER_3, VALID, 1) |
                   HW_PREP(INDIRECT_BUFFER_3, VMID, vmid)});
}

}  // namespace pm4

namespace sdma {
namespace {

std::uint32_t header(std::uint32_t op, std::uint32_t sub_op = SDMA_SUB_OP_LINEAR) {
    return HW_PREP(SDMA_HEADER, OP, op) | HW_PREP(SDMA_HEADER, SUB_OP, sub_op);
}

constexpr std::uint32_t kFillDwords = 2;
constexpr std::uint32_t kPollInterval = 10;

}  // namespace

Dwords nop(std::uint32_t data_dwords) {
    Dwords out{header(SDMA_OP_NOP) | HW_PREP(SDMA_NOP, COUNT, data_dwords)};
    out.resize(1 + data_dwords, 0);
    return out;
}

Dwords copy(std::uint64_t destination, std::uint64_t source, std::uint32_t bytes) {
    return {header(SDMA_OP_COPY),
            HW_PREP(SDMA_COPY_LINEAR_1, COUNT, bytes - 1),
            0,
            low32(source),
            high32(source),
            low32(destination),
            high32(destination)};
}

Dwords write(std::uint64_t address, std::span<const std::uint32_t> data) {
    Dwords out{header(SDMA_OP_WRITE), low32(address), high32(address),
               HW_PREP(SDMA_WRITE_LINEAR_3, COUNT, data.size() - 1)};
    out.insert(out.end(), data.begin(), data.end());
    return out;
}

Dwords fill(std::uint64_t address, std::uint32_t value, std::uint32_t dwords) {
    return {header(SDMA_OP_CONST_FILL) | HW_PREP(SDMA_CONST_FILL, FILL_SIZE, kFillDwords),
            low32(address), high32(address), value,
            HW_PREP(SDMA_CONST_FILL_4, COUNT, (dwords - 1) * 4)};
}

Dwords fence(std::uint64_t address, std::uint32_t value) {
    return {header(SDMA_OP_FENCE), low32(address), high32(address), value};
}

Dwords trap(std::uint32_t context) {
    return {header(SDMA_OP_TRAP), HW_PREP(SDMA_TRAP_1, CONTEXT_ID, context)};
}

Dwords atomic_add(std::uint64_t address, std::int64_t addend) {
    const auto value = static_cast<std::uint64_t>(addend);
    return {header(SDMA_OP_ATOMIC) | HW_PREP(SDMA_ATOMIC, OPERATION, SDMA_ATOMIC_ADD_64),
            low32(address),
            high32(address),
            low32(value),
            high32(value),
            0,
            0,
            0};
}

Dwords wait_memory(std::uint64_t address, std::uint32_t value, std::uint32_t mask) {
    return {header(SDMA_OP_POLL_REGMEM) | HW_PREP(SDMA_POLL_REGMEM, MEM_POLL, 1) |
                HW_PREP(SDMA_POLL_REGMEM, FUNCTION, PM4_COMPARE_EQUAL),
            low32(address),
            high32(address),
            value,
            mask,
            HW_PREP(SDMA_POLL_REGMEM_5, INTERVAL, kPollInterval) |
                HW_PREP(SDMA_POLL_REGMEM_5, RETRY_COUNT, SDMA_POLL_FOREVER)};
}

}  // namespace sdma
}  // namespace vgpu::test
