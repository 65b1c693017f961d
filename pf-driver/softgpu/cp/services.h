// SPDX-License-Identifier: MIT
//
// Services: the interface through which one VF's command processor calls the other blocks of that
// VF. GpuVf implements the interface with mem::GpuVm, ih::InterruptHandler and two sdma::Engine
// objects; tests implement it with a flat memory.
//
// Every call is made with the VF's lock held. Only the ports from make_port() are also used without
// the lock: the engine's worker threads access memory through them while they run waves.
#pragma once

#include <cstdint>
#include <memory>

#include "pf-driver/hw/ih.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/mem/port.h"
#include "pf-driver/softgpu/sdma/engine.h"

namespace vgpu::softgpu::cp {

/// One of the two SDMA engines, as MAP_QUEUES and UNMAP_QUEUES name it.
enum class SdmaEngine : std::uint8_t { Sdma0, Sdma1 };

class Services {
public:
    virtual ~Services() = default;

    /// Creates a port of the GFX hub (mem/gpuvm.h) for `vmid`; the caller owns the port.
    [[nodiscard]] virtual std::unique_ptr<mem::Port> make_port(Vmid vmid) = 0;
    /// For MAP_PROCESS: gives `vmid` to the process `pasid`, with `root` (a page directory entry)
    /// as the root of its page table. Ends the VMID's earlier translations.
    virtual void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) = 0;
    /// The PASID of a VMID, for interrupts; 0 if it has none.
    [[nodiscard]] virtual std::uint16_t pasid_of(Vmid vmid) const = 0;
    /// Ends all cached translations of the process `pasid`.
    virtual void invalidate_pasid(std::uint16_t pasid) = 0;
    /// Records a fault of the GFX hub in the fault registers and raises the fault interrupt.
    virtual void report_fault(Vmid vmid, const mem::Fault& fault) = 0;

    /// Puts an interrupt vector into ring 0 of the VF's IH (interrupt handler). The IH may drop the
    /// vector, for example if the guest has not set up the ring.
    virtual void raise(const ih_iv_entry& entry) = 0;

    /// Puts a queue on an SDMA engine; false if both user queues of the engine are taken or the MQD
    /// is unusable. The values in `queue` come from the MAP_QUEUES packet and the MAP_PROCESS
    /// before it.
    [[nodiscard]] virtual bool map_sdma(SdmaEngine engine, const sdma::MapRequest& queue) = 0;
    /// Takes the queue with that doorbell off the SDMA engine. The engine saves the queue's
    /// pointers and position in the MQD.
    virtual void unmap_sdma(SdmaEngine engine, DoorbellIndex doorbell) = 0;

    /// Call when the command processor may have new work (doorbell, mapped queue, register write).
    /// Wakes the engine if this VF is active, else may raise WAKE. Must not call back into the
    /// command processor.
    virtual void work_arrived() = 0;
};

}  // namespace vgpu::softgpu::cp
