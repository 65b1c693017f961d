// SPDX-License-Identifier: MIT
//
// Attachments: the functions that the host view (host_view.h) has attached, and the VM's memory
// that these functions can access by DMA. A function in the IOMMU's identity domain can access all
// memory that the VM has mapped (map()); any other function can access only the part of this memory
// to which its IOMMU domain maps addresses. A function also gets the ranges that were mapped before
// its attachment. Attachments keeps one duplicated descriptor per file, until the last range of the
// file is unmapped. The number of files is limited, because other VMs need descriptors, too. Only
// the io thread uses Attachments.
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

/// Changes only functions that the host view has attached, because the other functions may be
/// attached to clients of their vfio-user sockets.
class Attachments final : private Iommu::Listener {
public:
    /// Call when the VM has connected. Functions that are attached later send DMA messages and
    /// interrupts to `peer`.
    void open(std::shared_ptr<Peer> peer) { peer_ = std::move(peer); }
    /// Call when the VM has disconnected. Detaches all functions, forgets all memory and resets the
    /// IOMMU.
    void close();

    /// Attaches the function; `routing_id` selects its IOMMU domain. EBUSY if the function has
    /// another attachment, ENODEV if no VM is connected, or an error of the function or of its DMA
    /// mappings. After an error, this call has not attached the function.
    [[nodiscard]] Result<> attach(pci::Function& function, std::uint32_t routing_id);
    /// Does nothing if the host view has not attached the function.
    void detach(pci::Function& function);

    /// Adds a range of the VM's memory; `fd` is borrowed, -1: accessed by messages. Maps the range
    /// for all functions in the identity domain or, after an error, for none of them. ENOSPC: too
    /// many files. Other errors: the errno of fstat or fcntl, or an error of
    /// pci::Function::dma_map(). Functions in other domains get the parts that their mappings
    /// cover; errors there are only logged.
    [[nodiscard]] Result<> map(const vfio_user::DmaRange& range, int fd);
    /// Removes all ranges that lie in `range`, which must not cut a mapped range in two. On return,
    /// no function that the host view has attached can access `range`.
    void unmap(const vfio_user::DmaRange& range);
    void unmap_all();

    [[nodiscard]] Iommu& iommu() { return iommu_; }

private:
    using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
    /// Maximum number of different files behind the VM's memory. QEMU has at most one file for each
    /// memory backend of the VM.
    static constexpr std::size_t kMaxFiles = 64;
    /// One range of the VM's memory. Ranges of the same file share a descriptor, because a VM maps
    /// its memory in many pieces.
    struct Range {
        vfio_user::DmaRange range;
        std::shared_ptr<const OwnedFd> fd;  // nullptr: the range is accessed by messages
    };
    struct Attached {
        pci::Function* function = nullptr;
        std::uint32_t routing_id = 0;
    };

    // Iommu::Listener
    void mapped(Iommu::Domain domain, const Iommu::Mapping& mapping) override;
    void unmapped(Iommu::Domain domain, const Iommu::Mapping& mapping) override;
    void routed(std::uint32_t routing_id) override;

    /// True if the function is not in the identity domain.
    [[nodiscard]] bool is_translated(const Attached& each) const;
    /// The parts of the VM's ranges that `mapping` covers. Their addresses are those that the
    /// function uses.
    [[nodiscard]] std::vector<Range> parts_of(const Iommu::Mapping& mapping) const;
    /// Maps all memory that the function may access. Returns an error only for a function in the
    /// identity domain; for other functions, map_parts() logs errors.
    [[nodiscard]] Result<> fill(const Attached& each) const;
    void map_parts(pci::Function& function, const Iommu::Mapping& mapping) const;
    /// Replaces all mappings of the function by those of the current IOMMU tables. Logs errors
    /// instead of returning them, because nothing can report them to the VM.
    void refill(const Attached& each) const;
    /// The shared duplicate of `fd`, made when the file is first mapped; nullptr if `fd` is -1.
    /// ENOSPC: kMaxFiles other files are in use.
    [[nodiscard]] Result<std::shared_ptr<const OwnedFd>> duplicate_of(int fd);
    [[nodiscard]] static Result<> map_in(pci::Function& function, const Range& range);

    std::shared_ptr<Peer> peer_;
    std::vector<Attached> attached_;
    std::map<std::uint64_t, Range> ranges_;  // by address; never overlapping
    std::map<File, std::weak_ptr<const OwnedFd>> files_;
    Iommu iommu_{*this};
};

}  // namespace vgpu::softgpu::host_view
