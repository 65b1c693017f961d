// SPDX-License-Identifier: MIT
//
// Services: the calls of one VF's command processor to the other blocks of that VF. GpuVf
// implements them over mem::GpuVm, ih::InterruptHandler and two sdma::Engine; tests implement them
// over a flat memory. The command processor never calls these blocks itself.
//
// Every call is made with the VF's lock held. The engine's worker threads use the ports of waves
// without the lock.
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

    /// A new port of the GFX hub for `vmid`, owned by the caller.
    [[nodiscard]] virtual std::unique_ptr<mem::Port> make_port(Vmid vmid) = 0;
    /// MAP_PROCESS: `vmid` translates through `root` (a page directory entry) and belongs to
    /// `pasid` from now on; earlier translations end.
    virtual void set_process(Vmid vmid, std::uint64_t root, std::uint16_t pasid) = 0;
    /// The PASID of a VMID, for interrupts; 0 if it has none.
    [[nodiscard]] virtual std::uint16_t pasid_of(Vmid vmid) const = 0;
    /// Ends every translation of the process.
    virtual void invalidate_pasid(std::uint16_t pasid) = 0;
    /// Records a fault of the GFX hub in the fault registers and raises its interrupt vector.
    virtual void report_fault(Vmid vmid, const mem::Fault& fault) = 0;

    /// Puts a vector into ring 0 of the VF's IH; the vector is lost if the guest has not set up the
    /// ring.
    virtual void raise(const ih_iv_entry& entry) = 0;

    /// Puts a queue on an SDMA engine; false if all slots of the engine are taken or the MQD is
    /// unusable. The CP takes the values from the MAP_QUEUES packet and the MAP_PROCESS before it.
    [[nodiscard]] virtual bool map_sdma(SdmaEngine engine, const sdma::MapRequest& queue) = 0;
    /// Takes the queue with that doorbell off the SDMA engine. The engine writes the queue's
    /// pointers back to the MQD.
    virtual void unmap_sdma(SdmaEngine engine, DoorbellIndex doorbell) = 0;

    /// The command processor may have become runnable (doorbell, mapped queue, register write):
    /// wakes the engine if this VF is active, else may raise a WAKE. Must not call back into the
    /// command processor.
    virtual void work_arrived() = 0;
};

}  // namespace vgpu::softgpu::cp
