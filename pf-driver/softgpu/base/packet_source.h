// SPDX-License-Identifier: MIT
//
// PacketSource: a part of a VF that does work in bounded steps. The sources are the command
// processor, each SDMA engine, the encoder rings, and the doorbells that the VF's own packets and
// waves have rung. The engine's workers alternate between the sources of the running VF. The caller
// of every method holds the VF's lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpu::softgpu {

enum class StepResult : std::uint8_t {
    Progress,  ///< did some work; more may be left
    Blocked,   ///< work is left, but cannot continue now: it waits for memory, for example
    Idle,      ///< nothing to do
};

/// The work that one step() may still do. A step ends only between two packets or two units of a
/// transfer (bytes, dwords or entries). So a step may exceed `bytes` by less than one packet or
/// unit.
struct StepBudget {
    std::uint64_t bytes = 64u << 10;
    std::uint32_t packets = 16;

    [[nodiscard]] bool is_spent() const { return packets == 0 || bytes == 0; }
    /// Subtracts one packet, and `n` bytes that the packet has or copies.
    void charge(std::uint64_t n) {
        packets -= packets != 0 ? 1 : 0;
        bytes -= std::min(n, bytes);
    }
};

/// A source must not block its thread to wait for a condition. The source records the condition,
/// and has_work() reports when the condition is true.
class PacketSource {
public:
    virtual ~PacketSource() = default;
    /// Does a bounded amount of work: about one StepBudget (the encoder rings count only packets),
    /// or Doorbells::kMaxRings doorbells (iov/doorbells.h).
    [[nodiscard]] virtual StepResult step() = 0;
    /// True if step() or, for the command processor, a work-group could make progress now. Reads
    /// the memory and registers on which waits depend, and changes nothing that the guest can see.
    [[nodiscard]] virtual bool has_work() = 0;
    /// True if a wait of this source can end without a wake-up, so that the caller must call step()
    /// or has_work() repeatedly.
    [[nodiscard]] virtual bool needs_polling() const = 0;
};

}  // namespace vgpu::softgpu
