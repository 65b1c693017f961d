// SPDX-License-Identifier: MIT
//
// BusVf: a VF as the VM sees it on the PF's bus. In the configuration space of an SR-IOV VF, the
// ids and BARs are not implemented (the PF's SR-IOV capability holds them), and Bus Master Enable
// (BME) is the only writable bit of the command register. A VF has at most one attachment at a
// time: the host view or a client of the VF's vfio-user socket. Below, "a client" is a client of
// that socket. Events in the VM have these effects (VFE: VF Enable in the PF's SR-IOV capability):
//
//   VFE set       the configuration space responds, even while a client has the VF
//   BAR accessed  the host view attaches the VF, because a driver such as amdgpu uses BARs before
//                 it enables bus mastering. While a client has the VF, BARs read all ones
//   BME set       the host view attaches the VF, unless an access to a BAR has done so already.
//                 While a client has the VF, the bit stays 0
//   BME cleared   the host view detaches the VF. An FLR, VF disable, a reset of the bus or of the
//                 endpoint, and the end of the VM's connection also detach the VF
//
// While a client has the VF, writes to the configuration space are dropped, and reads of the
// capabilities return the values after power-on. BusVf is part of HostView; only the io thread uses
// it.
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/host_view/attachments.h"

namespace vgpu::softgpu::host_view {

/// Header fields: PCIe 6.0, 9.3.4.1.
class BusVf {
public:
    /// `routing_id` identifies the VF in the IOMMU; the first function behind the root port has 0.
    BusVf(pci::Function& function, std::uint32_t routing_id, Attachments& attachments)
        : function_(function), routing_id_(routing_id), attachments_(attachments) {}

    /// HostView calls these two functions only while VF Enable is set.
    void config_read(std::uint32_t offset, std::span<std::byte> out) const;
    void config_write(std::uint32_t offset, std::span<const std::byte> data);
    /// Called for an access to a BAR. Attaches the VF if necessary, and returns its function;
    /// nullptr while a client has the VF, or if the attachment fails.
    [[nodiscard]] pci::Function* attached_function();
    /// Detaches the VF if the host view has attached it.
    void detach() { attachments_.detach(function_); }

    [[nodiscard]] bool is_attached() const { return function_.reach() == pci::Reach::Bus; }

private:
    /// Attaches the VF if necessary; false if that fails. Logs a failure.
    [[nodiscard]] bool attach();
    void set_bus_master();
    /// If bus mastering is on, detaches the VF, but keeps the values that the driver wrote into the
    /// MSI capability.
    void clear_bus_master();

    pci::Function& function_;
    const std::uint32_t routing_id_;
    Attachments& attachments_;
};

}  // namespace vgpu::softgpu::host_view
