// SPDX-License-Identifier: MIT
//
// Our PF core as a backend: its abilities, and the uapi's structs as facts. Used by the Backend
// over the uapi (adapters/uapi_client).
#pragma once

#include "daemon/backend/facts.h"

namespace vgpu::daemon {

/// Ranges are those of the device that `info` describes.
[[nodiscard]] GpuFacts facts_of(const vgpu_pf_info& info);
[[nodiscard]] VfFacts facts_of(const vgpu_pf_vf& vf);

}  // namespace vgpu::daemon
