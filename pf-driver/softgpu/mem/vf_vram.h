// SPDX-License-Identifier: MIT
//
// VfVram: the VRAM of one VF, and the second stage of address translation, from VF VRAM offset to
// host address. commit() reads the VF page table that the PF core wrote
// (pf-driver/hw/vf_page_table.h), makes the VF the owner of the device pages in the table
// (DeviceVram::claim_pages()), and maps a new sealed memfd over these pages. VF VRAM offset o is
// memfd offset o, even if the device pages are scattered, so a client can map BAR0 as one area.
// Each commit() makes a new memfd, and release() drops the memfd. So a client's old mapping shows
// only the old memfd, never the memory of the next owner.
//
// Any thread may call host() at any time. Only one thread at a time may call commit() or release().
// The caller must hold no lock for which an engine thread may wait, because both functions wait
// until no engine has a host address of the old VRAM (set_revocation()).
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/mem/vram.h"

namespace vgpu::softgpu::mem {

/// One per VF; exists as long as the device.
class VfVram {
public:
    /// Starts without VRAM.
    VfVram(DeviceVram& device, VfId vf);
    ~VfVram();
    VfVram(const VfVram&) = delete;
    VfVram& operator=(const VfVram&) = delete;

    /// Sets the function that commit() and release() call before they free device pages. Call this
    /// while the GPU is being built. The rules for `revoke` are those of
    /// SystemMemory::set_revocation().
    void set_revocation(std::function<void()> revoke) { revoke_ = std::move(revoke); }

    /// Releases the old VRAM, then gives the VF the `size` bytes that the table at `root` maps.
    /// `root` lies in the PF's VRAM; `size` is a positive multiple of 2 MiB. EINVAL: the size or
    /// the table is invalid, or the table lists a page that no VF may own. EBUSY: another VF owns a
    /// page, or the table lists a page twice. Another errno: the memfd could not be made or mapped.
    /// After any error the VF has no VRAM.
    [[nodiscard]] Result<> commit(DeviceOffset root, Bytes size);
    /// Takes the VRAM away; idempotent. The device pages are zero afterwards. A client's mappings
    /// of the old memfd stay valid.
    void release();

    /// Bytes; 0 without VRAM. Any thread may call it.
    [[nodiscard]] Bytes size() const { return {size_.load(std::memory_order_acquire)}; }
    /// The memfd with all VRAM of the VF; -1 without VRAM. VfVram owns it: give only a dup() to
    /// others.
    [[nodiscard]] int memfd() const { return memfd_.get(); }

    /// Host address of `offset`; the bytes up to the end of the 4 KiB page may be accessed. nullptr
    /// beyond the VRAM.
    [[nodiscard]] std::byte* host(VfOffset offset) const {
        const std::uint64_t at = raw(offset);
        if (at >= size_.load(std::memory_order_acquire)) return nullptr;
        const std::uint64_t leaf =
            leaves_[at / DeviceVram::kLeafBytes].load(std::memory_order_relaxed);
        std::byte* const host = device_.host(DeviceOffset{leaf + at % DeviceVram::kLeafBytes});
        assert(may_reach(host) && "this page belongs to another VF");
        return host;
    }
    /// False if the host address is in VRAM of another VF. For assertions.
    [[nodiscard]] bool may_reach(const std::byte* host) const {
        return device_.may_reach(vf_, host);
    }

    /// For trapped accesses to BAR0 and for the PF's bulk operations. Bytes beyond the VRAM read as
    /// all ones, and writes to these bytes are dropped. False if the range has such bytes.
    bool read(VfOffset offset, std::span<std::byte> out) const;
    bool write(VfOffset offset, std::span<const std::byte> data);

private:
    /// Device offsets of all 2 MiB pages, in the order of VF VRAM offsets. EINVAL: the message
    /// names the bad size, or the first bad table or entry.
    [[nodiscard]] Result<std::vector<std::uint64_t>> walk_table(DeviceOffset root,
                                                                Bytes size) const;
    /// Makes the memfd, and maps it over the device pages.
    [[nodiscard]] Result<> back_with_memfd(const std::vector<std::uint64_t>& leaves, Bytes size);

    DeviceVram& device_;
    const VfId vf_;
    std::function<void()> revoke_;
    OwnedFd memfd_;
    /// Bytes. commit() stores the size last, and release() clears it first. So a thread that reads
    /// a size also sees the entries of leaves_ below that size.
    std::atomic<std::uint64_t> size_{0};
    /// Device offset of each 2 MiB page (leaf) of the VF's VRAM; the array has room for the whole
    /// device.
    std::unique_ptr<std::atomic<std::uint64_t>[]> leaves_;
};

}  // namespace vgpu::softgpu::mem
