// SPDX-License-Identifier: MIT
//
// Converts the settings of VFs to the shares and quanta of drivers without run tables. Admission,
// plans and GpuModel use the same functions, so that the driver gets exactly the values that were
// admitted. Pure.
#pragma once

#include "daemon/backend/quanta.h"
#include "daemon/service/vf/gpu_inventory.h"
#include "daemon/service/vf/spec.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace vgpu::daemon {

/// The share of the VF `vf`. Leaves out each of min_pct, max_gap_ms and latency_ms that the driver
/// does not offer.
[[nodiscard]] VfShare share_of(const Abilities& abilities, const GpuSettings& settings,
                               std::uint32_t vf, const VfSpec& spec);

/// The quanta of `vfs`, in the same order, on a GPU whose driver serves its functions in turn
/// (Abilities::pf_quantum_ms). In the result, VF n is vfs[n - 1]. NoSchedule or OutOfRange as in
/// backend/quanta.h.
[[nodiscard]] Result<Quanta> quanta_of(const Abilities& abilities, const GpuSettings& settings,
                                       std::span<const VfSpec> vfs);

/// By key, for each scheduling setting that differs from its default: "kept", "approximated" (the
/// driver does not keep the value in all cases) or "refused" (not in force: the driver cannot make
/// the change, but the setting is still on record).
[[nodiscard]] std::map<std::string, std::string> contract_words(const Abilities& abilities,
                                                                const VfSpec& spec);

}  // namespace vgpu::daemon
