// SPDX-License-Identifier: MIT
//
// Port: the access of an engine (wave, command processor, copy engine) to memory through one VMID
// of one VF. A Port owns a small first-level TLB; a miss calls walk(), which translates GPUVM, then
// the VF page table. A translation stays usable until its epoch ends (gpuvm.h lists when). So a
// changed PTE has no effect before a TLB invalidation, as on hardware.
//
// Memory without a host mapping, such as system memory whose fd the client may shrink, has no
// direct address. at() then returns nullptr without a fault, and the engine uses read() and
// write(), which take an indirect path, such as messages to the client (Peer).
//
// One thread at a time uses a Port. In a run of waves, a pointer from at() is valid until the run
// ends; elsewhere, it is valid as long as a Port::Hold exists. Unmapping waits until the run or the
// Hold has ended.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::mem {

/// The permission that an access requires; values are the PTE's own permission bits.
enum class Access : std::uint8_t { Execute = 1u << 4, Read = 1u << 5, Write = 1u << 6 };

enum class FaultKind : std::uint8_t {
    None,
    NotPresent,  ///< no valid entry at some level
    Permission,  ///< valid, but R, W or X is missing
    OutOfRange,  ///< the entry points outside the VF's VRAM or to no bus memory
    Aperture,    ///< the address is not canonical or belongs to no aperture
};

/// Why an access failed, and the first byte that could not be reached.
struct Fault {
    FaultKind kind = FaultKind::None;
    Access access = Access::Read;
    /// The address as the engine used it, not rounded to a page.
    GpuVa va{};
};

/// A small direct-mapped cache in front of walk(), a virtual function; a hit makes no call.
class Port {
public:
    static constexpr std::uint64_t kPageBytes = 4096;

    /// `epoch` must outlive the port; every change of its value ends all translations.
    explicit Port(const std::atomic<std::uint64_t>& epoch) : epoch_(epoch) {}
    virtual ~Port() = default;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// Keeps memory in place for pointers from at() outside a run of waves. Unmapping waits for a
    /// Hold, so a Hold is short, is not nested, and does not span a transfer of data by message. A
    /// walk during a Hold may read page tables by message from the client. Unmapping then waits no
    /// longer than for any lock that is held during a message (vfio_user/stall_budget.h).
    class Hold {
    public:
        explicit Hold(Port& port) : sequence_(port.hold_sequence_) { sequence_.fetch_add(1); }
        ~Hold() { sequence_.fetch_add(1); }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;

    private:
        std::atomic<std::uint64_t>& sequence_;
    };
    /// True while a Hold exists; for the thread that uses the port.
    [[nodiscard]] bool is_held() const { return hold_sequence_.load() % 2 != 0; }
    /// Call after the epoch has changed; any thread. Returns when no Hold from before the call
    /// exists.
    void await_hold() const;

    /// Host address of `va`, valid to the end of its 4 KiB page. nullptr: the access faults
    /// (fault() says how), or the page has no host address (has_fault() is false).
    [[nodiscard]] std::byte* at(GpuVa va, Access access) {
        const std::uint64_t page = raw(va) / kPageBytes;
        const Entry& entry = entries_[page % kEntries];
        if (entry.page == page && (entry.access & static_cast<std::uint8_t>(access)) != 0 &&
            entry.epoch == epoch_.load(std::memory_order_acquire)) [[likely]] {
            assert(may_reach(entry.host) && "the TLB has a page of another VF");
            return entry.host + raw(va) % kPageBytes;
        }
        return miss(va, access);
    }

    /// A cached translation: valid for the accesses whose bits are set in `access`, while the
    /// port's epoch equals `epoch`.
    struct Entry {
        std::uint64_t page = ~0ull;
        std::uint64_t epoch = ~0ull;
        std::byte* host = nullptr;
        std::uint8_t access = 0;
    };
    /// Direct mapped by page number; 4 MiB of reach.
    static constexpr std::size_t kEntries = 1024;
    /// For translated code, which looks pages up as at() does and never changes an entry.
    [[nodiscard]] const Entry* entries() const { return entries_.data(); }
    [[nodiscard]] const std::atomic<std::uint64_t>& epoch() const { return epoch_; }

    /// Copies across page borders. False on a fault, or if an indirect access fails; has_fault()
    /// tells which. Bytes before the failing page are copied then.
    [[nodiscard]] bool read(GpuVa va, std::span<std::byte> out);
    [[nodiscard]] bool write(GpuVa va, std::span<const std::byte> data);

    /// For a page without a host address: false if an atomic on it has no effect and returns all
    /// ones.
    [[nodiscard]] virtual bool supports_atomics(GpuVa) { return true; }

    /// True if an access has faulted since the last clear_fault(); fault() is the latest fault.
    [[nodiscard]] bool has_fault() const { return fault_.kind != FaultKind::None; }
    [[nodiscard]] const Fault& fault() const { return fault_; }
    void clear_fault() { fault_ = {}; }

protected:
    struct Translation {
        std::byte* host = nullptr;  ///< start of the 4 KiB page; nullptr: indirect only
        std::uint8_t access = 0;    ///< Access bits allowed
        Fault fault;                ///< kind None if translated
    };
    /// Translates the page that holds `va`.
    [[nodiscard]] virtual Translation walk(GpuVa va, Access access) = 0;
    /// For assertions: false if the page belongs to another VF.
    [[nodiscard]] virtual bool may_reach(const std::byte*) const { return true; }
    /// Accesses a page without host address; false if the access failed, for example at the client.
    [[nodiscard]] virtual bool read_indirect(GpuVa va, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual bool write_indirect(GpuVa va, std::span<const std::byte> data) = 0;

private:
    std::byte* miss(GpuVa va, Access access);
    [[nodiscard]] bool read_direct(GpuVa va, std::span<std::byte> out);
    [[nodiscard]] bool write_direct(GpuVa va, std::span<const std::byte> data);

    const std::atomic<std::uint64_t>& epoch_;
    std::atomic<std::uint64_t> hold_sequence_{0};  ///< odd while a Hold exists
    std::array<Entry, kEntries> entries_{};
    Fault fault_;
};

}  // namespace vgpu::softgpu::mem
