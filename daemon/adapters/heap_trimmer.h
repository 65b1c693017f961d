// SPDX-License-Identifier: MIT
//
// HeapTrimmer: returns unused heap to the system after a while without work. Long answers and the
// adoption of many VFs leave megabytes of free memory, which the C library keeps. Used in the main
// loop only.
#pragma once

#include "daemon/ports/timed_part.h"

#include <malloc.h>
#include <optional>

namespace vgpu::daemon::adapters {

class HeapTrimmer final : public TimedPart {
public:
    /// Time without work after which step() checks the heap.
    static constexpr Nanoseconds kQuiet = std::chrono::seconds(1);
    /// If fewer bytes of the heap are free, step() returns none to the system, because vgpud soon
    /// needs the memory again, and new memory costs page faults.
    static constexpr std::size_t kWorthwhileBytes = std::size_t{2} << 20;

    explicit HeapTrimmer(const Clock& clock) : clock_(clock) {}

    /// Call after work, such as a request. The check is then due after kQuiet.
    void record_work() { due_ = clock_.now() + kQuiet; }
    /// None before record_work(), and after step() has checked the heap.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const override { return due_; }
    void step() override {
        if (!due_ || clock_.now() < *due_) return;
        due_.reset();
        if (::mallinfo2().fordblks >= kWorthwhileBytes) static_cast<void>(::malloc_trim(0));
    }

private:
    const Clock& clock_;
    std::optional<Nanoseconds> due_;
};

}  // namespace vgpu::daemon::adapters
