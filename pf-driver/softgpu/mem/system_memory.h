// SPDX-License-Identifier: MIT
//
// SystemMemory: the bus memory that one function may reach, as its client mapped it (DMA_MAP). A
// range whose fd is a memfd sealed against shrinking is mapped into this process. Every other range
// is reached by messages to the client: if such a range were mapped, a client could kill this
// process by shrinking the file. Messages are also used for memfds of huge pages, which kill this
// process if the host has no huge page left, and for ranges beyond the client's share of this
// process's mappings and address space.
//
// The function's own doorbell BAR is on the bus as well, because KFD passes the bus address of a
// process's doorbells to engines. Engines write the BAR without a message to the client, and read 0
// from it.
//
// find(), read() and write() may be called from any thread. unmap() returns when no engine can hold
// a pointer into the range any more. The io thread calls unmap(), without locks that an engine
// could wait for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/peer.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::mem {

class SystemMemory {
public:
    static constexpr std::uint64_t kPageBytes = Port::kPageBytes;
    static constexpr std::size_t kMaxMappings = 65536;

    /// A mapping in the terms of a DMA_MAP message (vfio-user specification, VFIO_USER_DMA_MAP).
    struct Mapping {
        Iova address{};
        Bytes size;
        /// Used during map() only, because the mapping outlives the descriptor; -1: message DMA.
        int fd = -1;
        std::uint64_t fd_offset = 0;
        std::uint8_t access = 0;  ///< accesses of the device: Access::Read | Access::Write
    };
    /// One 4 KiB page as an engine sees it.
    struct Page {
        bool is_mapped = false;
        std::uint8_t access = 0;
        std::byte* host = nullptr;  ///< start of the page; nullptr: use read() and write()
    };

    /// The part of a client's memory that may be mapped into this process.
    struct Share {
        std::size_t mappings = 0;
        Bytes size;
    };
    /// One client's share if a process may have `max_map_count` mappings (vm.max_map_count). The
    /// shares of all clients together have at most a quarter of `max_map_count` mappings, or 1088
    /// if that is more. No client can use up the share of another.
    [[nodiscard]] static Share share_of(std::uint64_t max_map_count);

    /// Every access fails until the client maps memory. The share follows vm.max_map_count.
    SystemMemory();
    explicit SystemMemory(const Share& share) : share_(share) {}
    ~SystemMemory();
    SystemMemory(const SystemMemory&) = delete;
    SystemMemory& operator=(const SystemMemory&) = delete;

    /// Called while the GPU is built. `revoke` ends every translation of the function, and returns
    /// when no pointer that Port::at() returned before is in use. Without `revoke`, unmap() assumes
    /// that no engine has such a pointer.
    void set_revocation(std::function<void()> revoke) { revoke_ = std::move(revoke); }
    using WriteBar = std::function<void(std::uint64_t offset, std::span<const std::byte> data)>;
    /// Called while the GPU is built. The BAR is unreachable until place_own_bar(). `write` is
    /// called on any thread, whatever locks that thread holds; offset + size is inside the BAR.
    void set_own_bar(WriteBar write, Bytes size);
    /// Moves the BAR to a bus address, where it takes precedence over the client's mappings; with
    /// nullopt or address 0 (an unprogrammed BAR), the BAR is unreachable.
    void place_own_bar(std::optional<Iova> address);
    /// True if the page is in the function's own BAR, which supports reads and writes, but no
    /// atomics.
    [[nodiscard]] bool is_own_bar(Iova address) const {
        return own_bar_offset(address).has_value();
    }
    /// Sets the client, which serves ranges without host mapping; with nullptr such accesses fail.
    void set_peer(std::shared_ptr<Peer> peer);

    /// EINVAL: the range is not 4 KiB aligned, is empty, wraps or allows no access; EEXIST: the
    /// range overlaps a mapping; ENOSPC: there are kMaxMappings mappings. A repeated mapping of the
    /// same range, access and file changes nothing.
    [[nodiscard]] Result<> map(const Mapping& mapping);
    /// Removes every mapping inside the range. EINVAL if the range is malformed or cuts a mapping
    /// in two, ENOENT if the range holds no mapping; nothing is removed then.
    [[nodiscard]] Result<> unmap(Iova address, Bytes size);
    /// Removes every mapping, for a client that leaves; cannot fail.
    void unmap_all();

    /// The page that holds `address`. The host address is valid until unmap() has revoked it.
    [[nodiscard]] Page find(Iova address) const;
    /// False: not mapped for this access, or the client failed; earlier bytes may be transferred.
    [[nodiscard]] bool read(Iova address, std::span<std::byte> out) const;
    [[nodiscard]] bool write(Iova address, std::span<const std::byte> data) const;

    [[nodiscard]] std::size_t mapping_count() const;

private:
    /// Identifies the memory behind an fd, so that map() recognises a repeated mapping.
    struct File {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        std::uint64_t offset = 0;
        bool operator==(const File&) const = default;
    };
    struct Region {
        std::uint64_t size = 0;
        std::byte* host = nullptr;
        std::uint8_t access = 0;
        File file;
    };
    using Regions = std::map<std::uint64_t, Region>;
    /// Bytes of a transfer that one region serves; empty: not mapped for this access.
    struct Piece {
        std::size_t bytes = 0;
        std::byte* host = nullptr;  // nullptr: by message
    };

    [[nodiscard]] std::optional<std::uint64_t> own_bar_offset(Iova address) const;
    [[nodiscard]] static File file_of(const Mapping& mapping);
    [[nodiscard]] static std::byte* map_file(const Mapping& mapping);
    [[nodiscard]] const Region* region_at(std::uint64_t address, std::uint64_t* start) const;
    [[nodiscard]] bool overlaps(std::uint64_t address, std::uint64_t size) const;
    [[nodiscard]] bool is_in_share(Bytes size) const;
    [[nodiscard]] Piece piece_at(std::uint64_t address, std::size_t max_bytes, Access access) const;
    /// Revokes, then unmaps. The caller has already taken the regions out of regions_, so that no
    /// translation finds them.
    void revoke_and_unmap(std::span<const Region> regions);
    template <typename Byte, typename Direct, typename Message, typename Own>
    bool transfer(Iova address, std::span<Byte> bytes, Access access, Direct direct,
                  Message message, const Own& own) const;

    const Share share_;
    WriteBar write_own_bar_;  // constant after build
    std::uint64_t own_bar_size_ = 0;
    std::atomic<std::uint64_t> own_bar_base_{0};  // 0: unreachable
    std::function<void()> revoke_;
    mutable std::shared_mutex mutex_;  // guards the members below; never held during message DMA
    Regions regions_;
    Share used_;
    std::shared_ptr<Peer> peer_;
};

}  // namespace vgpu::softgpu::mem
