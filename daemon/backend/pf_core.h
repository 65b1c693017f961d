// SPDX-License-Identifier: MIT
//
// Converts the uapi's structs of our PF core to facts and abilities. adapters/uapi_client, the
// Backend of our PF core, calls these functions.
#pragma once

#include "daemon/backend/facts.h"

namespace vgpu::daemon {

/// Also fills in GpuFacts::abilities. The ranges of VRAM, CU mask, doorbell pages and number of VFs
/// come from `info`.
[[nodiscard]] GpuFacts facts_of(const vgpu_pf_info& info);
[[nodiscard]] VfFacts facts_of(const vgpu_pf_vf& vf);

}  // namespace vgpu::daemon
