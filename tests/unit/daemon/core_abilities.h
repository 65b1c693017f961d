// SPDX-License-Identifier: MIT
//
// The abilities of our PF core on a device with 8 compute units and 512 doorbell pages, for
// inventories that tests write by hand.
#pragma once

#include "daemon/backend/pf_core.h"

namespace vgpu::daemon::testing {

/// VRAM in units of 16 MiB.
inline Abilities core_abilities(std::uint64_t vram_max_bytes) {
    vgpu_pf_info info{};
    info.vram_unit_bytes = 16u << 20;
    info.vram_aperture_bytes = vram_max_bytes;
    info.doorbell_pages = 512;
    info.cu_count = 8;
    return facts_of(info).abilities;
}

}  // namespace vgpu::daemon::testing
