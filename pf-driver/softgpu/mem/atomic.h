// SPDX-License-Identifier: MIT
//
// perform_atomic() executes the atomic operations that packets request on guest memory (SDMA
// ATOMIC, PM4 ATOMIC_MEM). Operations have the TC_OP numbers of pf-driver/hw/tc_op.def. The kind of
// memory determines the effect:
//   has a host address (Port::at())       atomic against waves, packets and the guest's CPUs
//   reached by messages to a client       a read, then a write: not atomic
//   the function's own doorbell BAR       no effect; `before` is all ones
//   hole of a partially resident texture  no effect; `before` is 0
#pragma once

#include <cstdint>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::mem {

/// One operation as the packet requests it. A 32-bit operation uses the low halves of the operands.
struct AtomicRequest {
    std::uint32_t operation = 0;  ///< enum tc_op; TC_OP_NO_RETURN is ignored
    GpuVa address{};
    std::uint64_t source = 0;
    /// Used by TC_OP_CMPSWAP_32 and TC_OP_CMPSWAP_64 only.
    std::uint64_t compare = 0;
};

enum class AtomicStatus : std::uint8_t {
    Done,
    Fault,  ///< see port.fault(); has_fault() is false if only an indirect access failed (port.h)
    Bad,    ///< unknown operation, or address not a multiple of the operand's size
};

struct AtomicResult {
    AtomicStatus status = AtomicStatus::Done;
    std::uint64_t before = 0;  ///< the value in memory before the operation; 0 unless Done
};

/// Executes `request` in the VMID of `port`, which must have no recorded fault
/// (Port::clear_fault()). Checks read permission, then write permission. On Bad or Fault, memory is
/// unchanged, except that a client may still do a write whose message failed.
[[nodiscard]] AtomicResult perform_atomic(Port& port, const AtomicRequest& request);

}  // namespace vgpu::softgpu::mem
