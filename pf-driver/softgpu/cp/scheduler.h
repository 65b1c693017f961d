// SPDX-License-Identifier: MIT
//
// Scheduler: maps and unmaps queues. Kernel queues come with MAP_QUEUES on the KIQ, user queues
// with a RUN_LIST on the HIQ. The run list is an indirect buffer (IB) in which each MAP_PROCESS is
// followed by the MAP_QUEUES of that process. The scheduler reads the list until an entry needs a
// VMID or a slot and none is free. Then it waits for the end of the quantum of the process that has
// been on the hardware longest, stops that process, writes its queues back to their MQDs, and
// continues to read. At the end of the list it starts again from the top if a process is off the
// hardware. So every process is served, however many processes there are.
//
//   Idle --RUN_LIST--> Reading --end, all mapped--> Idle
//                       |   ^ --end, a process off the hardware--> Reading from the top
//            no slot    v   | slot free
//                      Starved --quantum over--> stop the oldest process
//
// UNMAP_QUEUES stops the queues that it names. It ends the run list, unless it names doorbells or
// an SDMA engine. It blocks its own queue until the named queues are off the hardware, or until the
// latency of SET_RESOURCES has passed. In the latter case it leaves the doorbell of the stuck queue
// in the scheduler queue's MQD, as the firmware of the real part does.
//
// All functions work on a Core and are called with the VF's lock held.
#pragma once

#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

/// Reads the run list and time-slices its processes. True if it did something.
[[nodiscard]] bool step_run_list(Core& core, Budget& budget);
/// True if the run list can continue now (an entry is left to read, or a quantum is over).
[[nodiscard]] bool has_run_list_work(const Core& core);
/// True while a run list is active. Nothing reports the end of a quantum, after which a starved
/// list can continue, so the caller must poll.
[[nodiscard]] bool is_run_list_timed(const Core& core);

/// Stops reading the run list; mapped queues stay.
void end_run_list(Core& core);
/// Takes the slot's queue off its SDMA engine and frees the slot. Does not wait, because no step of
/// the SDMA engine is in progress while the caller holds the VF's lock.
void unmap_sdma_slot(Core& core, SdmaSlot& slot);

/// Activates a queue whose registers have been set (CP_HQD_ACTIVE or MAP_QUEUES).
void activate(Core& core, Queue& queue);
/// Starts to take a queue off the hardware; step_transition() finishes this. A preempted queue in
/// Restoring leaves at once.
void begin_stop(Core& core, Queue& queue, StopMode mode);
/// Continues a queue in Stopping, Saving or Restoring. True if it did something.
[[nodiscard]] bool step_transition(Core& core, Queue& queue, Budget& budget);
/// True if step_transition() would do something now; changes nothing itself.
[[nodiscard]] bool can_step_transition(Core& core, Queue& queue);

/// The condition of WaitKind::Unmap, for a scheduler queue.
[[nodiscard]] bool is_unmap_over(Core& core, const Queue& queue);

}  // namespace vgpu::softgpu::cp
