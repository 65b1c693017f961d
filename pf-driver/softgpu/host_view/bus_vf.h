// SPDX-License-Identifier: MIT
//
// BusVf: a VF as it appears on the PF's bus. Its configuration space is that of SR-IOV VFs: the PF
// holds ids and BARs, and only Bus Master Enable (BME) of the VF's command register can be written.
// VFE is VF Enable of the PF's SR-IOV capability.
//
//   VFE set       the configuration space answers, whoever has the VF
//   BAR accessed  the host view attaches the VF; while a vfio-user client has the VF, the BAR reads
//                 all ones. Drivers such as amdgpu use a VF long before they need bus mastering
//   BME set       the host view attaches, if no BAR was accessed before; the bit stays 0 while a
//                 client has the VF
//   BME cleared   the host view detaches; it also detaches at FLR, VF disable and bus reset, and
//                 when the VM disconnects
//
// While a client has the VF, writes to the configuration space are lost, and the capabilities look
// as after power-on. Part of HostView; io thread only.
#pragma once

#include <cstdint>
#include <span>

#include "pf-driver/softgpu/host_view/attachments.h"

namespace vgpu::softgpu::host_view {

/// Header fields: PCIe 6.0, 9.3.4.1.
class BusVf {
public:
    /// The VF's DMA carries `routing_id`. Routing ids count from the first function behind the
    /// root port.
    BusVf(pci::Function& function, std::uint32_t routing_id, Attachments& attachments)
        : function_(function), routing_id_(routing_id), attachments_(attachments) {}

    /// Called only while VF Enable is set; HostView guarantees that.
    void config_read(std::uint32_t offset, std::span<std::byte> out) const;
    void config_write(std::uint32_t offset, std::span<const std::byte> data);
    /// Attaches the VF if necessary, and returns its function, for an access to a BAR. nullptr
    /// while a client has the VF, or if the VF cannot be attached.
    [[nodiscard]] pci::Function* attached_function();
    /// Called if the bus is reset, the VM disconnects, or the VF is disabled.
    void detach() { attachments_.detach(function_); }

    [[nodiscard]] bool is_attached() const { return function_.reach() == pci::Reach::Bus; }

private:
    /// False while a client of the VF's socket has the VF; the VF's BARs then read all ones.
    [[nodiscard]] bool attach();
    void set_bus_master();
    /// Detaches, but keeps the values that the driver wrote into the MSI capability.
    void clear_bus_master();

    pci::Function& function_;
    const std::uint32_t routing_id_;
    Attachments& attachments_;
};

}  // namespace vgpu::softgpu::host_view
