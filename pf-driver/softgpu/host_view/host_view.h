// SPDX-License-Identifier: MIT
//
// HostView: the whole card behind one vfio-user socket, so that the stock kernel of a VM finds a
// root port, the PF with its SR-IOV capability and the VFs, as on a machine with the card:
//
//   host.sock -- Endpoint -- configuration window --> 00:00.0 RootPort -- 01:00.0 PF, 01:00.1 VF1
//                        \-- memory windows --> RootPort's windows --> BARs of PF and VFs
//
// Each of these functions also has a socket of its own. A function is attached to a client of that
// socket or to the host view, never to both (pci::Function). The PF is attached as long as a VM is
// connected, unless a client of pf.sock came first: then the VM finds no PF until the client has
// disconnected and the VM has reset the endpoint. For the VFs see BusVf. Interrupts of attached
// functions are posted writes to the VM. DMA goes to the memory that the VM has mapped for the
// endpoint, through an IOMMU if the VM has a driver for the IOMMU.
//
// Everything that a VM does is untrusted: an access that decodes to nothing reads all ones or is
// dropped. The Server calls HostView on the io thread only.
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
    /// `pf` has an SR-IOV capability; the functions outlive the host view. Attaches nothing: the PF
    /// is attached with the VM's client, VFs at their first use.
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
    /// The meaning of an address: a BAR of an attached function or of the root port, and an offset
    /// in this BAR. Valid until a config write.
    struct Target {
        bool is_iommu = false;  ///< the root port's BAR, which holds the registers of the IOMMU
        pci::Function* function = nullptr;  ///< none: no function answers
        std::uint32_t bar = 0;
        std::uint64_t offset = 0;
        std::uint64_t left = 0;  ///< bytes from the address on for which this target answers
    };

    /// True if the VM sees the PF; false while a client of pf.sock has the PF, or without a VM.
    [[nodiscard]] bool has_pf() const { return pf_.reach() == pci::Reach::Bus; }
    void attach_pf();
    void detach_vfs();
    /// Does what a secondary bus reset does: detaches VFs and resets the PF.
    void reset_bus();

    /// The VF with this number, counted from 0 for VF1; nullptr if the VF is not enabled.
    [[nodiscard]] BusVf* enabled_vf(std::uint64_t number);
    /// The VF with this routing id, counted from the PF; nullptr if no enabled VF has it.
    [[nodiscard]] BusVf* vf_behind(std::optional<std::uint32_t> routing_id);
    void config_read(std::uint64_t offset, std::span<std::byte> out);
    void config_write(std::uint64_t offset, std::span<const std::byte> data);
    /// Writes to the PF's configuration space, then detaches the VFs that the write has removed.
    void write_pf(std::uint32_t offset, std::span<const std::byte> data);

    /// Decodes like the bus: the root port's own BAR, then its windows to PF and VFs.
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
