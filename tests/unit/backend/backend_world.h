// SPDX-License-Identifier: MIT
//
// What tests of backends share: a clock that stands, and a request for a VF.
#pragma once

#include "daemon/backend/backend.h"
#include "daemon/ports/clock.h"

namespace vgpu::daemon::testing {

class ManualClock final : public Clock {
public:
    [[nodiscard]] Nanoseconds now() const override { return now_; }
    void advance(Nanoseconds by) { now_ += by; }

private:
    Nanoseconds now_ = std::chrono::seconds(100);
};

inline vgpu_pf_provision wanted(std::uint32_t vf, std::uint64_t vram_bytes = 0) {
    vgpu_pf_provision out{};
    out.vf = vf;
    out.vram_bytes = vram_bytes;
    out.uuid[0] = static_cast<std::uint8_t>(vf);
    return out;
}

}  // namespace vgpu::daemon::testing
