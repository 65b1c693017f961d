// SPDX-License-Identifier: MIT
//
// VfVram: the VRAM of one VF, and the second stage of address translation, from VF VRAM offset to
// host address. commit() walks the VF page table that the PF core wrote (hw/vf_page_table.h),
// checks every leaf, claims the pages and puts a fresh sealed memfd behind them. VF offset o is
// memfd offset o even if the device pages are scattered, so BAR0 is one area that a client may map.
// A new commit or release() replaces the backing: an old mapping shows only the old memfd, never
// the next owner's memory.
//
// Any thread may call host() at any time; host() uses the leaves of the last commit(). One thread
// at a time calls commit() and release(), without locks that an engine could wait for, because both
// return only after every engine has passed a stop point (set_revocation()).
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

    /// Called while the GPU is built. `revoke` has the same contract as in
    /// SystemMemory::set_revocation().
    void set_revocation(std::function<void()> revoke) { revoke_ = std::move(revoke); }

    /// `root` is the device offset of the root table, inside the PF's VRAM; `size` is a multiple of
    /// 2 MiB, all of which the table maps. After any error the VF has no VRAM.
    [[nodiscard]] Result<> commit(DeviceOffset root, Bytes size);
    /// Takes the VRAM away; idempotent. The device pages are zero afterwards; a client's mappings
    /// keep the old memfd.
    void release();

    /// 0 without VRAM. Any thread.
    [[nodiscard]] Bytes size() const { return {size_.load(std::memory_order_acquire)}; }
    /// The memfd behind the whole VF, -1 without VRAM. Stays owned by VfVram; pass on a dup().
    [[nodiscard]] int memfd() const { return memfd_.get(); }

    /// Host address of `offset`, valid up to the end of its 4 KiB page; nullptr beyond the VRAM.
    [[nodiscard]] std::byte* host(VfOffset offset) const {
        const std::uint64_t at = raw(offset);
        if (at >= size_.load(std::memory_order_acquire)) return nullptr;
        const std::uint64_t leaf =
            leaves_[at / DeviceVram::kLeafBytes].load(std::memory_order_relaxed);
        std::byte* const host = device_.host(DeviceOffset{leaf + at % DeviceVram::kLeafBytes});
        assert(may_reach(host) && "this page belongs to another VF");
        return host;
    }
    /// For assertions: false if the address is that of another VF's VRAM.
    [[nodiscard]] bool may_reach(const std::byte* host) const {
        return device_.may_reach(vf_, host);
    }

    /// Trapped BAR0 accesses; false if a byte was beyond the VRAM. Such bytes read all ones, and
    /// writes to them are dropped.
    bool read(VfOffset offset, std::span<std::byte> out) const;
    bool write(VfOffset offset, std::span<const std::byte> data);

private:
    /// Device offsets of all leaves, in the order of VF offsets; EINVAL names the first wrong leaf.
    [[nodiscard]] Result<std::vector<std::uint64_t>> walk_table(DeviceOffset root,
                                                                Bytes size) const;
    [[nodiscard]] Result<> back_with_memfd(const std::vector<std::uint64_t>& leaves, Bytes size);

    DeviceVram& device_;
    const VfId vf_;
    std::function<void()> revoke_;
    OwnedFd memfd_;
    /// Stored last by commit(), first by release(): a thread that reads a size sees the leaves of
    /// that size.
    std::atomic<std::uint64_t> size_{0};
    /// Device offset of each 2 MiB leaf; the array has room for the whole device.
    std::unique_ptr<std::atomic<std::uint64_t>[]> leaves_;
};

}  // namespace vgpu::softgpu::mem
