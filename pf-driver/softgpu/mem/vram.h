// SPDX-License-Identifier: MIT
//
// DeviceVram: all VRAM of the device, one reserved host address range. A device offset always has
// the same host address; only the memory behind it changes: anonymous zero pages, or the memfd of
// the VF that owns the pages (vf_vram.h). A 2 MiB page has at most one owner, so two VFs can never
// share a page. The first 16 MiB belong to the PF, and no VF can own them.
//
// Bulk operations (the PF's SCRUB and VERIFY) check their ranges and may run on any thread; they do
// not exclude guests that write the same bytes at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::mem {

/// Made once by Gpu; shared by PF, bulk operations and all VfVram.
class DeviceVram {
public:
    static constexpr std::uint64_t kLeafBytes = 1ull << VF_PAGE_TABLE_LEAF_SHIFT;
    /// Size of the PF's part at the start of VRAM. VF page tables lie in this part, where no VF can
    /// write them.
    static constexpr Bytes kPfBytes{VGPU_VRAM_UNIT_BYTES};

    /// `size` is a multiple of 16 MiB and at least as large as the PF's part.
    [[nodiscard]] static Result<std::unique_ptr<DeviceVram>> create(Bytes size);
    ~DeviceVram();
    DeviceVram(const DeviceVram&) = delete;
    DeviceVram& operator=(const DeviceVram&) = delete;

    [[nodiscard]] Bytes size() const { return size_; }
    [[nodiscard]] bool contains(DeviceOffset offset, Bytes length) const {
        return raw(offset) <= size_.count && length.count <= size_.count - raw(offset);
    }
    /// Host address; valid up to the end of VRAM. `offset` must be inside.
    [[nodiscard]] std::byte* host(DeviceOffset offset) const { return base_ + raw(offset); }

    /// False if the range is outside; nothing is transferred then. For the PF's BAR0.
    [[nodiscard]] bool read(DeviceOffset offset, std::span<std::byte> out) const;
    [[nodiscard]] bool write(DeviceOffset offset, std::span<const std::byte> data);

    /// Zeroes the range. A large range of whole pages without an owner gets fresh pages; other
    /// ranges are overwritten with zeroes, past the caches.
    [[nodiscard]] Result<> scrub(DeviceOffset offset, Bytes length);
    /// EIO names the offset of the first byte of the range that is not zero.
    [[nodiscard]] Result<> verify_zero(DeviceOffset offset, Bytes length) const;

    /// Claims all pages for `owner` or none; EBUSY if a page belongs to a VF already, EINVAL if a
    /// page is one that no VF may own.
    [[nodiscard]] Result<> claim_pages(VfId owner, std::span<const std::uint64_t> leaf_offsets);
    /// Releases every page of `owner`; the pages are zero afterwards.
    void release_pages(VfId owner);
    /// False if the page at `host` belongs to a VF other than `vf`; true for memory outside VRAM.
    /// For assertions; any thread.
    [[nodiscard]] bool may_reach(VfId vf, const std::byte* host) const;
    /// Maps `length` bytes of `memfd` from `fd_offset` at `offset`; pages must have an owner.
    [[nodiscard]] Result<> map_backing(DeviceOffset offset, Bytes length, int memfd,
                                       std::uint64_t fd_offset);

private:
    DeviceVram(std::byte* base, Bytes size);
    [[nodiscard]] Result<> check(DeviceOffset offset, Bytes length, const char* what) const;
    [[nodiscard]] bool is_unowned(DeviceOffset offset, Bytes length) const;
    [[nodiscard]] Result<> map_fresh(DeviceOffset offset, Bytes length);

    std::byte* base_;
    Bytes size_;
    std::mutex owners_mutex_;
    /// The owner of each 2 MiB page; kPf: the page is free or the PF's. Written with owners_mutex_
    /// held.
    std::vector<std::atomic<VfId>> owners_;
};

}  // namespace vgpu::softgpu::mem
