// SPDX-License-Identifier: MIT
//
// Bounded waiting for another process. Every wait of the tests names what it waits for and how long
// a healthy system may take; VGPU_TEST_TIME_SCALE (a factor, e.g. 10 under a sanitizer) multiplies
// all limits. If a limit passes, the wait throws an error with that name.
#pragma once

#include <chrono>
#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vgpu::test {

using std::chrono::milliseconds;

/// An error that the test client found; its text names the step and the sequence that failed. Most
/// tests do not catch it, and the test framework reports a failure with this text.
class VfError : public std::runtime_error {
public:
    explicit VfError(const std::string& what, int code = 0)
        : std::runtime_error(what), code_(code) {}
    /// The errno value of the device's error reply; 0: there was none.
    [[nodiscard]] int code() const { return code_; }

private:
    int code_;
};

/// VGPU_TEST_TIME_SCALE, at least 1.
[[nodiscard]] double time_scale();

class Deadline {
public:
    explicit Deadline(milliseconds limit);
    [[nodiscard]] bool passed() const { return std::chrono::steady_clock::now() >= end_; }
    /// Time left, rounded up and never negative, as poll(2) takes it.
    [[nodiscard]] int left_ms() const;

private:
    std::chrono::steady_clock::time_point end_;
};

/// Sleeps 50 us, the pause of a polling driver between two reads of a value.
void polling_pause();

/// Polls `done` until it is true; throws VfError("<what>: ...") when `limit` (scaled) has passed.
template <std::predicate<> Done>
void wait_for(std::string_view what, milliseconds limit, Done done) {
    const Deadline deadline(limit);
    while (!done()) {
        if (deadline.passed())
            throw VfError(std::string(what) + ": not within " + std::to_string(limit.count()) +
                          " ms (scaled by " + std::to_string(time_scale()) + ")");
        polling_pause();
    }
}

}  // namespace vgpu::test
