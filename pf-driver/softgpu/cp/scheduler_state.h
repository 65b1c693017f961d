// SPDX-License-Identifier: MIT
//
// SchedulerState: the state of one VF's hardware scheduler. It holds the VMIDs and queue slots that
// the scheduler may use, the process of each VMID, and the run list that the scheduler reads.
// Trivially copyable; scheduler.h describes its use.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/hw/gpuvm.h"
#include "pf-driver/hw/pm4.h"
#include "pf-driver/hw/sdma.h"
#include "pf-driver/softgpu/cp/queue.h"
#include "pf-driver/softgpu/isa/global_wave_sync.h"

namespace vgpu::softgpu::cp {

/// The process of a VMID; SchedulerState has one for each VMID.
struct ProcessState {
    /// Page directory entry, in the format of GpuVm::set_root().
    std::uint64_t root = 0;
    std::uint64_t mapped_at = 0;   ///< time when the process's queues were mapped, ns
    std::uint64_t quantum_ns = 0;  ///< 0: the process may be evicted at once
    std::uint16_t pasid = 0;
    std::uint8_t is_valid = 0;
    std::uint8_t is_leaving = 0;    ///< 1 if its quantum is over and its queues are being stopped
    std::uint32_t is_debugged = 0;  ///< 1 if MAP_PROCESS chose the VMID, for a debugger; else 0
};

/// An SDMA queue that a run list has mapped.
struct SdmaSlot {
    /// Identifies the queue, because KFD (Linux' amdkfd) maps a queue again by its MQD.
    std::uint64_t mqd = 0;
    std::uint32_t doorbell = 0;
    std::uint16_t pasid = 0;
    std::uint8_t engine = 0;
    std::uint8_t is_used = 0;
};
inline constexpr unsigned kSdmaSlots = SDMA_ENGINES * SDMA_USER_QUEUES;

/// The run list: an IB in VMID 0 that is read packet by packet. `next` does not move while the
/// packet at `next` needs a VMID or a slot and none is free.
struct RunListState {
    std::uint64_t va = 0;
    std::uint32_t size = 0;       ///< dwords
    std::uint32_t next = 0;       ///< dword of the next entry
    std::uint8_t is_active = 0;   ///< 1 if entries are left, or a process is off the hardware
    std::uint8_t is_starved = 0;  ///< 1 if the entry at `next` waits for a VMID or slot
    /// 1 if a process is off the hardware, so the list must be read again from the top.
    std::uint8_t has_preempted = 0;
    std::uint8_t vmid = 0;  ///< VMID of the last MAP_PROCESS
    std::uint32_t reserved = 0;
};

/// The global wave sync (GWS) of a process whose MAP_PROCESS requests GWS (NUM_GWS). The bank stays
/// while the process has no queues on the hardware, because KFD takes all queues off the hardware
/// whenever KFD adds a queue.
struct WaveSyncBank {
    isa::GlobalWaveSync sync;
    std::uint64_t mapped_at = 0;  ///< time when the bank's process was last mapped, ns
    std::uint16_t pasid = 0;
    std::uint16_t is_used = 0;  ///< 0 or 1
    std::uint32_t reserved = 0;
};

/// Run lists require SET_RESOURCES (has_resources); kernel queues do not.
struct SchedulerState {
    /// VMIDs for user processes; KFD gives 8 to 15 on gfx9.
    std::uint16_t vmid_mask = 0;
    std::uint8_t has_resources = 0;
    QueueId owner = kNoQueue;  ///< the queue that runs the scheduler (HIQ)
    /// The time for which UNMAP_QUEUES waits for a queue that does not stop; 0: without limit.
    std::uint32_t unmap_latency_ms = 0;
    /// Bit per HQD to which the scheduler may map user queues.
    std::uint64_t queue_mask = 0;
    std::array<ProcessState, CP_VMIDS> processes{};
    /// Banked by VMID, as GRBM_GFX_CNTL selects them; MAP_PROCESS sets them for user processes.
    std::array<std::uint32_t, CP_VMIDS> sh_mem_bases{};
    std::array<std::uint32_t, CP_VMIDS> sh_mem_config{};
    std::array<std::uint64_t, CP_VMIDS> trap_base{};    ///< address of the trap handler; 0: none
    std::array<std::uint64_t, CP_VMIDS> trap_memory{};  ///< SQ_SHADER_TMA, as an address
    /// One per process that can be mapped at a time.
    std::array<WaveSyncBank, CP_VMIDS> wave_sync{};
    std::array<std::uint8_t, CP_VMIDS> wave_sync_of{};  ///< by VMID: bank plus 1; 0: none
    std::array<SdmaSlot, kSdmaSlots> sdma{};
    RunListState run_list;
};

}  // namespace vgpu::softgpu::cp
