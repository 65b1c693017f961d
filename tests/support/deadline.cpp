// SPDX-License-Identifier: MIT
#include "tests/support/deadline.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace vgpu::test {

double time_scale() {
    static const double scale = [] {
        const char* text = std::getenv("VGPU_TEST_TIME_SCALE");
        return text == nullptr ? 1.0 : std::max(1.0, std::strtod(text, nullptr));
    }();
    return scale;
}

Deadline::Deadline(milliseconds limit)
    : end_(std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit * time_scale())) {}

int Deadline::left_ms() const {
    const auto left =
        std::chrono::ceil<milliseconds>(end_ - std::chrono::steady_clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000));
}

void polling_pause() {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace vgpu::test
