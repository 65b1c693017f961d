// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/port.h"

#include <algorithm>
#include <cstring>

#include "pf-driver/softgpu/base/await.h"

namespace vgpu::softgpu::mem {

namespace {

/// Number of bytes of a transfer at `va` that lie in the page of `va`.
std::size_t bytes_in_page(std::uint64_t va, std::size_t bytes) {
    return std::min<std::size_t>(bytes, Port::kPageBytes - va % Port::kPageBytes);
}

}  // namespace

std::byte* Port::miss(GpuVa va, Access access) {
    // Reads the epoch before the walk, so that an invalidation during the walk makes the entry
    // stale.
    const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
    const Translation translation = walk(va, access);
    if (translation.fault.kind != FaultKind::None) {
        fault_ = translation.fault;
        return nullptr;
    }
    if (translation.host == nullptr) return nullptr;
    const std::uint64_t page = raw(va) / kPageBytes;
    entries_[page % kEntries] = {page, epoch, translation.host, translation.access};
    return translation.host + raw(va) % kPageBytes;
}

void Port::await_hold() const {
    const std::uint64_t seen = hold_sequence_.load();
    if (seen % 2 == 0) return;
    await_soon([&] { return hold_sequence_.load() != seen; });
}

/// Copies bytes of one page from its host address. False if the access faults or the page has no
/// host address.
bool Port::read_direct(GpuVa va, std::span<std::byte> out) {
    const Hold hold(*this);
    const std::byte* const host = at(va, Access::Read);
    if (host != nullptr) std::memcpy(out.data(), host, out.size());
    return host != nullptr;
}

bool Port::write_direct(GpuVa va, std::span<const std::byte> data) {
    const Hold hold(*this);
    std::byte* const host = at(va, Access::Write);
    if (host != nullptr) std::memcpy(host, data.data(), data.size());
    return host != nullptr;
}

bool Port::read(GpuVa va, std::span<std::byte> out) {
    std::uint64_t address = raw(va);
    while (!out.empty()) {
        const auto part = out.first(bytes_in_page(address, out.size()));
        if (!read_direct(GpuVa{address}, part) &&
            (has_fault() || !read_indirect(GpuVa{address}, part)))
            return false;
        out = out.subspan(part.size());
        address += part.size();
    }
    return true;
}

/// Copies page by page, because the next page may have any host address, or none.
bool Port::write(GpuVa va, std::span<const std::byte> data) {
    std::uint64_t address = raw(va);
    while (!data.empty()) {
        const auto part = data.first(bytes_in_page(address, data.size()));
        if (!write_direct(GpuVa{address}, part) &&
            (has_fault() || !write_indirect(GpuVa{address}, part)))
            return false;
        data = data.subspan(part.size());
        address += part.size();
    }
    return true;
}

}  // namespace vgpu::softgpu::mem
