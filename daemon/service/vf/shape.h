// SPDX-License-Identifier: MIT
//
// VfShape: all of a VF that only provisioning it anew can change: VRAM, compute units, doorbells
// and the limits its guest is held to. Plain values: part of VfRecord, of profiles and of plans;
// GpuModel hands them to the PF core. The JSON here is the state file's.
#pragma once

#include "pf-driver/uapi/vgpu_pf.h"

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace vgpu::daemon {

struct VfRecord;

/// What the PF core's guard counts, in the order of vgpu_pf_provision::guard_limits.
inline constexpr std::array<std::string_view, 4> kGuardKinds{"flr", "exclusive",
                                                             "exclusive_timeout", "interrupt"};
inline constexpr std::uint32_t kGuardOff = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t kMaxGuardLimit = 64;
inline constexpr std::uint32_t kMaxPreemptTimeoutUs = 100'000'000;
inline constexpr std::uint32_t kMaxFullAccessTimeoutMs = 500'000;

/// Limits on what a guest may do; 0 is the PF core's own default.
/// guard_limits are counts within the guard's windows, in the order of kGuardKinds.
struct VfSecurity {
    std::uint32_t preempt_timeout_us = 0;
    std::uint32_t full_access_timeout_ms = 0;
    std::array<std::uint32_t, kGuardKinds.size()> guard_limits{};  ///< kGuardOff: none
    bool is_exclusive_full_access = false;

    bool operator==(const VfSecurity&) const = default;
};

/// Normalised (capacity.h) where it is compared: a mask of all units equals 0.
struct VfShape {
    std::uint64_t vram_bytes = 0;
    std::uint64_t cu_mask = 0;         ///< 0: all
    std::uint32_t doorbell_pages = 0;  ///< 0: all
    VfSecurity security{};

    bool operator==(const VfShape&) const = default;
};

/// A VF on its way to another shape: what it is to have when generation `replaces` is scrubbed.
/// Durable before the old VF is released and until the new one is made: it tells a vgpud that is
/// started in between what to make.
struct VfNext {
    VfShape shape;
    std::uint32_t replaces = 0;
    bool owes_scrub = false;  ///< its owner has left: it is emptied also if it keeps its shape

    bool operator==(const VfNext&) const = default;
};

VfShape shape_of(const VfRecord& record);
void set_shape(VfRecord& record, const VfShape& shape);

/// The request for `shape`; VF number and UUID are the caller's.
vgpu_pf_provision provision_of(const VfShape& shape);

/// Adds the members of a record that only some VFs have to its JSON object, and reads them back;
/// what is not there has its default. Throws as nlohmann::json does.
void add_rare_members(const VfRecord& record, nlohmann::json& json);
void read_rare_members(const nlohmann::json& json, VfRecord& record);

}  // namespace vgpu::daemon
