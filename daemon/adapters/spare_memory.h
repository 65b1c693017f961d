// SPDX-License-Identifier: MIT
//
// SpareMemory: a long answer or the adoption of many VFs leaves its megabytes free in the heaps,
// where the C library keeps them for ever. When vgpud has been quiet for a while they go back to
// the system. Owned by main.cpp; used by the main thread.
#pragma once

#include "daemon/ports/clock.h"

#include <malloc.h>
#include <optional>

namespace vgpu::daemon::adapters {

class SpareMemory {
public:
    static constexpr Nanoseconds kQuiet = std::chrono::seconds(1);
    /// Less is soon used again, and giving it back costs page faults.
    static constexpr std::size_t kWorthwhileBytes = std::size_t{2} << 20;

    explicit SpareMemory(const Clock& clock) : clock_(clock) {}

    /// Something was asked of vgpud.
    void note_work() { due_ = clock_.now() + kQuiet; }
    /// When step() has something to do; nothing: only after work.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const { return due_; }
    /// True if it looked at the heaps.
    bool step() {
        if (!due_ || clock_.now() < *due_) return false;
        due_.reset();
        if (::mallinfo2().fordblks >= kWorthwhileBytes) static_cast<void>(::malloc_trim(0));
        return true;
    }

private:
    const Clock& clock_;
    std::optional<Nanoseconds> due_;
};

}  // namespace vgpu::daemon::adapters
