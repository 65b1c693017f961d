// SPDX-License-Identifier: MIT
//
// HostView: the whole card behind one vfio-user socket. The unmodified kernel of a VM finds a root
// port, the PF with its SR-IOV capability and the enabled VFs, as on a machine with the card:
//
//   host.sock -- Endpoint -- configuration window --> 00:00.0 RootPort -- 01:00.0 PF, 01:00.1 VF1
//                        \-- memory windows --> RootPort's windows --> BARs of PF and VFs
//
// The PF and each VF also have their own socket (pf.sock, vf1.sock ...). A function is attached to
// a client of its socket or to the host view, never to both (pci::Function). The host view attaches
// the PF when a VM connects. If a client of pf.sock has the PF at that time, the VM finds no PF
// until the client has disconnected and the VM has reset the endpoint. BusVf describes when a VF is
// attached. Interrupts of attached functions are posted writes to the VM. DMA of attached functions
// accesses the memory that the VM has mapped for the endpoint. Iommu translates the addresses of
// the functions that the VM's kernel has moved out of the identity domain (iommu.h).
//
// Accesses of a VM are untrusted. If no function decodes an address, a read returns all ones and a
// write is dropped. Only the io thread uses the host view.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pf-driver/softgpu/host_view/attachments.h"
#include "pf-driver/softgpu/host_view/bus_vf.h"
#include "pf-driver/softgpu/host_view/endpoint.h"
#include "pf-driver/softgpu/host_view/root_port.h"

namespace vgpu::softgpu::host_view {

class HostView final : public vfio_user::Device {
public:
    /// `pf` must have an SR-IOV capability; all functions must outlive the host view. `vfs` begins
    /// with VF1. Attaches no function: attach() attaches the PF, and BusVf attaches a VF when the
    /// VM first uses the VF.
    HostView(EndpointKind kind, pci::Function& pf, const std::vector<pci::Function*>& vfs);

    std::string name() const override { return "host view"; }
    Result<> attach(std::shared_ptr<Peer> peer) override;
    void detach() override;
    vfio_user::RegionDescription region(std::uint32_t index) override;
    std::uint64_t region_size(std::uint32_t index) const override;
    vfio_user::IrqDescription irq(vfio_user::Irq index) override;
    Result<> set_irqs(const vfio_user::IrqRequest& request) override;
    Result<> dma_map(const vfio_user::DmaRange& range, int fd) override;
    void dma_unmap(const vfio_user::DmaRange& range) override;
    void dma_unmap_all() override;
    std::errc read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) override;
    std::errc write(std::uint32_t region, std::uint64_t offset,
                    std::span<const std::byte> data) override;
    void reset() override;

private:
    /// The BAR and the offset to which an address decodes. Valid until the next write to a
    /// configuration space.
    struct Target {
        bool is_iommu = false;  ///< the root port's BAR, which holds the registers of the IOMMU
        /// nullptr: the root port, no function, or a VF that the host view could not attach.
        pci::Function* function = nullptr;
        std::uint32_t bar = 0;
        std::uint64_t offset = 0;
        std::uint64_t left = 0;  ///< bytes from the address on that have this target; never 0
    };

    /// True if the host view has attached the PF, so that the VM sees the PF.
    [[nodiscard]] bool has_pf() const { return pf_.reach() == pci::Reach::Bus; }
    void attach_pf();
    void detach_vfs();
    /// Secondary bus reset: detaches the VFs and resets the PF.
    void reset_bus();

    /// The VF with this number (VF1 is 0); nullptr if the VF is not enabled or has_pf() is false.
    [[nodiscard]] BusVf* enabled_vf(std::uint64_t number);
    /// The VF with this routing id (the PF is 0); nullptr if no enabled VF has the id.
    [[nodiscard]] BusVf* vf_with_routing_id(std::optional<std::uint32_t> routing_id);
    void config_read(std::uint64_t offset, std::span<std::byte> out);
    void config_write(std::uint64_t offset, std::span<const std::byte> data);
    /// Writes to the PF's configuration space, then detaches the VFs that the write has disabled.
    void write_pf(std::uint32_t offset, std::span<const std::byte> data);

    /// Decodes a memory address as the bus does: first the root port's own BAR, then the BARs of PF
    /// and VFs behind the root port's windows.
    [[nodiscard]] Target decode(std::uint64_t address);
    [[nodiscard]] std::optional<Target> decode_pf(std::uint64_t address);
    [[nodiscard]] std::optional<Target> decode_vfs(std::uint64_t address);
    void memory_read(std::uint64_t address, std::span<std::byte> out);
    void memory_write(std::uint64_t address, std::span<const std::byte> data);

    pci::Function& pf_;
    const pci::SriovSpec& sriov_;
    Attachments attachments_;
    std::vector<BusVf> vfs_;
    Endpoint endpoint_;
    RootPort root_port_;
};

}  // namespace vgpu::softgpu::host_view
