// SPDX-License-Identifier: MIT
//
// SpareMemory returns unused heap to the system once vgpud has been idle for a while. A long answer
// or the adoption of many VFs leaves megabytes free in the heap, which the C library keeps forever.
// Owned by main.cpp; used by the main thread.
#pragma once

#include "daemon/ports/clock.h"

#include <malloc.h>
#include <optional>

namespace vgpu::daemon::adapters {

class SpareMemory {
public:
    static constexpr Nanoseconds kQuiet = std::chrono::seconds(1);
    /// Less is soon used again, and returning it costs page faults.
    static constexpr std::size_t kWorthwhileBytes = std::size_t{2} << 20;

    explicit SpareMemory(const Clock& clock) : clock_(clock) {}

    /// vgpud has served a request.
    void note_work() { due_ = clock_.now() + kQuiet; }
    /// When step() has work to do; empty: not before note_work().
    [[nodiscard]] std::optional<Nanoseconds> next_step() const { return due_; }
    /// True if it examined the heap.
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
