// SPDX-License-Identifier: MIT
//
// The queue scheduler: maps and unmaps queues. On a real GPU, the scheduler is firmware of the
// command processor. MAP_QUEUES on the KIQ maps kernel queues; RUN_LIST on the HIQ maps user
// queues. The run list is an indirect buffer (IB) in which each MAP_PROCESS is followed by the
// MAP_QUEUES of that process. The scheduler reads the list until it finds no room for an entry: for
// example no free VMID, or no free queue slot (an HQD or a queue of an SDMA engine). Then the
// scheduler waits for the end of the quantum of the process that has been on the hardware longest,
// stops that process, writes its queues back to their MQDs, and continues to read. At the end of
// the list, the scheduler starts again from the top if it has stopped a process. So every process
// gets time, however many processes exist.
//
//   Idle --RUN_LIST--> Reading --end, all mapped--> Idle
//                       |   ^ --end, a process was stopped--> Reading from the top
//            no room    v   | room free
//                      Starved --quantum over--> stop the oldest process
//
// UNMAP_QUEUES stops the queues that the packet names, and ends the run list unless the packet
// names doorbells or an SDMA engine. The packet blocks its own queue until the named queues are off
// the hardware or, on the HIQ, until the time limit from SET_RESOURCES (UNMAP_LATENCY) has passed.
// After the time limit, for each queue that has not stopped, the scheduler writes the queue's
// doorbell into the HIQ's MQD, as the firmware of a real GPU does. With the action
// PREEMPT_NO_UNMAP, the packet has no effect.
//
// All functions work on a Core and are called with the VF's lock held.
#pragma once

#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

/// Reads the run list and time-slices its processes. True if it made progress.
[[nodiscard]] bool step_run_list(Core& core, StepBudget& budget);
/// True if step_run_list() would act now, for example because an entry can be read, an eviction has
/// ended, a quantum is over, or the list must end because it waits for room and no process is on
/// the hardware.
[[nodiscard]] bool has_run_list_work(const Core& core);
/// True while a run list is active. The caller must then poll, because nothing reports the end of a
/// quantum, for which a starved list waits.
[[nodiscard]] bool is_run_list_active(const Core& core);

/// Makes the scheduler stop reading the run list; mapped queues stay mapped.
void end_run_list(Core& core);
/// Takes the queue of `slot` off its SDMA engine and frees `slot`. Does not wait, because no step
/// of the SDMA engine is in progress while the caller holds the VF's lock.
void unmap_sdma_slot(Core& core, SdmaSlot& slot);

/// Maps a queue whose registers are set, for CP_HQD_ACTIVE or MAP_QUEUES. Ends in phase Running or,
/// if the queue has a saved context, Restoring.
void activate(Core& core, Queue& queue);
/// Starts to unmap a queue; step_transition() continues. Does nothing if the queue is not mapped,
/// or if `mode` is Preempt and the queue is already being stopped. With Preempt, unmaps a queue in
/// phase Restoring at once.
void begin_stop(Core& core, Queue& queue, StopMode mode);
/// Continues a queue in phase Stopping, Saving or Restoring. True if it made progress.
[[nodiscard]] bool step_transition(Core& core, Queue& queue, StepBudget& budget);
/// True if step_transition() could make progress now.
[[nodiscard]] bool can_step_transition(Core& core, Queue& queue);

/// The condition of WaitKind::Unmap: true if the queues that the head packet of `queue` stops
/// (stopped_by) are unmapped, or if the time limit of UNMAP_QUEUES has passed.
[[nodiscard]] bool is_unmap_over(Core& core, const Queue& queue);

}  // namespace vgpu::softgpu::cp
