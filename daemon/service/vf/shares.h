// SPDX-License-Identifier: MIT
//
// Shares: the settings of a VF as a driver without run tables gets them, and the quanta that follow
// for all VFs. Admission, plans and GpuModel use the same functions, so that what is admitted is
// what the driver gets. Pure.
#pragma once

#include "daemon/backend/quanta.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/spec.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace vgpu::daemon {

/// Settings that the driver does not offer are left out.
[[nodiscard]] VfShare share_of(const Abilities& abilities, const GpuSettings& settings,
                               std::uint32_t vf, const VfSpec& spec);

/// The quanta of `vfs` on a GPU whose functions are served in turn (Abilities::pf_quantum_ms).
[[nodiscard]] Result<Quanta> quanta_of(const Abilities& abilities, const GpuSettings& settings,
                                       std::span<const VfSpec> vfs);

/// How the driver keeps each setting of the schedule that differs from its default, by key: "kept",
/// "approximated" (not in all cases) or "refused" (recorded before the driver or the configuration
/// changed; not in force).
[[nodiscard]] std::map<std::string, std::string> contract_words(const Abilities& abilities,
                                                                const VfSpec& spec);

}  // namespace vgpu::daemon
