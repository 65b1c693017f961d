// SPDX-License-Identifier: MIT
//
// Atomic operations of packets on guest memory (SDMA ATOMIC, PM4 ATOMIC_MEM), in TC_OP numbering
// (hw/tc_op.def). On memory with a host address they are atomic against waves, other engines and
// the guest's CPUs; on memory reached by message they are a read followed by a write; on the
// function's own BAR they have no effect and return all ones.
#pragma once

#include <cstdint>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::mem {

/// The request in the packet's terms; operands of 32-bit operations are in the low half.
struct AtomicRequest {
    std::uint32_t operation = 0;  ///< enum tc_op; forms with and without return are the same
    GpuVa address{};
    std::uint64_t source = 0;
    /// Compare-and-swap only.
    std::uint64_t compare = 0;
};

enum class AtomicStatus : std::uint8_t {
    Done,
    Fault,  ///< port.fault() says where; it is empty if an access by message failed
    Bad,    ///< unknown operation or address not aligned to the operand
};

struct AtomicResult {
    AtomicStatus status = AtomicStatus::Done;
    std::uint64_t before = 0;  ///< value that was in memory
};

/// Requires read and write permission, checked in this order. The VMID is the port's. On Fault and
/// Bad memory is unchanged; the packet's handler decides what happens to its queue.
[[nodiscard]] AtomicResult perform_atomic(Port& port, const AtomicRequest& request);

}  // namespace vgpu::softgpu::mem
