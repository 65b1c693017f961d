// SPDX-License-Identifier: MIT
//
// Executes the AQL packets of a user queue. Packets start in order. Kernels may run at the same
// time unless a barrier bit forbids it, and up to kAqlWindow packets may be in flight. The
// completion of a packet updates its signal in this order: timestamps (if the queue has
// AQL_QUEUE_ENABLE_PROFILING), decrement of the value and, if the signal has an event mailbox
// (event_mailbox_ptr in aql_signal, hw/aql.h), mailbox and interrupt. Completed packets then
// retire, oldest first: the header of the packet becomes INVALID, and read_dispatch_id (in
// amd_queue_t, hw/aql.h) advances.
//
// An error in an AQL packet halts the queue, and so does an illegal instruction or a trap of a wave
// that no trap handler handles. The error code (enum aql_queue_error) goes to the queue's inactive
// signal (queue_inactive_signal in amd_queue_t). An error in an AQL packet also goes to amdkfd
// (KFD) as an interrupt (enum ih_packet_error). A memory fault that no trap handler handles halts
// the queue, too, but is reported only as a GPUVM fault. A bad PM4 packet in the IB of a vendor
// packet is reported only by interrupts (Core::refuse()).
//
// A request to the runtime (ROCr), for more scratch or to take scratch back, uses the inactive
// signal, too: the queue halts until the runtime has set the signal to 0. A packet that needs
// scratch is then tried again. While a queue is off the hardware, only the signal records the
// request. So a queue whose signal is not 0 when the queue is mapped starts halted.
//
// All functions work on a Core and are called with the VF's lock held.
#pragma once

#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

/// For a queue in phase Running. Executes packets until `budget` is spent, the queue waits or
/// halts, or no packet is left. A packet that waits stays at QueueState::next and is tried again
/// from its header. Returns Progress if a packet has started, completed or advanced in its IB. Else
/// returns Blocked if the queue waits or is halted, and Idle if not. Packet format: HSA Platform
/// System Architecture, AQL, and AMD's vendor packets (ROCr, hsa_ven_amd).
[[nodiscard]] StepResult run_aql(Core& core, Queue& queue, StepBudget& budget);
/// Continues the IB of the vendor packet at `next` (in_aql_ib) and completes the packet when the IB
/// ends. True if the packet is complete and the queue is not halted. `result` gets what run_pm4()
/// returned for the IB.
[[nodiscard]] bool run_aql_ib(Core& core, Queue& queue, StepBudget& budget, StepResult& result);
/// Completes the vendor packet at `next` if its IB has ended. True if the packet is complete and
/// the queue is not halted.
[[nodiscard]] bool end_aql_ib(Core& core, Queue& queue);
/// Completes a kernel whose last work-group has ended, and frees `dispatch`. For an AQL kernel,
/// also completes the packet's signal and retires packets in order. If the kernel used scratch and
/// the queue has AQL_QUEUE_USE_SCRATCH_ONCE, also asks the runtime to take the scratch back, unless
/// the queue is halted.
void complete_kernel(Core& core, Dispatch& dispatch);
/// Halts the queue. If `why` is AqlError, also counts a bad packet, sets CP_HQD_ERROR and, if KFD
/// has a number for `code`, interrupts KFD. Then writes `code` (enum aql_queue_error) to the
/// queue's inactive signal, if the queue has one, and notifies the signal's event, as ROCr's queue
/// error handler expects. If the signal cannot be accessed, the queue gets a memory fault.
void report_queue_error(Core& core, Queue& queue, std::uint32_t code, Halt why);

/// True if the barrier packet at `next` no longer has to wait. Also true if memory faults: another
/// execution of the packet then reports the fault.
[[nodiscard]] bool is_barrier_over(Core& core, const Queue& queue);
/// True if the header of the packet at `next` is not INVALID. Also true if memory faults: another
/// execution of the packet then reports the fault.
[[nodiscard]] bool is_header_valid(Core& core, const Queue& queue);
/// True if the inactive signal is 0: the runtime has answered the request of a halted queue. False
/// if the queue has no inactive signal that can be read.
[[nodiscard]] bool is_answered(Core& core, const Queue& queue);
/// True if the inactive signal is not 0: the runtime has not answered the queue's request yet. The
/// queue may have made the request before it was last unmapped. False if the queue has no inactive
/// signal that can be read.
[[nodiscard]] bool is_inactive(Core& core, const Queue& queue);

}  // namespace vgpu::softgpu::cp
