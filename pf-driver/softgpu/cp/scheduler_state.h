// SPDX-License-Identifier: MIT
//
// SchedulerState: the state of one VF's queue scheduler (scheduler.h). It holds the VMIDs and queue
// slots (HQDs and queues of SDMA engines) that the scheduler may use, the process of each VMID, and
// the run list that the scheduler reads. SchedulerState is trivially copyable, because
// CommandProcessor::save() copies it into the saved state of the VF.
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
    /// Start of the process's quantum, ns; Core::postpone() moves it.
    std::uint64_t mapped_at = 0;
    std::uint64_t quantum_ns = 0;  ///< 0: the process may be evicted at once
    std::uint16_t pasid = 0;
    std::uint8_t is_valid = 0;  ///< 1 if the VMID belongs to a process
    std::uint8_t is_being_evicted =
        0;                          ///< 1 if its quantum is over and its queues are being stopped
    std::uint32_t is_debugged = 0;  ///< 1 if MAP_PROCESS chose this VMID, for a debugger; else 0
};

/// An SDMA queue that a run list has mapped.
struct SdmaSlot {
    /// Address of the MQD. Identifies the queue when a run list names the queue again.
    std::uint64_t mqd = 0;
    std::uint32_t doorbell = 0;  ///< dword offset in the doorbell BAR
    std::uint16_t pasid = 0;
    std::uint8_t engine = 0;   ///< SdmaEngine
    std::uint8_t is_used = 0;  ///< 0 or 1
};
inline constexpr unsigned kSdmaSlots = SDMA_ENGINES * SDMA_USER_QUEUES;

/// The run list: an IB in VMID 0. Each packet of the IB is an entry, and the scheduler reads the
/// entries one by one. `next` does not advance while there is no room (scheduler.h) for the entry
/// at `next`.
struct RunListState {
    std::uint64_t va = 0;
    std::uint32_t size = 0;  ///< dwords
    std::uint32_t next = 0;  ///< dword of the next entry
    /// 1 from RUN_LIST until all queues of the list are mapped, or an error or UNMAP_QUEUES ends
    /// the list.
    std::uint8_t is_active = 0;
    std::uint8_t is_starved = 0;  ///< 1 if the entry at `next` waits for room
    /// 1 if this round (one pass over the list) has evicted a process: another round must follow.
    std::uint8_t has_preempted = 0;
    std::uint8_t vmid = 0;  ///< VMID of the last MAP_PROCESS that was read
    std::uint32_t reserved = 0;
};

/// A bank: the global wave sync (GWS) of one process whose MAP_PROCESS requests GWS (NUM_GWS). A
/// process without queues on the hardware keeps its bank until another process needs the bank,
/// because KFD unmaps all queues for a moment whenever it adds a queue.
struct WaveSyncBank {
    isa::GlobalWaveSync sync;
    std::uint64_t mapped_at = 0;  ///< time when the bank's process was last mapped, ns
    std::uint16_t pasid = 0;
    std::uint16_t is_used = 0;  ///< 0 or 1
    std::uint32_t reserved = 0;
};

/// See the top of this file. RUN_LIST requires an earlier SET_RESOURCES (has_resources); mapping a
/// kernel queue does not.
struct SchedulerState {
    /// Bit per VMID for user processes; KFD sets bits 8 to 15 on gfx9.
    std::uint16_t vmid_mask = 0;
    std::uint8_t has_resources = 0;  ///< 1 after SET_RESOURCES on the HIQ
    QueueId owner = kNoQueue;        ///< the queue that runs the scheduler (HIQ)
    /// Time limit for each UNMAP_QUEUES of `owner`; 0: no limit.
    std::uint32_t unmap_latency_ms = 0;
    /// Bit per HQD (QueueId) to which the scheduler may map user queues; only the low CP_USER_HQDS
    /// bits count.
    std::uint64_t queue_mask = 0;
    std::array<ProcessState, CP_VMIDS> processes{};
    /// SH_MEM_BASES and SH_MEM_CONFIG by VMID; GRBM_GFX_CNTL selects the VMID for register
    /// accesses. MAP_PROCESS sets them for user processes.
    std::array<std::uint32_t, CP_VMIDS> sh_mem_bases{};
    std::array<std::uint32_t, CP_VMIDS> sh_mem_config{};
    std::array<std::uint64_t, CP_VMIDS> trap_base{};    ///< address of the trap handler; 0: none
    std::array<std::uint64_t, CP_VMIDS> trap_memory{};  ///< SQ_SHADER_TMA, as an address
    /// As many banks as VMIDs, so a process that is mapped always finds a bank.
    std::array<WaveSyncBank, CP_VMIDS> wave_sync{};
    std::array<std::uint8_t, CP_VMIDS>
        wave_sync_number{};  ///< by VMID: index of the bank + 1; 0: none
    std::array<SdmaSlot, kSdmaSlots> sdma{};
    RunListState run_list;
};

}  // namespace vgpu::softgpu::cp
