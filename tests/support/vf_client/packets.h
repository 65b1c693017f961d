// SPDX-License-Identifier: MIT
//
// PM4 and SDMA packets as the stock driver writes them: each function returns the dwords of one
// packet, header first. Tests that need a broken packet damage one of these.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vgpu::test {

using Dwords = std::vector<std::uint32_t>;

/// Appends packets: `stream += packet`.
inline Dwords& operator+=(Dwords& stream, const Dwords& packet) {
    stream.insert(stream.end(), packet.begin(), packet.end());
    return stream;
}

}  // namespace vgpu::test

namespace vgpu::test::pm4 {

[[nodiscard]] Dwords packet(std::uint32_t opcode, std::span<const std::uint32_t> body);

// scheduler packets (KIQ, HIQ)
[[nodiscard]] Dwords set_resources(std::uint32_t vmid_mask, std::uint64_t queue_mask,
                                   std::uint32_t queue_type);

struct MapProcess {
    std::uint16_t pasid = 0;
    std::uint64_t page_directory = 0;  ///< PDE format
    std::uint32_t sh_mem_bases = 0;
    std::uint32_t sh_mem_config = 0;
    std::uint32_t queues = 0;
};
[[nodiscard]] Dwords map_process(const MapProcess& process);

struct MapQueue {
    std::uint32_t doorbell = 0;
    std::uint64_t mqd = 0;
    std::uint64_t wptr = 0;
    std::uint32_t engine = 0;  ///< enum pm4_engine_sel
    // KIQ form only
    std::uint32_t me = 0, pipe = 0, queue = 0;
};
[[nodiscard]] Dwords map_queue_at_slot(const MapQueue& queue);
[[nodiscard]] Dwords map_queue_anywhere(const MapQueue& queue);

[[nodiscard]] Dwords unmap_queues(std::uint32_t select, std::uint32_t action,
                                  std::uint32_t pasid_or_doorbell = 0);
[[nodiscard]] Dwords query_status(std::uint64_t fence, std::uint64_t value);
[[nodiscard]] Dwords run_list(std::uint64_t address, std::uint32_t dwords);
[[nodiscard]] Dwords invalidate_tlbs(std::uint32_t pasid);

// memory and synchronisation
[[nodiscard]] Dwords nop(std::uint32_t body_dwords);
[[nodiscard]] Dwords write_memory(std::uint64_t address, std::span<const std::uint32_t> data);
[[nodiscard]] Dwords write_register(std::uint32_t reg, std::uint32_t value);
[[nodiscard]] Dwords register_to_memory(std::uint32_t reg, std::uint64_t address);
[[nodiscard]] Dwords set_uconfig_reg(std::uint32_t reg, std::uint32_t value);
[[nodiscard]] Dwords set_sh_reg(std::uint32_t reg, std::uint32_t value);
[[nodiscard]] Dwords release_mem(std::uint64_t address, std::uint64_t value,
                                 std::uint32_t interrupt_context);
[[nodiscard]] Dwords acquire_mem_instruction_cache();
[[nodiscard]] Dwords wait_memory(std::uint64_t address, std::uint32_t reference,
                                 std::uint32_t mask = ~0u);
/// Writes `reference` to register A, then waits until (register B & mask) == reference.
[[nodiscard]] Dwords write_and_wait_register(std::uint32_t reg_a, std::uint32_t reg_b,
                                             std::uint32_t reference, std::uint32_t mask);
[[nodiscard]] Dwords indirect_buffer(std::uint64_t address, std::uint32_t dwords,
                                     std::uint32_t vmid);

}  // namespace vgpu::test::pm4

namespace vgpu::test::sdma {

[[nodiscard]] Dwords nop(std::uint32_t data_dwords);
[[nodiscard]] Dwords copy(std::uint64_t destination, std::uint64_t source, std::uint32_t bytes);
[[nodiscard]] Dwords write(std::uint64_t address, std::span<const std::uint32_t> data);
[[nodiscard]] Dwords fill(std::uint64_t address, std::uint32_t value, std::uint32_t dwords);
[[nodiscard]] Dwords fence(std::uint64_t address, std::uint32_t value);
[[nodiscard]] Dwords trap(std::uint32_t context);
/// 64-bit atomic add, as ROCr decrements a signal.
[[nodiscard]] Dwords atomic_add(std::uint64_t address, std::int64_t addend);
[[nodiscard]] Dwords wait_memory(std::uint64_t address, std::uint32_t value, std::uint32_t mask);

}  // namespace vgpu::test::sdma
