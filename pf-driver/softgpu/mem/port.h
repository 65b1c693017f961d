// SPDX-License-Identifier: MIT
//
// Port: access to the memory of one VMID of one VF, for the blocks CP, SDMA, video, IH and PSP, and
// for workers that execute waves. A Port has a small TLB. On a miss, the Port calls walk(), which
// translates the address by the page tables (gpuvm.h). The epoch of the VMID is a counter; each
// change of the counter ends all translations in the TLB (gpuvm.h lists the causes). Until then, a
// changed PTE may have no effect, as on hardware.
//
// Some memory has no host address, for example system memory whose file the client (such as QEMU)
// may shrink (system_memory.h). If an access to such memory is permitted, at() returns nullptr
// without a fault. read() and write() still work: they reach the memory indirectly, for example by
// messages to the client (Peer).
//
// One thread at a time uses a Port. While a worker executes waves in isa::run(), a pointer from
// at() is valid until isa::run() returns. All other code must have a Port::Hold, and a pointer is
// valid as long as the Hold exists. Before a page is unmapped, the unmapping thread ends all
// translations, then waits for isa::run() to return and for the Hold to end.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::mem {

/// The permission that an access requires. The values are the permission bits of a PTE, so a set of
/// permissions is a bit mask.
enum class Access : std::uint8_t { Execute = 1u << 4, Read = 1u << 5, Write = 1u << 6 };

enum class FaultKind : std::uint8_t {
    None,
    NotPresent,  ///< no valid page table entry maps the address
    Permission,  ///< the page table entry or the client's DMA mapping does not permit the access
    OutOfRange,  ///< a page table entry points outside the VF's VRAM or to inaccessible bus memory
    NotCanonical,  ///< bits 63:48 of the address are neither all clear nor all set
};

/// The cause of a failed access, and the first address that could not be accessed.
struct Fault {
    FaultKind kind = FaultKind::None;
    Access access = Access::Read;
    /// Not rounded down to a page.
    GpuVa va{};
};

/// The TLB is a direct-mapped array in front of the virtual function walk(); a hit makes no call.
class Port {
public:
    static constexpr std::uint64_t kPageBytes = 4096;

    /// `epoch` must outlive the port; every change of its value ends all translations of the port.
    explicit Port(const std::atomic<std::uint64_t>& epoch) : epoch_(epoch) {}
    virtual ~Port() = default;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// Keeps the pointers from at() valid. Unmapping waits for a Hold, so a Hold must be short and
    /// must not include a transfer of data by message. Holds cannot be nested. A walk during a Hold
    /// may read page tables by message; vfio_user/stall_budget.h limits the time of such waits.
    class Hold {
    public:
        explicit Hold(Port& port) : sequence_(port.hold_sequence_) { sequence_.fetch_add(1); }
        ~Hold() { sequence_.fetch_add(1); }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;

    private:
        std::atomic<std::uint64_t>& sequence_;
    };
    /// True while a Hold exists. Called by the thread that uses the port.
    [[nodiscard]] bool is_held() const { return hold_sequence_.load() % 2 != 0; }
    /// Returns when every Hold from before the call has ended. Any thread may call this, after it
    /// has changed the epoch.
    void await_hold() const;

    /// Host address of `va`; the bytes up to the end of the 4 KiB page may be accessed. nullptr if
    /// the access faults (fault() describes it) or if the page has no host address (records no
    /// fault).
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

    /// A cached translation of virtual page `page` (va / 4 KiB) to the host page at `host`. Valid
    /// for the Access bits in `access`, while the port's epoch equals `epoch`. In an empty entry,
    /// `page` is all ones.
    struct Entry {
        std::uint64_t page = ~0ull;
        std::uint64_t epoch = ~0ull;
        std::byte* host = nullptr;
        std::uint8_t access = 0;
    };
    /// The TLB covers 1024 pages of 4 KiB: 4 MiB.
    static constexpr std::size_t kEntries = 1024;
    /// For translated code (isa/translate), which looks pages up like at() and never changes an
    /// entry.
    [[nodiscard]] const Entry* entries() const { return entries_.data(); }
    [[nodiscard]] const std::atomic<std::uint64_t>& epoch() const { return epoch_; }

    /// Copies a range of any length. False on a fault (has_fault() is then true), or if an indirect
    /// access fails (has_fault() stays false). The bytes before the failing page have then been
    /// copied. Call clear_fault() first: an earlier fault makes indirect accesses fail.
    [[nodiscard]] bool read(GpuVa va, std::span<std::byte> out);
    [[nodiscard]] bool write(GpuVa va, std::span<const std::byte> data);

    /// For a page without a host address. False if an atomic operation on the page has no effect
    /// and returns all ones.
    [[nodiscard]] virtual bool supports_atomics(GpuVa) { return true; }

    /// True if an access has faulted since the last clear_fault(). fault() is the latest fault.
    [[nodiscard]] bool has_fault() const { return fault_.kind != FaultKind::None; }
    [[nodiscard]] const Fault& fault() const { return fault_; }
    void clear_fault() { fault_ = {}; }

protected:
    struct Translation {
        std::byte* host = nullptr;  ///< start of the 4 KiB page; nullptr: no host address
        std::uint8_t access = 0;    ///< permitted accesses: bits of Access
        Fault fault;                ///< FaultKind::None if the access is permitted
    };
    /// Translates the page of `va` and checks that `access` is permitted.
    [[nodiscard]] virtual Translation walk(GpuVa va, Access access) = 0;
    /// For assertions: false if the page belongs to another VF.
    [[nodiscard]] virtual bool may_reach(const std::byte*) const { return true; }
    /// Accesses a page that has no host address; the range lies within one page. False if the
    /// access failed, for example because the client refused it.
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
