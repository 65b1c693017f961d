// SPDX-License-Identifier: MIT
//
// Attachments: the functions that the host view has attached, and the VM's memory that they reach:
// all of it, or what the IOMMU maps for them. A function that comes later gets every range mapped
// before. Descriptors are duplicated, one for each file, and closed when the last of its ranges
// goes. Files are few: other VMs need descriptors, too.
//
// Part of HostView; io thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pf-driver/softgpu/host_view/iommu.h"
#include "pf-driver/softgpu/pci/function.h"

namespace vgpu::softgpu::host_view {

/// Detached functions are untouched: their own sockets may have them.
class Attachments final : private Iommu::Listener {
public:
    /// The VM is there; nothing is attached before.
    /// `peer` gets message DMA and interrupts of all functions attached later.
    void open(std::shared_ptr<vfio_user::Peer> peer) { peer_ = std::move(peer); }
    /// It is gone; all functions are detached.
    void close();

    /// EBUSY: the function has another attachment. `routing_id` is that of its accesses.
    [[nodiscard]] Result<> attach(pci::Function& function, std::uint32_t routing_id);
    /// Does nothing if the host view does not have it.
    void detach(pci::Function& function);

    /// All functions get the range or none; an error refuses the VM's DMA_MAP (ENOSPC: of too many
    /// files).
    [[nodiscard]] Result<> map(const vfio_user::DmaRange& range, int fd);
    /// The very range of a map() before. No function reaches it when this returns.
    void unmap(const vfio_user::DmaRange& range);
    void unmap_all();

    [[nodiscard]] Iommu& iommu() { return iommu_; }

private:
    using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
    /// Of the VM's memory at once; a VM has one for each of its memory devices.
    static constexpr std::size_t kMaxFiles = 64;
    /// Several ranges of one file share a descriptor: VMs map their memory in many pieces.
    struct Range {
        vfio_user::DmaRange range;
        std::shared_ptr<const OwnedFd> fd;  // nothing: by message
    };
    struct Attached {
        pci::Function* function = nullptr;
        std::uint32_t routing_id = 0;
    };

    // Iommu::Listener
    void mapped(Iommu::Domain domain, const Iommu::Mapping& mapping) override;
    void unmapped(Iommu::Domain domain, const Iommu::Mapping& mapping) override;
    void routed(std::uint32_t routing_id) override;

    [[nodiscard]] bool is_translated(const Attached& each) const;
    [[nodiscard]] std::vector<Range> parts_of(const Iommu::Mapping& mapping) const;
    [[nodiscard]] Result<> fill(const Attached& each) const;
    void map_parts(pci::Function& function, const Iommu::Mapping& mapping) const;
    /// All its mappings go and come back as the tables say now; errors are logged, as the VM has no
    /// way to hear of them.
    void refill(const Attached& each) const;
    [[nodiscard]] Result<std::shared_ptr<const OwnedFd>> keep(int fd);
    [[nodiscard]] static Result<> map_in(pci::Function& function, const Range& range);

    std::shared_ptr<vfio_user::Peer> peer_;
    std::vector<Attached> attached_;
    std::map<std::uint64_t, Range> ranges_;  // by address; never overlapping
    std::map<File, std::weak_ptr<const OwnedFd>> files_;
    Iommu iommu_{*this};
};

}  // namespace vgpu::softgpu::host_view
