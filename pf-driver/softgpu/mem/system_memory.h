// SPDX-License-Identifier: MIT
//
// SystemMemory: the bus memory that one function may access. The function's client, the program
// that has attached to the function (such as QEMU), maps ranges of bus addresses (DMA_MAP). map()
// maps such a range into this process, too, if all of these hold:
//   - the range has a memfd that is sealed against shrinking: by shrinking the file, the client
//     could otherwise kill this process (SIGBUS);
//   - the memfd has no huge pages of hugetlbfs: an access would kill this process if the host had
//     no huge page left;
//   - the range lies wholly inside the file, at a multiple of 4 KiB;
//   - the client's limits (struct Share) leave room for the range;
//   - mmap() succeeds.
// Otherwise read() and write() access the range by messages to the client (set_peer()).
//
// A VF's own doorbell BAR is part of its bus memory (set_own_bar()), because KFD maps the doorbells
// of a process for the GPU at their bus address. Writes to the BAR ring doorbells without a message
// to the client; reads return 0.
//
// Any thread may call find(), read() and write(). unmap() and unmap_all() return when no engine has
// a pointer into the removed memory any more. Only the io thread (gpu.h) calls unmap() and
// unmap_all(), without a lock for which an engine could wait.
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
    /// Maximum number of DMA mappings at the same time, whether mapped into this process or not.
    static constexpr std::size_t kMaxMappings = 65536;

    /// One DMA_MAP message (vfio-user specification, VFIO_USER_DMA_MAP).
    struct Mapping {
        Iova address{};
        Bytes size;
        /// map() does not keep the descriptor. -1: none; the range is accessed by messages.
        int fd = -1;
        std::uint64_t fd_offset = 0;  ///< of the range in the file of `fd`, in bytes
        std::uint8_t access = 0;      ///< what the device may do: Access::Read | Access::Write
    };
    /// One 4 KiB page of bus memory.
    struct Page {
        bool is_mapped = false;
        std::uint8_t access = 0;    ///< as Mapping::access
        std::byte* host = nullptr;  ///< start of the page; nullptr: use read() and write()
    };

    /// Limits for one client: the number and the total size of the mappings in this process.
    struct Share {
        std::size_t mappings = 0;
        Bytes size;
    };
    /// The share of each client if a process may have `max_map_count` mappings (vm.max_map_count).
    /// The shares of all 17 functions (PF and VFs) together have at most max(`max_map_count` / 4,
    /// 1088) mappings. Shares are separate: no client can use up another client's share.
    [[nodiscard]] static Share share_of(std::uint64_t max_map_count);

    /// No memory is mapped at first. Without an argument, the share is share_of() of the host's
    /// vm.max_map_count.
    SystemMemory();
    explicit SystemMemory(const Share& share) : share_(share) {}
    ~SystemMemory();
    SystemMemory(const SystemMemory&) = delete;
    SystemMemory& operator=(const SystemMemory&) = delete;

    /// Sets the callback that unmap() and unmap_all() call before they unmap memory from this
    /// process. Call this while the GPU is being built. `revoke` must end all translations of the
    /// PCI function, and must not return before the last use of every pointer that Port::at() has
    /// returned earlier. Without `revoke`, there must be no such pointers.
    void set_revocation(std::function<void()> revoke) { revoke_ = std::move(revoke); }
    using WriteBar = std::function<void(std::uint64_t offset, std::span<const std::byte> data)>;
    /// Adds the function's doorbell BAR. Call this while the GPU is being built. The BAR cannot be
    /// accessed until place_own_bar(). SystemMemory::write() calls `write` for bytes in the BAR, on
    /// any thread and with any lock held; offset + data.size() is at most `size`.
    void set_own_bar(WriteBar write, Bytes size);
    /// Moves the BAR to a bus address. The BAR takes precedence over the client's mappings. With
    /// nullopt or address 0 (an unprogrammed BAR), the BAR cannot be accessed.
    void place_own_bar(std::optional<Iova> address);
    /// True if the address is in the function's doorbell BAR, which supports reads and writes, but
    /// no atomics.
    [[nodiscard]] bool is_own_bar(Iova address) const {
        return own_bar_offset(address).has_value();
    }
    /// Sets Bus Master Enable of the function; initially on. While it is off, read(), write() and
    /// find() fail as if nothing were mapped. The caller must end translations that were made from
    /// results of find().
    void set_bus_master(bool is_on) { is_bus_master_ = is_on; }
    /// Sets the client that serves ranges without a host address. With nullptr, accesses to such
    /// ranges fail.
    void set_peer(std::shared_ptr<Peer> peer);

    /// Adds a mapping. EINVAL: the range is not aligned to 4 KiB, is empty, wraps or permits no
    /// access. EEXIST: the range overlaps another mapping. ENOSPC: there are kMaxMappings mappings.
    /// A repeated map() of the same range, file, offset and access succeeds and changes nothing.
    [[nodiscard]] Result<> map(const Mapping& mapping);
    /// Removes every mapping inside the range. EINVAL if the range is malformed (as for map()) or
    /// cuts a mapping in two; ENOENT if the range contains no mapping. After an error, nothing was
    /// removed.
    [[nodiscard]] Result<> unmap(Iova address, Bytes size);
    /// Removes every mapping, for example when the client disconnects. Cannot fail.
    void unmap_all();

    /// The page of `address`. If unmap() or unmap_all() removes the page, Page::host is valid until
    /// `revoke` returns.
    [[nodiscard]] Page find(Iova address) const;
    /// False if a part of the range is not mapped for this access, if a message is necessary but
    /// fails or there is no peer, or if bus mastering is off. Any part of the bytes may have been
    /// transferred then.
    [[nodiscard]] bool read(Iova address, std::span<std::byte> out) const;
    [[nodiscard]] bool write(Iova address, std::span<const std::byte> data) const;

    [[nodiscard]] std::size_t mapping_count() const;

private:
    /// Identifies the memory behind an fd, so that map() recognises the same mapping. All 0: no fd,
    /// or fstat failed.
    struct File {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        std::uint64_t offset = 0;
        bool operator==(const File&) const = default;
    };
    struct Region {
        std::uint64_t size = 0;     // bytes
        std::byte* host = nullptr;  // nullptr: accessed by messages
        std::uint8_t access = 0;    // as Mapping::access
        File file;
    };
    using Regions = std::map<std::uint64_t, Region>;  // by bus address; never overlapping
    /// The first part of a transfer, within one region; 0 bytes: not mapped for this access.
    struct Piece {
        std::size_t bytes = 0;
        std::byte* host = nullptr;  // nullptr: accessed by messages
    };

    [[nodiscard]] std::optional<std::uint64_t> own_bar_offset(Iova address) const;
    [[nodiscard]] static File file_of(const Mapping& mapping);
    [[nodiscard]] static std::byte* map_file(const Mapping& mapping);
    [[nodiscard]] const Region* region_at(std::uint64_t address, std::uint64_t* start) const;
    [[nodiscard]] bool overlaps(std::uint64_t address, std::uint64_t size) const;
    [[nodiscard]] bool is_in_share(Bytes size) const;
    [[nodiscard]] Piece piece_at(std::uint64_t address, std::size_t max_bytes, Access access) const;
    /// Calls revoke_, then unmaps the host addresses. The caller has already removed the regions
    /// from regions_, so that no new translation finds them.
    void revoke_and_unmap(std::span<const Region> regions);
    template <typename Byte, typename Direct, typename Message, typename Own>
    bool transfer(Iova address, std::span<Byte> bytes, Access access, Direct direct,
                  Message message, const Own& own) const;

    const Share share_;
    WriteBar write_own_bar_;  // set once, while the GPU is built
    std::uint64_t own_bar_size_ = 0;
    std::atomic<std::uint64_t> own_bar_base_{0};  // 0: cannot be accessed
    std::atomic<bool> is_bus_master_{true};
    std::function<void()> revoke_;
    mutable std::shared_mutex mutex_;  // guards the members below; never held during message DMA
    Regions regions_;
    Share used_;  // the part of share_ that is in use
    std::shared_ptr<Peer> peer_;
};

}  // namespace vgpu::softgpu::mem
