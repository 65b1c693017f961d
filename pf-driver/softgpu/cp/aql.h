// SPDX-License-Identifier: MIT
//
// Aql: executes the AQL packets of a user queue. Packets are started in order. Kernels run at the
// same time unless a barrier bit forbids it, and up to kAqlWindow packets may be in flight. A
// packet ends with its completion signal: timestamps (if the queue is profiled), decrement of the
// value, event mailbox, interrupt, in that order. Then its header becomes INVALID and
// read_dispatch_id moves on, oldest packet first.
//
// An error stops the queue and is reported in its queue_inactive_signal (enum aql_queue_error);
// errors of packets also go to amdkfd (KFD) as an interrupt (enum ih_packet_error). A request for
// missing scratch uses the same signal, and the packet is tried again when the runtime has answered
// with 0. While a queue is off the hardware, only the signal records the request. So a queue also
// waits if the signal is not 0 when the queue is mapped.
//
// All functions work on a Core and are called with the VF's lock held.
#pragma once

#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

/// For a queue in phase Running. Executes packets until the budget is spent, the queue waits or
/// halts, or no packet is left. A packet that waits stays at `next` and is tried again from its
/// header. Packet format: HSA Platform System Architecture, AQL, and AMD's vendor packets (ROCr,
/// hsa_ven_amd).
[[nodiscard]] StepResult run_aql(Core& core, Queue& queue, Budget& budget);
/// Continues the IB of the vendor packet at `next` (in_aql_ib) and completes the packet when the IB
/// ends. True if it has completed the packet and the queue is not halted. `result` gets what
/// run_pm4() returned for the IB.
[[nodiscard]] bool run_aql_ib(Core& core, Queue& queue, Budget& budget, StepResult& result);
/// Completes the vendor packet at `next` if its IB has ended. True if it has completed the packet
/// and the queue is not halted.
[[nodiscard]] bool end_aql_ib(Core& core, Queue& queue);
/// Completes a kernel whose last work-group has ended, and frees `dispatch`. For an AQL kernel it
/// also signals, retires packets in order and, if the kernel gives its scratch back, asks the
/// runtime to take it.
void complete_kernel(Core& core, Dispatch& dispatch);
/// Halts the queue. If `why` is AqlError, also counts a bad packet, sets CP_HQD_ERROR and, if KFD
/// has a number for `code`, interrupts KFD. Then writes `code` to the queue's inactive signal and
/// notifies the signal's event, as ROCr's queue error handler expects (amd_queue_t,
/// queue_inactive_signal). Writes no signal if the queue has none. A signal that cannot be written
/// is a memory fault of the queue.
void report_queue_error(Core& core, Queue& queue, std::uint32_t code, Halt why);

/// True if the barrier packet at `next` need not wait any more. Also true if memory faults: another
/// execution of the packet then reports the fault.
[[nodiscard]] bool is_barrier_over(Core& core, const Queue& queue);
/// True if the header of the packet at `next` is not INVALID. Also true if memory faults: another
/// execution of the packet then reports the fault.
[[nodiscard]] bool is_header_valid(Core& core, const Queue& queue);
/// True if the runtime has answered the request of a halted queue. False if the queue has no
/// inactive signal that can be read.
[[nodiscard]] bool is_answered(Core& core, const Queue& queue);
/// True if the inactive signal is not 0: the runtime has not answered the queue's request yet. The
/// request may have come before the queue was last unmapped. False if the queue has no inactive
/// signal that can be read.
[[nodiscard]] bool is_inactive(Core& core, const Queue& queue);

}  // namespace vgpu::softgpu::cp
