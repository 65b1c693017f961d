// SPDX-License-Identifier: MIT
//
// PacketSource: a part of a VF that does work in bounded steps. The sources are the command
// processor, each SDMA engine, the encoder rings, and the doorbells that the VF's own engines have
// rung. The engine's workers alternate between the sources of the running VF. Every call is made
// with the VF's lock held.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpu::softgpu {

enum class StepResult : std::uint8_t {
    Progress,  ///< did something; more may be left
    Blocked,   ///< the source has work, which waits for memory, a register or a work-group
    Idle,      ///< nothing to do
};

/// The work that one step() may still do. A unit of a transfer is never cut, so a step may exceed
/// the budget by less than one unit.
struct Budget {
    std::uint64_t bytes = 64u << 10;
    std::uint32_t packets = 16;

    [[nodiscard]] bool is_spent() const { return packets == 0 || bytes == 0; }
    /// Charges one packet of `n` bytes, or one that copies `n` bytes.
    void charge(std::uint64_t n) {
        packets -= packets != 0 ? 1 : 0;
        bytes -= std::min(n, bytes);
    }
};

/// A source must not block. It remembers the condition that it waits for, and has_work() reports
/// when the wait is over.
class PacketSource {
public:
    virtual ~PacketSource() = default;
    /// Does a bounded amount of work: a Budget of packets and bytes, or Doorbells::kMaxRings
    /// doorbells.
    [[nodiscard]] virtual StepResult step() = 0;
    /// True if step() or a work-group could make progress now. Reads the memory and registers that
    /// waits depend on; changes nothing that the guest can see.
    [[nodiscard]] virtual bool has_work() = 0;
    /// True if the end of a wait can be seen only by reading memory or a register again.
    [[nodiscard]] virtual bool needs_polling() const = 0;
};

}  // namespace vgpu::softgpu
