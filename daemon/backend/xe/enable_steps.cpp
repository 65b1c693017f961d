// SPDX-License-Identifier: MIT
#include "daemon/backend/xe/enable_steps.h"

#include <fmt/format.h>

namespace vgpu::daemon::xe {

namespace {

/// The timing of functions without a requested timing. Must be written, because kernels before 7.2
/// leave all functions at 0, which is unlimited.
constexpr Timing kDefault{.quantum_ms = 16, .preempt_timeout_us = 16'000};

/// 0 if the VF has no entry.
std::uint64_t bytes_of(const std::map<std::uint32_t, std::uint64_t>& vram, std::uint32_t vf) {
    const auto at = vram.find(vf);
    return at == vram.end() ? 0 : at->second;
}

}  // namespace

Result<> XeEnableSteps::before_enable(std::uint32_t count) {
    if (settings_.vram_bytes.empty()) return {};
    for (std::uint32_t vf = 1; vf <= count; ++vf) {
        const std::uint64_t requested = bytes_of(settings_.vram_bytes, vf);
        TRY_VOID(admin_.set_vram(
            vf, requested > 0 ? requested : bytes_of(settings_.kept_vram_bytes, vf)));
    }
    return admin_.free_vram_above(count);
}

Result<> XeEnableSteps::after_enable(std::uint32_t count) {
    for (const auto& [vf, requested] : settings_.vram_bytes) {
        TRY(const auto now, admin_.vram(vf));
        if (vf <= count && now && *now < requested)
            return fail(ErrorId::PfRefused,
                        fmt::format("vf{} has {} bytes of VRAM after the VFs were enabled; {} were "
                                    "requested",
                                    vf, *now, requested));
    }
    if (admin_.level() == Level::None) return {};
    for (std::uint32_t function = 0; function <= count; ++function) {
        const auto requested = settings_.timings.find(function);
        TRY_VOID(admin_.set_timing(
            function, requested == settings_.timings.end() ? kDefault : requested->second));
    }
    return admin_.end_strict();
}

}  // namespace vgpu::daemon::xe
