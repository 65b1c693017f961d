// SPDX-License-Identifier: MIT
//
// VfResources: VRAM, compute units and doorbells of a VF, and the limits of its guest. Only
// provisioning can change them. Part of VfSpec. resources_json() has the form of the state files.
#pragma once

#include "daemon/backend/facts.h"

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace vgpu::daemon {

/// The events that the PF core's guard counts, in the order of vgpu_pf_provision::guard_limits.
inline constexpr std::array<std::string_view, 4> kGuardKinds{"flr", "exclusive",
                                                             "exclusive_timeout", "interrupt"};
inline constexpr std::uint32_t kGuardOff = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kMaxGuardLimit = 64;
inline constexpr std::uint32_t kMaxPreemptTimeoutUs = 100'000'000;
inline constexpr std::uint32_t kMaxFullAccessTimeoutMs = 500'000;

/// Limits for a guest. 0: the PF core's default.
struct VfSecurity {
    std::uint32_t preempt_timeout_us = 0;
    std::uint32_t full_access_timeout_ms = 0;
    /// Numbers of events in the guard's window; kGuardOff: no limit.
    std::array<std::uint32_t, kGuardKinds.size()> guard_limits{};
    bool is_exclusive_full_access = false;

    bool operator==(const VfSecurity&) const = default;
};

/// Normalise before comparing (capacity.h), because a mask of all units means the same as 0.
struct VfResources {
    std::uint64_t vram_bytes = 0;
    std::uint64_t cu_mask = 0;         ///< 0: all
    std::uint32_t doorbell_pages = 0;  ///< 0: all
    VfSecurity security{};

    bool operator==(const VfResources&) const = default;
};

/// The resources that the driver reports, without security. `fallback` has the values of the
/// resources that the driver does not report.
VfResources resources_of(const VfFacts& active, const VfResources& fallback = {});

/// The request to the driver. The caller adds VF number and UUID.
vgpu_pf_provision provision_of(const VfResources& resources);

nlohmann::json resources_json(const VfResources& resources);
/// Reads the form of the state files. Throws nlohmann::json::exception if a member is missing or
/// has a wrong type.
VfResources resources_of(const nlohmann::json& json);

}  // namespace vgpu::daemon
