// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/vf_vram.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::mem {

namespace {

constexpr std::uint64_t kLeaf = DeviceVram::kLeafBytes;
constexpr std::uint64_t kMaxLeaves = std::uint64_t{VF_PAGE_TABLE_ENTRIES} * VF_PAGE_TABLE_ENTRIES;

/// Entry `index` of the table at device offset `table`. Uses one atomic load, because the PF may
/// write the entry at the same time.
std::uint64_t table_entry(const DeviceVram& device, std::uint64_t table, std::uint64_t index) {
    const DeviceOffset at{table + index * sizeof(std::uint64_t)};
    return shared_at<std::uint64_t>(device.host(at)).load(std::memory_order_relaxed);
}

/// A table must lie in the PF's VRAM, because no VF can write there.
Result<> check_table(std::uint64_t offset) {
    const bool is_inside = offset <= DeviceVram::kPfBytes.count - VF_PAGE_TABLE_BYTES;
    if (is_inside && offset % VF_PAGE_TABLE_BYTES == 0) return {};
    return fail(EINVAL, fmt::format("VF page table at {:#x} is not in the PF's VRAM", offset));
}

/// The seals prevent a client, or a bug of softgpu, from shrinking the file while it is mapped.
Result<OwnedFd> create_sealed_memfd(VfId vf, Bytes size) {
    const std::string name = fmt::format("vgpu-vf{}-vram", raw(vf));
    OwnedFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const bool is_sized =
        fd && ftruncate(fd.get(), static_cast<off_t>(size.count)) == 0 &&
        fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    if (!is_sized)
        return fail_errno(
            errno, fmt::format("cannot create {} bytes of VRAM for VF{}", size.count, raw(vf)));
    return fd;
}

}  // namespace

VfVram::VfVram(DeviceVram& device, VfId vf)
    : device_(device),
      vf_(vf),
      leaves_(std::make_unique<std::atomic<std::uint64_t>[]>(device.size().count / kLeaf)) {}

VfVram::~VfVram() {
    // Does not call revoke_: no engine runs any more, and revoke_ may refer to a destroyed object.
    device_.release_pages(vf_);
}

Result<std::vector<std::uint64_t>> VfVram::walk_table(DeviceOffset root, Bytes size) const {
    TRY_VOID(check_table(raw(root)));
    const std::uint64_t count = size.count / kLeaf;
    const bool is_size_good = size.count % kLeaf == 0 && count != 0 && count <= kMaxLeaves;
    if (!is_size_good || size > device_.size())
        return fail(EINVAL, fmt::format("VF{} cannot have {} bytes of VRAM", raw(vf_), size.count));
    std::vector<std::uint64_t> leaves;
    leaves.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t directory = table_entry(device_, raw(root), i / VF_PAGE_TABLE_ENTRIES);
        if ((directory & VF_PAGE_TABLE_VALID) == 0)
            return fail(EINVAL,
                        fmt::format("VF{}: no table for VRAM offset {:#x}", raw(vf_), i * kLeaf));
        const std::uint64_t table = directory & VF_PAGE_TABLE_ADDR_MASK;
        TRY_VOID(check_table(table));
        const std::uint64_t leaf = table_entry(device_, table, i % VF_PAGE_TABLE_ENTRIES);
        if ((leaf & VF_PAGE_TABLE_VALID) == 0)
            return fail(EINVAL,
                        fmt::format("VF{}: VRAM offset {:#x} is not mapped", raw(vf_), i * kLeaf));
        leaves.push_back(leaf & VF_PAGE_TABLE_ADDR_MASK);
    }
    return leaves;
}

/// Maps each run of adjacent device pages with one call.
Result<> VfVram::back_with_memfd(const std::vector<std::uint64_t>& leaves, Bytes size) {
    TRY(memfd_, create_sealed_memfd(vf_, size));
    for (std::size_t first = 0; first < leaves.size();) {
        std::size_t next = first + 1;
        while (next < leaves.size() && leaves[next] == leaves[next - 1] + kLeaf) ++next;
        TRY_VOID(device_.map_backing(DeviceOffset{leaves[first]}, {(next - first) * kLeaf},
                                     memfd_.get(), first * kLeaf));
        first = next;
    }
    return {};
}

/// Releases the old VRAM even if the commit then fails, because the PF core has already ended the
/// use of the old VRAM. Stores the leaves (2 MiB pages) first and the size last: host() reads only
/// leaves below the size, so host() never reads a leaf that is not stored yet.
Result<> VfVram::commit(DeviceOffset root, Bytes size) {
    release();
    TRY(const std::vector<std::uint64_t> leaves, walk_table(root, size));
    TRY_VOID(device_.claim_pages(vf_, leaves));
    if (Result<> backed = back_with_memfd(leaves, size); !backed) {
        release();
        return backed;
    }
    for (std::size_t i = 0; i < leaves.size(); ++i)
        leaves_[i].store(leaves[i], std::memory_order_relaxed);
    size_.store(size.count, std::memory_order_release);
    return {};
}

/// Ends all translations before it frees the pages, so that no engine can access the pages after
/// they have a new owner.
void VfVram::release() {
    size_.store(0, std::memory_order_release);
    if (revoke_) revoke_();
    device_.release_pages(vf_);
    memfd_.reset();
}

bool VfVram::read(VfOffset offset, std::span<std::byte> out) const {
    bool is_inside = true;
    std::uint64_t at = raw(offset);
    while (!out.empty()) {
        const std::uint64_t in_page = Port::kPageBytes - at % Port::kPageBytes;
        const auto part = out.first(std::min<std::size_t>(out.size(), in_page));
        if (const std::byte* from = host(VfOffset{at})) {
            std::memcpy(part.data(), from, part.size());
        } else {
            std::fill(part.begin(), part.end(), std::byte{0xff});
            is_inside = false;
        }
        out = out.subspan(part.size());
        at += part.size();
    }
    return is_inside;
}

bool VfVram::write(VfOffset offset, std::span<const std::byte> data) {
    bool is_inside = true;
    std::uint64_t at = raw(offset);
    while (!data.empty()) {
        const std::uint64_t in_page = Port::kPageBytes - at % Port::kPageBytes;
        const auto part = data.first(std::min<std::size_t>(data.size(), in_page));
        if (std::byte* to = host(VfOffset{at}))
            std::memcpy(to, part.data(), part.size());
        else
            is_inside = false;
        data = data.subspan(part.size());
        at += part.size();
    }
    return is_inside;
}

}  // namespace vgpu::softgpu::mem
