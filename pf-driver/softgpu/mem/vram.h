// SPDX-License-Identifier: MIT
//
// DeviceVram: all VRAM of the device, as one reserved range of host addresses. A device offset
// always has the same host address. Only the memory behind the address changes, for example from
// anonymous pages to the memfd of the VF that owns the page (vf_vram.h). A 2 MiB page has at most
// one owner, so two VFs never share a page. The first 16 MiB belong to the PF; no VF can own them.
//
// scrub() and verify_zero() serve the PF's bulk operations (iov/bulk_ops.h). They check their
// ranges and may run on any thread. They do not prevent guests from writing the same bytes at the
// same time.
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
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::mem {

/// Gpu (gpu.h) makes the only DeviceVram. The PF, its bulk operations and every VfVram use it.
class DeviceVram {
public:
    /// Unit of ownership and of the VF page table: 2 MiB.
    static constexpr std::uint64_t kLeafBytes = 1ull << VF_PAGE_TABLE_LEAF_SHIFT;
    /// Size of the PF's part at the start of VRAM: 16 MiB. VF page tables must lie in this part,
    /// because no VF can write there.
    static constexpr Bytes kPfBytes{VGPU_VRAM_UNIT_BYTES};

    /// EINVAL unless `size` is a positive multiple of 16 MiB; another errno if mmap() fails.
    [[nodiscard]] static Result<std::unique_ptr<DeviceVram>> create(Bytes size);
    ~DeviceVram();
    DeviceVram(const DeviceVram&) = delete;
    DeviceVram& operator=(const DeviceVram&) = delete;

    [[nodiscard]] Bytes size() const { return size_; }
    [[nodiscard]] bool contains(DeviceOffset offset, Bytes length) const {
        return raw(offset) <= size_.count && length.count <= size_.count - raw(offset);
    }
    /// Host address; the bytes up to the end of VRAM follow. `offset` must be inside VRAM.
    [[nodiscard]] std::byte* host(DeviceOffset offset) const { return base_ + raw(offset); }

    /// For the PF's BAR0. False if a part of the range is outside VRAM; then nothing is
    /// transferred.
    [[nodiscard]] bool read(DeviceOffset offset, std::span<std::byte> out) const;
    [[nodiscard]] bool write(DeviceOffset offset, std::span<const std::byte> data);

    /// Zeroes the range. The range gets new anonymous pages if it has at least 1 MiB, begins and
    /// ends at multiples of 4 KiB, and no VF owns a page of it. Otherwise zero_non_temporal()
    /// overwrites it. EINVAL if the range is not wholly inside VRAM; another errno if mmap() fails.
    [[nodiscard]] Result<> scrub(DeviceOffset offset, Bytes length);
    /// EIO if a byte is not zero; the message names the offset of the first such byte. EINVAL if
    /// the range is not wholly inside VRAM.
    [[nodiscard]] Result<> verify_zero(DeviceOffset offset, Bytes length) const;

    /// Makes `owner` the owner of the 2 MiB pages at these device offsets. After an error, no page
    /// has changed its owner. EBUSY if a VF owns one of the pages already, or if an offset is
    /// listed twice. EINVAL if an offset is misaligned, outside VRAM or in the PF's part.
    [[nodiscard]] Result<> claim_pages(VfId owner, std::span<const std::uint64_t> leaf_offsets);
    /// Releases every page of `owner`; the pages are zero afterwards.
    void release_pages(VfId owner);
    /// False if another VF than `vf` owns the page at `host`; true for memory outside VRAM. For
    /// assertions; any thread may call it.
    [[nodiscard]] bool may_reach(VfId vf, const std::byte* host) const;
    /// Maps `length` bytes of `memfd`, from byte `fd_offset` on, at device offset `offset`. A VF
    /// must own the pages. EINVAL if the range is not wholly inside VRAM, or the errno of mmap().
    [[nodiscard]] Result<> map_backing(DeviceOffset offset, Bytes length, int memfd,
                                       std::uint64_t fd_offset);

private:
    DeviceVram(std::byte* base, Bytes size);
    [[nodiscard]] Result<> check(DeviceOffset offset, Bytes length, const char* what) const;
    [[nodiscard]] bool is_unowned(DeviceOffset offset, Bytes length) const;
    /// Replaces the memory of the range by new anonymous pages, which read as zero.
    [[nodiscard]] Result<> map_fresh(DeviceOffset offset, Bytes length);

    std::byte* base_;
    Bytes size_;
    PiMutex owners_mutex_;
    /// The owner of each 2 MiB page; kPf: the page is free or belongs to the PF. Writers hold
    /// owners_mutex_.
    std::vector<std::atomic<VfId>> owners_;
};

}  // namespace vgpu::softgpu::mem
