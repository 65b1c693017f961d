// SPDX-License-Identifier: MIT
//
// RingLatch: keeps the rings of doorbells until the owner takes them. In this file a ring is one
// write of a doorbell, not a ring buffer. Write pointers are absolute, so the latest ring of a
// doorbell suffices (Linux 6.12, amdgpu/gfx_v9_0.c, WDOORBELL64). There is one exception: several
// producers of an AQL queue ring in any order, and a smaller index may come last. So the latch also
// keeps the largest value of a doorbell, and hands out the largest value first, then the latest. An
// AQL queue ignores the smaller of the two; for any other queue, the latest value counts.
//
// The size of the BAR bounds the memory of the latch, however often doorbells ring. Not thread
// safe: the owner of a RingLatch has a lock.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "pf-driver/hw/doorbell.h"
#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu::iov {

/// One doorbell write. A 64-bit ring belongs to the doorbell of its first dword.
struct DoorbellRing {
    enum class Width : std::uint8_t { Dword = 4, Qword = 8 };
    DoorbellIndex index{};
    std::uint64_t value = 0;
    Width width = Width::Dword;
};

class RingLatch {
public:
    static constexpr std::size_t kPageDwords = DOORBELL_PAGE_BYTES / sizeof(std::uint32_t);
    /// `max` of take(): no limit.
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

    /// Keeps a ring, whose index must be inside the BAR.
    void latch(const DoorbellRing& ring);
    [[nodiscard]] bool is_empty() const { return count_ == 0; }
    /// Hands the rings of at most `max` doorbells to `sink` and forgets these rings. Goes from page
    /// 0 upwards, or, if the previous call left rings, from the page after the last page that the
    /// previous call visited, and then around the end of the BAR.
    void take(std::size_t max, const std::function<void(const DoorbellRing&)>& sink);
    /// Hands all rings to `sink` in ascending order of doorbells, and keeps them.
    void for_each(const std::function<void(const DoorbellRing&)>& sink) const;
    /// The latest values as bytes of the BAR; 0 on a page where no ring waits. `offset` counts
    /// bytes from the start of the BAR.
    void read(std::uint64_t offset, std::span<std::byte> out) const;
    void clear();

private:
    /// By dword of the page. A 64-bit value has its high half in the next dword.
    using Values = std::array<std::uint32_t, kPageDwords>;
    struct Page {
        Values latest{};
        Values largest{};
        std::bitset<kPageDwords> is_kept;  ///< doorbells with a ring
        std::bitset<kPageDwords> is_wide;  ///< doorbells whose ring has 64 bits
    };

    void deliver(std::size_t page, std::size_t dword,
                 const std::function<void(const DoorbellRing&)>& sink) const;

    std::uint64_t count_ = 0;    ///< doorbells with a ring
    std::size_t next_page_ = 0;  ///< the page at which the next take() begins
    std::array<std::unique_ptr<Page>, DOORBELL_PAGES> pages_;  // null: the page has no ring
};

}  // namespace vgpu::softgpu::iov
