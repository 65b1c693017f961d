// SPDX-License-Identifier: MIT
//
// Checks of `vgpuctl doctor` for SR-IOV GPUs with a vendor's PF driver (docs/backends.md). Part of
// diagnose().
#pragma once

#include "cli/diagnosis.h"

namespace vgpu::cli {

/// Adds the findings whose ids begin with pf-, xe-, i915-, gim-, nvidia- and iommu-.
void check_vendor_pfs(const HostFacts& facts, std::vector<Finding>& found);

}  // namespace vgpu::cli
