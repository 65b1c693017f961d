// SPDX-License-Identifier: MIT
//
// Scheduler: maps and unmaps queues. Kernel queues come with MAP_QUEUES on the KIQ, user queues
// with a RUN_LIST on the HIQ, an IB of MAP_PROCESS { MAP_QUEUES }. The list is read until an entry
// needs a VMID or a slot that is taken; then the process that has been on the hardware longest is
// stopped when its quantum is over, its queues are written back to their MQDs, and the list goes
// on, from the top when it has reached its end. So every process gets its turn however many there
// are.
//
//   Idle --RUN_LIST--> Reading --end, all mapped--> Idle
//                       |   ^ --end, somebody off the hardware--> Reading from the top
//            no slot    v   | slot free
//                      Starved --quantum over--> stop the oldest process
//
// UNMAP_QUEUES ends the run list, stops the queues it names and blocks its own queue until they are
// off the hardware, or until the latency given by SET_RESOURCES has passed; then the doorbell of
// the stuck queue is left in the scheduler queue's MQD, as the firmware of the real part does.
//
// Functions over Core, with the VF's lock held.
#pragma once

#include "pf-driver/softgpu/cp/core.h"
#include "pf-driver/softgpu/cp/pm4.h"

namespace vgpu::softgpu::cp {

/// Reads on in the run list and time-slices it. True if something was done.
[[nodiscard]] bool step_run_list(Core& core, Budget& budget);
/// The run list could go on now (an entry is left to read, a quantum is over).
[[nodiscard]] bool has_run_list_work(const Core& core);
/// Only the clock can tell when the run list goes on.
[[nodiscard]] bool is_run_list_timed(const Core& core);

/// Nothing is read any more; queues that are mapped stay.
void end_run_list(Core& core);
/// Takes the queue off its engine at once: copy engines are never in the middle of a step here.
void unmap_sdma_slot(Core& core, SdmaSlot& slot);

/// Activates a queue whose registers have been set (CP_HQD_ACTIVE or MAP_QUEUES).
void activate(Core& core, Queue& queue);
/// Starts to take a queue off the hardware; step_transition() finishes it.
void begin_stop(Core& core, Queue& queue, StopMode mode);
/// A queue in Stopping, Saving or Restoring goes on. True if something was done.
[[nodiscard]] bool step_transition(Core& core, Queue& queue, Budget& budget);
[[nodiscard]] bool can_step_transition(Core& core, Queue& queue);

/// For WaitKind::Unmap of a scheduler queue.
[[nodiscard]] bool is_unmap_over(Core& core, const Queue& queue);

}  // namespace vgpu::softgpu::cp
