// SPDX-License-Identifier: MIT
//
// Shares: converts the settings of VFs to the shares and quanta of drivers without run tables.
// Admission, plans and GpuModel use the same functions, so that the driver gets exactly the values
// that were admitted. Pure.
#pragma once

#include "daemon/backend/quanta.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/spec.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace vgpu::daemon {

/// The share of the VF `vf`. Leaves out min_pct, max_gap_ms and latency_ms if the driver does not
/// offer them.
[[nodiscard]] VfShare share_of(const Abilities& abilities, const GpuSettings& settings,
                               std::uint32_t vf, const VfSpec& spec);

/// The quanta of `vfs`, in their order, on a GPU whose functions are served in turn
/// (Abilities::pf_quantum_ms). NoSchedule or OutOfRange as in backend/quanta.h.
[[nodiscard]] Result<Quanta> quanta_of(const Abilities& abilities, const GpuSettings& settings,
                                       std::span<const VfSpec> vfs);

/// How the driver keeps each setting of the schedule that differs from its default, by key: "kept",
/// "approximated" (not in all cases) or "refused" (recorded before the driver or the configuration
/// changed, so the setting is not in force).
[[nodiscard]] std::map<std::string, std::string> contract_words(const Abilities& abilities,
                                                                const VfSpec& spec);

}  // namespace vgpu::daemon
