// SPDX-License-Identifier: MIT
//
// PacketSource: something of a VF that does work in bounded steps, through an adapter in
// gpu_vf.cpp: each SDMA engine, the encoder rings, and the doorbells that the VF's own engines have
// rung. The engine's workers alternate between the sources of the running VF. Every call is made
// with the VF's lock held.
#pragma once

#include <cstdint>

namespace vgpu::softgpu::cp {

enum class StepResult : std::uint8_t {
    Progress,  ///< did something; more may be left
    Blocked,   ///< waits for memory, a register or a work-group
    Idle,      ///< nothing to do
};

/// Bytes of a doorbell write.
enum class DoorbellWidth : std::uint8_t { Dword = 4, Qword = 8 };

/// A source must not block: what it waits for it remembers, and has_work() says when it is over.
class PacketSource {
public:
    virtual ~PacketSource() = default;
    /// At most 16 packets or 64 KiB of copying.
    [[nodiscard]] virtual StepResult step() = 0;
    /// True if step() or a work-group could make progress now. Looks at the memory that waits
    /// depend on; changes nothing the guest can see.
    [[nodiscard]] virtual bool has_work() = 0;
    /// True if only polling can find out that a wait is over.
    [[nodiscard]] virtual bool waits_for_memory() const = 0;
};

}  // namespace vgpu::softgpu::cp
