// SPDX-License-Identifier: MIT
//
// VirtualClock: a device clock that moves only by advance(), which any thread may call.
#pragma once

#include <atomic>

#include "pf-driver/softgpu/base/clock.h"

namespace vgpu::softgpu {

class VirtualClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override { return Nanoseconds{now_.load()}; }
    void advance(Nanoseconds by) { now_ += by.count(); }

private:
    std::atomic<Nanoseconds::rep> now_{0};
};

}  // namespace vgpu::softgpu
