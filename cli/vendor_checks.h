// SPDX-License-Identifier: MIT
//
// Checks of `vgpuctl doctor` for SR-IOV GPUs whose PF driver is a vendor's (docs/backends.md). Part
// of diagnose().
#pragma once

#include "cli/diagnosis.h"

namespace vgpu::cli {

/// Adds the findings pf-driver, pf-vfs, pf-found, pf-vfio, xe-level, xe-variant and xe-quanta.
void check_vendor_pfs(const HostFacts& facts, std::vector<Finding>& found);

}  // namespace vgpu::cli
