// SPDX-License-Identifier: MIT
//
// IhRing: interrupt ring 0 in guest RAM (bus address), with write pointer write-back behind it;
// rings 1 and 2 are set up and stay empty, as in the stock driver. drain() takes all entries, moves
// the read pointer by doorbell and waits until the register has it. Entries go to a bounded list,
// which tests read.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "pf-driver/hw/ih.h"
#include "tests/support/vf_client/gart.h"
#include "tests/support/vf_client/psp_ring.h"

namespace vgpu::test {

using IvEntry = ih_iv_entry;

class IhRing {
public:
    explicit IhRing(VfDevice& device);

    /// Sets bases, pointers and doorbells of all rings and enables the rings through PSP.
    void start(PspRing& psp);
    void stop(PspRing& psp);
    /// Takes the entries that are in the ring now; returns their number.
    std::size_t drain();
    /// Waits on MSI for an entry for which `wanted` is true; removes the entry from the list and
    /// returns it. Throws after `limit` (scaled).
    IvEntry wait(const std::function<bool(const IvEntry&)>& wanted, milliseconds limit);
    /// Waits for MSI until `deadline`, then drains.
    void wait_interrupt(const Deadline& deadline);
    [[nodiscard]] const std::deque<IvEntry>& entries() const { return entries_; }
    void clear() { entries_.clear(); }
    [[nodiscard]] std::uint64_t overflows() const { return overflows_; }

private:
    static constexpr std::size_t kCapacity = 4096;

    struct Ring {
        std::uint64_t iova = 0;
        std::uint32_t bytes = 0;
    };
    void program(PspRing& psp, unsigned index, std::uint32_t control);

    VfDevice& device_;
    std::vector<Ring> rings_;
    std::uint32_t rptr_ = 0;
    std::deque<IvEntry> entries_;
    std::uint64_t overflows_ = 0;
};

}  // namespace vgpu::test
