// SPDX-License-Identifier: MIT
//
// Attachments: the functions that the host view has attached, and the memory of the VM. A function
// reaches all of this memory, or the ranges that the IOMMU maps for the function. A function that
// is attached later gets the ranges that were mapped before. Descriptors are duplicated, one per
// file, and closed when the last range of the file is unmapped. Their number is limited, because
// other VMs need descriptors. Io thread only.
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

/// Never touches a function that it has not attached, because a client of the function's socket may
/// use the function.
class Attachments final : private Iommu::Listener {
public:
    /// The VM has connected. Functions attached later send message DMA and interrupts to `peer`.
    void open(std::shared_ptr<Peer> peer) { peer_ = std::move(peer); }
    /// The VM is gone; detaches all functions.
    void close();

    /// The function's DMA carries `routing_id`. EBUSY if the function has another attachment,
    /// ENODEV if no VM is connected. After any other error the function is not attached.
    [[nodiscard]] Result<> attach(pci::Function& function, std::uint32_t routing_id);
    /// Does nothing if the host view has not attached the function.
    void detach(pci::Function& function);

    /// Gives the range to all functions of the identity domain or, with an error, to none of them
    /// (ENOSPC: too many files). Functions of other domains get the parts to which their mappings
    /// lead; an error there is only logged.
    [[nodiscard]] Result<> map(const vfio_user::DmaRange& range, int fd);
    /// Removes what earlier calls of map() have mapped in `range`, which must not cut a mapped
    /// range in two. Afterwards no function reaches `range`.
    void unmap(const vfio_user::DmaRange& range);
    void unmap_all();

    [[nodiscard]] Iommu& iommu() { return iommu_; }

private:
    using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
    /// Largest number of files of the VM's memory at the same time; a VM has one file for each of
    /// its memory devices.
    static constexpr std::size_t kMaxFiles = 64;
    /// Several ranges of one file share a descriptor: VMs map their memory in many pieces.
    struct Range {
        vfio_user::DmaRange range;
        std::shared_ptr<const OwnedFd> fd;  // nullptr: the range is accessed by message
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
    /// Maps the memory that the function may reach. Returns an error only for a function of the
    /// identity domain; map_parts() logs the errors of other functions.
    [[nodiscard]] Result<> fill(const Attached& each) const;
    void map_parts(pci::Function& function, const Iommu::Mapping& mapping) const;
    /// Replaces the function's mappings by those of the present tables. Logs errors, because the VM
    /// cannot see them.
    void refill(const Attached& each) const;
    /// The shared duplicate of `fd`, made when the file is first mapped; nullptr if `fd` is -1.
    /// ENOSPC: more than kMaxFiles files.
    [[nodiscard]] Result<std::shared_ptr<const OwnedFd>> duplicate_of(int fd);
    [[nodiscard]] static Result<> map_in(pci::Function& function, const Range& range);

    std::shared_ptr<Peer> peer_;
    std::vector<Attached> attached_;
    std::map<std::uint64_t, Range> ranges_;  // by address; never overlapping
    std::map<File, std::weak_ptr<const OwnedFd>> files_;
    Iommu iommu_{*this};
};

}  // namespace vgpu::softgpu::host_view
