// SPDX-License-Identifier: MIT
//
// Aql: executes the AQL packets of a user queue. Packets are looked at in order; kernels run at the
// same time unless a barrier bit says otherwise, and up to kAqlWindow packets may be in flight. A
// packet ends with its completion signal: timestamps (if the queue is profiled), value - 1, event
// mailbox, interrupt, in that order. Then its header becomes INVALID and read_dispatch_id moves on,
// oldest packet first.
//
// Errors go to the queue's queue_inactive_signal (enum aql_queue_error) and, those of packets, as
// an interrupt to KFD (enum ih_packet_error); they stop the queue; missing scratch is asked for the
// same way, and the packet is tried again when the runtime has answered with 0. The signal is all
// that tells of it while a queue is off the hardware: a queue mapped with a signal that is not 0
// waits, too.
//
// Functions over Core, with the VF's lock held.
#pragma once

#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

/// For a queue in phase Running. Executes packets until the budget is spent, the queue waits, or it
/// has no packet left; a packet that waits is left at `next` and looked at again from its header.
/// Packet format: HSA Platform System Architecture, AQL, and AMD's vendor packets (ROCr,
/// hsa_ven_amd).
[[nodiscard]] StepResult run_aql(Core& core, Queue& queue, Budget& budget);
/// Goes on with the IB of the vendor packet at `next` (in_aql_ib) and, at its end, completes the
/// packet; true then, unless that has halted the queue.
[[nodiscard]] bool run_aql_ib(Core& core, Queue& queue, Budget& budget, StepResult& result);
/// If the IB of the vendor packet at `next` has ended, completes the packet; true then, unless that
/// has halted the queue.
[[nodiscard]] bool end_aql_ib(Core& core, Queue& queue);
/// A kernel of the queue has completed; `dispatch` is gone afterwards.
/// Called by give_back() when the last work-group of the kernel has ended. Signals, retires packets
/// in order and, if the queue wants its scratch back, asks the runtime to take it.
void complete_kernel(Core& core, Dispatch& dispatch);
/// Stops the queue with an error code in its inactive signal.
/// Writes `code` to the value of queue_inactive_signal and notifies its event, as ROCr's queue
/// error handler expects (amd_queue_t, queue_inactive_signal). A queue without such a signal just
/// halts. If the signal itself cannot be written, that is a memory fault of the queue.
void report_queue_error(Core& core, Queue& queue, std::uint32_t code, Halt why);

/// Conditions of waits, see wait.cpp.
/// True also if memory faults: executing the packet again then answers the fault.
[[nodiscard]] bool is_barrier_over(Core& core, const Queue& queue);
[[nodiscard]] bool is_header_valid(Core& core, const Queue& queue);
/// A queue that has asked its runtime for something has got the answer.
[[nodiscard]] bool is_answered(Core& core, const Queue& queue);
/// The runtime has yet to answer what the queue asked for, perhaps before it was unmapped: its
/// inactive signal is not 0. False if that cannot be found out.
[[nodiscard]] bool is_inactive(Core& core, const Queue& queue);

}  // namespace vgpu::softgpu::cp
