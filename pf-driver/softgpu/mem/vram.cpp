// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/vram.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "pf-driver/softgpu/mem/zero.h"

namespace vgpu::softgpu::mem {

namespace {

constexpr std::uint64_t kHostPage = 4096;
/// From this size on, new pages cost less time than storing zeroes.
constexpr Bytes kReplaceFrom = 1_MiB;

void* map_anonymous(void* at, std::uint64_t bytes, int extra_flags) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | extra_flags, -1, 0);
}

}  // namespace

/// Allocates only addresses (MAP_NORESERVE): a page uses host memory only after it was written.
Result<std::unique_ptr<DeviceVram>> DeviceVram::create(Bytes size) {
    if (size < kPfBytes || size.count % VGPU_VRAM_UNIT_BYTES != 0)
        return fail(EINVAL,
                    fmt::format("device VRAM of {} bytes is not a positive multiple of 16 MiB",
                                size.count));
    void* base = map_anonymous(nullptr, size.count, 0);
    if (base == MAP_FAILED)
        return fail_errno(errno, fmt::format("cannot reserve {} bytes of device VRAM", size.count));
    return std::unique_ptr<DeviceVram>(new DeviceVram(static_cast<std::byte*>(base), size));
}

DeviceVram::DeviceVram(std::byte* base, Bytes size)
    : base_(base), size_(size), owners_(size.count / kLeafBytes) {}

DeviceVram::~DeviceVram() {
    munmap(base_, size_.count);
}

bool DeviceVram::read(DeviceOffset offset, std::span<std::byte> out) const {
    if (!contains(offset, {out.size()})) return false;
    std::memcpy(out.data(), host(offset), out.size());
    return true;
}

bool DeviceVram::write(DeviceOffset offset, std::span<const std::byte> data) {
    if (!contains(offset, {data.size()})) return false;
    std::memcpy(host(offset), data.data(), data.size());
    return true;
}

Result<> DeviceVram::check(DeviceOffset offset, Bytes length, const char* what) const {
    if (contains(offset, length)) return {};
    return fail(EINVAL,
                fmt::format("{} of {} bytes at {:#x} goes beyond the device's {} bytes of VRAM",
                            what, length.count, raw(offset), size_.count));
}

Result<> DeviceVram::scrub(DeviceOffset offset, Bytes length) {
    TRY_VOID(check(offset, length, "scrub"));
    if (length >= kReplaceFrom && (raw(offset) | length.count) % kHostPage == 0) {
        // Holds the lock until the pages are replaced, so that no VF can claim them in between.
        const std::lock_guard lock(owners_mutex_);
        if (is_unowned(offset, length)) return map_fresh(offset, length);
    }
    zero_non_temporal({host(offset), length.count});
    return {};
}

Result<> DeviceVram::verify_zero(DeviceOffset offset, Bytes length) const {
    TRY_VOID(check(offset, length, "verification"));
    const std::size_t at = find_non_zero({host(offset), length.count});
    if (at == length.count) return {};
    return fail(EIO, fmt::format("byte at device offset {:#x} is not zero", raw(offset) + at));
}

bool DeviceVram::is_unowned(DeviceOffset offset, Bytes length) const {
    const auto first = owners_.begin() + static_cast<std::ptrdiff_t>(raw(offset) / kLeafBytes);
    const auto last = owners_.begin() +
                      static_cast<std::ptrdiff_t>((raw(offset) + length.count - 1) / kLeafBytes);
    return std::all_of(first, last + 1, [](const auto& owner) { return owner == kPf; });
}

Result<> DeviceVram::map_fresh(DeviceOffset offset, Bytes length) {
    if (map_anonymous(host(offset), length.count, MAP_FIXED) == MAP_FAILED)
        return fail_errno(errno, fmt::format("cannot replace {} bytes of VRAM at {:#x}",
                                             length.count, raw(offset)));
    return {};
}

/// Works on a copy of owners_, so that an error changes no owner.
Result<> DeviceVram::claim_pages(VfId owner, std::span<const std::uint64_t> leaf_offsets) {
    const std::lock_guard lock(owners_mutex_);
    std::vector<VfId> owners(owners_.begin(), owners_.end());
    for (const std::uint64_t offset : leaf_offsets) {
        const bool is_for_vfs = offset >= kPfBytes.count && offset % kLeafBytes == 0;
        if (!is_for_vfs || !contains(DeviceOffset{offset}, {kLeafBytes}))
            return fail(EINVAL,
                        fmt::format("device page {:#x} is not one that a VF may own", offset));
        VfId& page_owner = owners[offset / kLeafBytes];
        if (page_owner != kPf)
            return fail(EBUSY, fmt::format("device page {:#x} belongs to VF{} already", offset,
                                           raw(page_owner)));
        page_owner = owner;
    }
    std::ranges::copy(owners, owners_.begin());
    return {};
}

/// The pages keep their owner until their memory is replaced, so that no other VF can claim them in
/// between.
void DeviceVram::release_pages(VfId owner) {
    std::vector<std::uint64_t> pages;
    {
        const std::lock_guard lock(owners_mutex_);
        for (std::size_t i = 0; i < owners_.size(); ++i)
            if (owners_[i] == owner) pages.push_back(i);
    }
    for (const std::uint64_t page : pages) {
        const DeviceOffset offset{page * kLeafBytes};
        // The replacement fails only if the kernel has no memory left, or if this process has too
        // many mappings. Then zeroing the old memory is enough, because VfVram::commit() maps a new
        // memfd before a VF uses the page.
        if (!map_fresh(offset, {kLeafBytes})) zero_non_temporal({host(offset), kLeafBytes});
    }
    const std::lock_guard lock(owners_mutex_);
    for (const std::uint64_t page : pages) owners_[page] = kPf;
}

bool DeviceVram::may_reach(VfId vf, const std::byte* host) const {
    const std::less<> before;
    if (before(host, base_) || !before(host, base_ + size_.count)) return true;
    const VfId owner = owners_[static_cast<std::size_t>(host - base_) / kLeafBytes];
    return owner == vf || owner == kPf;
}

/// MAP_FIXED replaces a mapping in one step: another thread sees the old or the new memory, never
/// an unmapped address.
Result<> DeviceVram::map_backing(DeviceOffset offset, Bytes length, int memfd,
                                 std::uint64_t fd_offset) {
    TRY_VOID(check(offset, length, "backing"));
    void* const mapped =
        mmap(host(offset), length.count, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memfd, static_cast<off_t>(fd_offset));
    if (mapped == MAP_FAILED)
        return fail_errno(errno, fmt::format("cannot back VRAM at {:#x}", raw(offset)));
    return {};
}

}  // namespace vgpu::softgpu::mem
