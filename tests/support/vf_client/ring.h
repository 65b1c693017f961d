// SPDX-License-Identifier: MIT
//
// Ring: a kernel ring (KIQ, KCQ, HIQ, gfx or SDMA) in GART memory, with its read and write pointer
// words, its doorbell and a fence word. push() copies packets, wraps, waits for room, publishes the
// write pointer and rings. sync() waits until everything pushed so far has been executed.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/vf_client/gart.h"
#include "tests/support/vf_client/packets.h"

namespace vgpu::test {

enum class RingUnit : std::uint32_t { CountsDwords = 1, CountsBytes = 4 };  ///< pointers, doorbell
enum class FenceStyle { WriteData, ReleaseMem, SdmaFence };

struct RingSpec {
    std::string name;
    std::uint32_t dwords = 1024;  ///< a power of two
    std::uint32_t doorbell = 0;
    RingUnit unit = RingUnit::CountsDwords;
    FenceStyle fence = FenceStyle::ReleaseMem;
};

class Ring {
public:
    /// Limit of sync(), generous because the VF shares the engine.
    static constexpr milliseconds kLimit{8000};

    Ring(VfDevice& device, Gart& gart, RingSpec spec);

    [[nodiscard]] const RingSpec& spec() const { return spec_; }
    [[nodiscard]] const Buffer& memory() const { return memory_; }
    [[nodiscard]] std::uint64_t rptr_address() const { return words_.address + kRptr; }
    [[nodiscard]] std::uint64_t wptr_address() const { return words_.address + kWptr; }

    void push(const Dwords& packets);
    /// push(packets), then wait for a fence behind them. Throws after kLimit (scaled).
    void sync(const Dwords& packets = {});
    /// Like sync(), but returns false if the fence did not arrive within `limit`.
    [[nodiscard]] bool try_sync(const Dwords& packets, milliseconds limit);
    /// A zeroed 8-byte word of the ring's own page for tests and register reads.
    [[nodiscard]] Buffer scratch() const { return words_.part(kScratch, 8); }
    /// Forgets what was pushed; for use after a reset of the VF.
    void rewind();

private:
    static constexpr std::uint64_t kRptr = 0, kWptr = 32, kFence = 64, kScratch = 96;

    [[nodiscard]] Dwords fence_packet(std::uint64_t value) const;
    void record(const Dwords& packets);
    void wait_for_room(std::size_t dwords) const;

    VfDevice& device_;
    RingSpec spec_;
    Buffer memory_;
    Buffer words_;
    std::uint64_t wptr_ = 0;  // dwords, monotonic
    std::uint64_t fence_ = 0;
};

}  // namespace vgpu::test
