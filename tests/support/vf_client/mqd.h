// SPDX-License-Identifier: MIT
//
// MQDs as the stock driver fills them: kernel compute queues (KIQ, KCQ, HIQ), AQL user queues, SDMA
// user queues. Every write function zeroes the MQD first.
#pragma once

#include <cstdint>

#include "tests/support/vf_client/memory_word.h"

namespace vgpu::test {

struct KernelMqd {
    std::uint64_t ring = 0;  ///< addresses in VMID 0
    std::uint32_t ring_dwords = 0;
    std::uint64_t rptr = 0, wptr = 0, eop = 0;
    std::uint32_t doorbell = 0;
    std::uint32_t pq_control = 0;  ///< without the size
};
void write_kernel_mqd(const Buffer& mqd, const KernelMqd& queue);

/// pq_control of the stock driver's queues, without the size field.
[[nodiscard]] std::uint32_t pq_control_kiq();
[[nodiscard]] std::uint32_t pq_control_hiq();

struct AqlMqd {
    std::uint64_t ring = 0;  ///< addresses of the process
    std::uint32_t packets = 0;
    std::uint64_t read_dispatch_id = 0, write_dispatch_id = 0;
    std::uint64_t eop = 0, save_area = 0;
    std::uint32_t save_bytes = 0, control_stack_bytes = 0;
    std::uint32_t doorbell = 0;
};
void write_aql_mqd(const Buffer& mqd, const AqlMqd& queue);

struct SdmaMqd {
    std::uint64_t ring = 0;  ///< addresses of the process
    std::uint32_t ring_bytes = 0;
    std::uint64_t rptr = 0, wptr = 0;
    std::uint32_t doorbell = 0;
    std::uint32_t engine = 0, queue = 0;
};
void write_sdma_mqd(const Buffer& mqd, const SdmaMqd& queue);

}  // namespace vgpu::test
