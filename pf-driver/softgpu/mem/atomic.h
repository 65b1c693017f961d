// SPDX-License-Identifier: MIT
//
// Atomic operations of packets on guest memory (SDMA ATOMIC, PM4 ATOMIC_MEM), in TC_OP numbering
// (hw/tc_op.def). On memory with a host address an operation is atomic against waves, other engines
// and the guest's CPUs. On memory reached by message it is a read followed by a write. On the
// function's own BAR it has no effect and returns all ones.
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
    Fault,  ///< port.fault() says where; has_fault() is false if an access by message failed
    Bad,    ///< unknown operation or address not aligned to the operand
};

struct AtomicResult {
    AtomicStatus status = AtomicStatus::Done;
    std::uint64_t before = 0;  ///< value that was in memory
};

/// Requires read and write permission, checked in this order, in the VMID of the port. On Fault and
/// Bad memory is unchanged; the packet's handler decides what happens to its queue.
[[nodiscard]] AtomicResult perform_atomic(Port& port, const AtomicRequest& request);

}  // namespace vgpu::softgpu::mem
