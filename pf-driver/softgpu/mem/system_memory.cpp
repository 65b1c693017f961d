// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/system_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <mutex>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/softgpu/base/file_status.h"
#include "pf-driver/softgpu/base/log.h"

namespace vgpu::softgpu::mem {

namespace {

constexpr std::uint8_t kReadWrite =
    static_cast<std::uint8_t>(Access::Read) | static_cast<std::uint8_t>(Access::Write);

/// Requires whole pages of 4 KiB, because engines translate pages: a smaller range could not be
/// revoked alone.
Result<> check_range(Iova address, Bytes size) {
    const std::uint64_t start = raw(address);
    const bool is_aligned = (start | size.count) % SystemMemory::kPageBytes == 0;
    if (is_aligned && size.count != 0 && start + (size.count - 1) >= start) return {};
    return fail(EINVAL, fmt::format("bus range {:#x} + {:#x} is empty, wraps or is not aligned to "
                                    "4 KiB",
                                    start, size.count));
}

/// False if an access to the mapped file could kill this process (SIGBUS). An access beyond the end
/// of the file would kill the process, so the file must be sealed against shrinking. An access to a
/// hole would kill the process if the file system had no page left. A host has few huge pages or
/// none, so files of hugetlbfs are refused. A tmpfs with a size limit may also have no page left.
/// The check of the seal refuses its files, because only memfds can have the seal, and memfds are
/// in the kernel's own mount, which has no limit. One risk remains even if the result is true: with
/// vm.overcommit_memory=2, the kernel may refuse any page. VRAM has the same risk.
bool is_safe_to_map(int fd, std::uint64_t offset, std::uint64_t size) {
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return false;
    struct statfs file_system {};
    if (fstatfs(fd, &file_system) != 0 || file_system.f_type != TMPFS_MAGIC) return false;
    struct stat info {};
    if (!file_status(fd, info) || info.st_size < 0) return false;
    const auto file_size = static_cast<std::uint64_t>(info.st_size);
    return offset <= file_size && size <= file_size - offset;
}

/// The host's vm.max_map_count; Linux's default if the file cannot be read.
std::uint64_t max_map_count() {
    constexpr std::uint64_t kDefault = 65530;
    std::uint64_t count = 0;
    std::ifstream file("/proc/sys/vm/max_map_count");
    return file >> count ? count : kDefault;
}

bool allows(std::uint8_t granted, Access access) {
    return (granted & static_cast<std::uint8_t>(access)) != 0;
}

}  // namespace

/// With Linux's default of vm.max_map_count, a share has 963 mappings; QEMU makes fewer than 200.
/// The address space of all shares is 17 TiB of the 128 TiB that a process has.
SystemMemory::Share SystemMemory::share_of(std::uint64_t max_map_count) {
    constexpr std::uint64_t kClients = GPUIOV_MAX_VFS + 1;
    constexpr std::uint64_t kMax = 1024;
    constexpr std::uint64_t kMin = 64;
    return {std::clamp(max_map_count / 4 / kClients, kMin, kMax), 1024_GiB};
}

SystemMemory::SystemMemory() : SystemMemory(share_of(max_map_count())) {}

SystemMemory::~SystemMemory() {
    // Does not call revoke_: no engine runs any more, and revoke_ may refer to a destroyed object.
    revoke_ = {};
    unmap_all();
}

void SystemMemory::set_own_bar(WriteBar write, Bytes size) {
    write_own_bar_ = std::move(write);
    own_bar_size_ = size.count;
}

void SystemMemory::place_own_bar(std::optional<Iova> address) {
    own_bar_base_ = address ? raw(*address) : 0;
}

std::optional<std::uint64_t> SystemMemory::own_bar_offset(Iova address) const {
    const std::uint64_t base = own_bar_base_;
    const std::uint64_t offset = raw(address) - base;
    return base != 0 && offset < own_bar_size_ ? std::optional(offset) : std::nullopt;
}

void SystemMemory::set_peer(std::shared_ptr<Peer> peer) {
    const std::unique_lock lock(mutex_);
    peer_ = std::move(peer);
}

SystemMemory::File SystemMemory::file_of(const Mapping& mapping) {
    struct stat info {};
    if (mapping.fd < 0 || !file_status(mapping.fd, info)) return {};
    return {info.st_dev, info.st_ino, mapping.fd_offset};
}

/// Maps a range without write access read-only, so that a bug crashes this process but corrupts no
/// guest.
std::byte* SystemMemory::map_file(const Mapping& mapping) {
    if (mapping.fd < 0 || mapping.fd_offset % kPageBytes != 0) return nullptr;
    if (!is_safe_to_map(mapping.fd, mapping.fd_offset, mapping.size.count)) return nullptr;
    const int protection =
        allows(mapping.access, Access::Write) ? PROT_READ | PROT_WRITE : PROT_READ;
    void* const host = mmap(nullptr, mapping.size.count, protection, MAP_SHARED | MAP_NORESERVE,
                            mapping.fd, static_cast<off_t>(mapping.fd_offset));
    return host == MAP_FAILED ? nullptr : static_cast<std::byte*>(host);
}

Result<> SystemMemory::map(const Mapping& mapping) {
    TRY_VOID(check_range(mapping.address, mapping.size));
    const std::uint64_t start = raw(mapping.address);
    if ((mapping.access & kReadWrite) == 0)
        return fail(EINVAL, fmt::format("bus range {:#x} allows neither read nor write", start));
    const File file = file_of(mapping);
    const std::unique_lock lock(mutex_);
    if (const auto same = regions_.find(start); same != regions_.end()) {
        const Region& region = same->second;
        if (region.size == mapping.size.count && region.access == mapping.access &&
            region.file == file)
            return {};
    }
    if (overlaps(start, mapping.size.count))
        return fail(EEXIST, fmt::format("bus range {:#x} + {:#x} overlaps a mapping", start,
                                        mapping.size.count));
    if (regions_.size() >= kMaxMappings)
        return fail(ENOSPC, fmt::format("more than {} DMA mappings", kMaxMappings));
    std::byte* const host = is_in_share(mapping.size) ? map_file(mapping) : nullptr;
    if (host != nullptr) used_ = {used_.mappings + 1, used_.size + mapping.size};
    regions_.emplace(start, Region{mapping.size.count, host, mapping.access, file});
    return {};
}

/// Makes all checks before it removes a mapping. Unlocks the mutex before the revocation, because
/// the revocation waits for engines, which may wait for the mutex in find().
Result<> SystemMemory::unmap(Iova address, Bytes size) {
    TRY_VOID(check_range(address, size));
    const std::uint64_t start = raw(address);
    const std::uint64_t last = start + (size.count - 1);
    std::vector<Region> removed;
    {
        const std::unique_lock lock(mutex_);
        auto first = regions_.lower_bound(start);
        if (first != regions_.begin()) {
            const auto before = std::prev(first);
            if (before->first + (before->second.size - 1) >= start)
                return fail(EINVAL, fmt::format("unmap at {:#x} cuts a mapping in two", start));
        }
        const auto end = regions_.upper_bound(last);
        if (first == end)
            return fail(ENOENT, fmt::format("nothing is mapped at bus address {:#x}", start));
        const auto& tail = *std::prev(end);
        if (tail.first + (tail.second.size - 1) > last)
            return fail(EINVAL, fmt::format("unmap up to {:#x} cuts a mapping in two", last));
        for (auto it = first; it != end; ++it) removed.push_back(it->second);
        regions_.erase(first, end);
    }
    revoke_and_unmap(removed);
    return {};
}

void SystemMemory::unmap_all() {
    std::vector<Region> removed;
    {
        const std::unique_lock lock(mutex_);
        for (const auto& [address, region] : regions_) removed.push_back(region);
        regions_.clear();
    }
    if (!removed.empty()) revoke_and_unmap(removed);
}

void SystemMemory::revoke_and_unmap(std::span<const Region> regions) {
    if (revoke_) revoke_();
    Share gone;
    for (const Region& region : regions) {
        if (region.host == nullptr) continue;
        // If munmap() fails, the mapping still counts in the share.
        if (munmap(region.host, region.size) == 0)
            gone = {gone.mappings + 1, gone.size + Bytes{region.size}};
        else
            log::warn("cannot unmap {} bytes of a client's memory: {}", region.size,
                      std::strerror(errno));
    }
    const std::unique_lock lock(mutex_);
    used_ = {used_.mappings - gone.mappings, used_.size - gone.size};
}

const SystemMemory::Region* SystemMemory::region_at(std::uint64_t address,
                                                    std::uint64_t* start) const {
    auto it = regions_.upper_bound(address);
    if (it == regions_.begin()) return nullptr;
    --it;
    if (address - it->first >= it->second.size) return nullptr;
    *start = it->first;
    return &it->second;
}

/// If any region overlaps the range, the region at `address` or the next region does.
bool SystemMemory::overlaps(std::uint64_t address, std::uint64_t size) const {
    std::uint64_t start = 0;
    if (region_at(address, &start) != nullptr) return true;
    const auto next = regions_.upper_bound(address);
    return next != regions_.end() && next->first - address < size;
}

bool SystemMemory::is_in_share(Bytes size) const {
    return used_.mappings < share_.mappings && size <= share_.size - used_.size;
}

SystemMemory::Page SystemMemory::find(Iova address) const {
    if (!is_bus_master_) return {};
    if (is_own_bar(address)) return {true, kReadWrite, nullptr};
    const std::shared_lock lock(mutex_);
    std::uint64_t start = 0;
    const std::uint64_t page = raw(address) / kPageBytes * kPageBytes;
    const Region* region = region_at(page, &start);
    if (region == nullptr) return {};
    std::byte* const host = region->host == nullptr ? nullptr : region->host + (page - start);
    return {true, region->access, host};
}

/// Stays within one region, because adjacent regions may map different files.
SystemMemory::Piece SystemMemory::piece_at(std::uint64_t address, std::size_t max_bytes,
                                           Access access) const {
    std::uint64_t start = 0;
    const Region* region = region_at(address, &start);
    if (region == nullptr || !allows(region->access, access)) return {};
    const std::uint64_t offset = address - start;
    const auto bytes = std::min<std::uint64_t>(max_bytes, region->size - offset);
    return {bytes, region->host == nullptr ? nullptr : region->host + offset};
}

template <typename Byte, typename Direct, typename Message, typename Own>
bool SystemMemory::transfer(Iova address, std::span<Byte> bytes, Access access, Direct direct,
                            Message message, const Own& own) const {
    std::uint64_t at = raw(address);
    while (!bytes.empty()) {
        if (!is_bus_master_) return false;
        if (const auto offset = own_bar_offset(Iova{at})) {
            const auto inside = bytes.first(std::min(bytes.size(), own_bar_size_ - *offset));
            own(*offset, inside);
            bytes = bytes.subspan(inside.size());
            at += inside.size();
            continue;
        }
        std::shared_ptr<Peer> peer;
        std::span<Byte> part;
        {
            // The lock is held during a copy, so that unmap() waits, but not during a message.
            const std::shared_lock lock(mutex_);
            const Piece piece = piece_at(at, bytes.size(), access);
            if (piece.bytes == 0) return false;
            part = bytes.first(piece.bytes);
            if (piece.host != nullptr)
                direct(piece.host, part);
            else if ((peer = peer_) == nullptr)
                return false;
        }
        if (peer && message(*peer, Iova{at}, part) != std::errc{}) return false;
        bytes = bytes.subspan(part.size());
        at += part.size();
    }
    return true;
}

bool SystemMemory::read(Iova address, std::span<std::byte> out) const {
    return transfer(
        address, out, Access::Read,
        [](const std::byte* host, std::span<std::byte> part) {
            std::memcpy(part.data(), host, part.size());
        },
        [](Peer& peer, Iova at, std::span<std::byte> part) { return peer.dma_read(at, part); },
        [](std::uint64_t, std::span<std::byte> part) { std::ranges::fill(part, std::byte{0}); });
}

bool SystemMemory::write(Iova address, std::span<const std::byte> data) const {
    return transfer(
        address, data, Access::Write,
        [](std::byte* host, std::span<const std::byte> part) {
            std::memcpy(host, part.data(), part.size());
        },
        [](Peer& peer, Iova at, std::span<const std::byte> part) {
            return peer.dma_write(at, part);
        },
        write_own_bar_);
}

std::size_t SystemMemory::mapping_count() const {
    const std::shared_lock lock(mutex_);
    return regions_.size();
}

}  // namespace vgpu::softgpu::mem
