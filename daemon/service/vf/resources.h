// SPDX-License-Identifier: MIT
//
// VfResources: VRAM, compute units and doorbell pages of a VF, and the limits of its guest. To
// change them, vgpud must release the VF and provision it again. Part of VfSpec.
#pragma once

#include "daemon/backend/facts.h"

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace vgpu::daemon {

/// What the PF core's guard counts, in the order of vgpu_pf_provision::guard_limits: resets,
/// requests for full access to load or unload the driver, time-outs of full access, and messages.
inline constexpr std::array<std::string_view, 4> kGuardKinds{"flr", "exclusive",
                                                             "exclusive_timeout", "interrupt"};
/// A guard limit of this value means no limit.
inline constexpr std::uint32_t kGuardOff = std::numeric_limits<std::uint32_t>::max();
/// Largest guard limit except kGuardOff.
inline constexpr std::uint32_t kMaxGuardLimit = 64;
inline constexpr std::uint32_t kMaxPreemptTimeoutUs = 100'000'000;
inline constexpr std::uint32_t kMaxFullAccessTimeoutMs = 500'000;

/// Limits for the guest of a VF, as in vgpu_pf_provision. A limit of 0: the PF core's default.
struct VfSecurity {
    std::uint32_t preempt_timeout_us = 0;      ///< time to leave the engine before a reset
    std::uint32_t full_access_timeout_ms = 0;  ///< longest full access
    /// Largest count in one time window, by kind (kGuardKinds); kGuardOff: no limit.
    std::array<std::uint32_t, kGuardKinds.size()> guard_limits{};
    bool is_exclusive_full_access = false;  ///< true if no other VF runs during full access

    bool operator==(const VfSecurity&) const = default;
};

/// Before comparing, call normalised() (config/capacity.h), because a mask of all units means the
/// same as 0.
struct VfResources {
    std::uint64_t vram_bytes = 0;      ///< 0: chosen by GpuModel (new VF) or the driver
    std::uint64_t cu_mask = 0;         ///< bit n for CU n; 0: all
    std::uint32_t doorbell_pages = 0;  ///< 0: all
    VfSecurity security{};

    bool operator==(const VfResources&) const = default;
};

/// The resources that the driver reports. A resource that the driver does not report is taken from
/// `fallback`. `security` has its defaults.
VfResources resources_of(const VfFacts& active, const VfResources& fallback = {});

/// The request to the driver for `resources`. The caller adds the VF number and the UUID.
vgpu_pf_provision provision_of(const VfResources& resources);

/// The resources in the form of the state files.
nlohmann::json resources_json(const VfResources& resources);
/// Reads the form of the state files. Throws nlohmann::json::exception if a member is missing or
/// has a wrong type.
VfResources resources_of(const nlohmann::json& json);

}  // namespace vgpu::daemon
