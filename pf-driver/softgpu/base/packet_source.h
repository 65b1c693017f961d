// SPDX-License-Identifier: MIT
//
// PacketSource: something of a VF that does work in bounded steps: the command processor, each SDMA
// engine, the encoder rings, and the doorbells that the VF's own engines have rung. The engine's
// workers alternate between the sources of the running VF. Every call is made with the VF's lock
// held.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vgpu::softgpu {

enum class StepResult : std::uint8_t {
    Progress,  ///< did something; more may be left
    Blocked,   ///< what has work waits for memory, a register or a work-group
    Idle,      ///< nothing to do
};

/// What one step() may still do. A unit of a transfer is never cut, so it may do less than one unit
/// more.
struct Budget {
    std::uint64_t bytes = 64u << 10;
    std::uint32_t packets = 16;

    [[nodiscard]] bool is_spent() const { return packets == 0 || bytes == 0; }
    /// A packet of `n` bytes, or with that many to copy.
    void charge(std::uint64_t n) {
        packets -= packets != 0 ? 1 : 0;
        bytes -= std::min(n, bytes);
    }
};

/// A source must not block: what it waits for it remembers, and has_work() says when it is over.
class PacketSource {
public:
    virtual ~PacketSource() = default;
    /// At most a Budget of work.
    [[nodiscard]] virtual StepResult step() = 0;
    /// True if step() or a work-group could make progress now. Looks at the memory and registers
    /// that waits depend on; changes nothing the guest can see.
    [[nodiscard]] virtual bool has_work() = 0;
    /// True if only looking again, at memory or a register, can find out that a wait is over.
    [[nodiscard]] virtual bool needs_polling() const = 0;
};

}  // namespace vgpu::softgpu
