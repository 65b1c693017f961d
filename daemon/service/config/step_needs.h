// SPDX-License-Identifier: MIT
//
// What must hold before a step of a plan, who uses the VFs that it concerns, and the step that
// gives a GPU more VFs. Drivers of SR-IOV GPUs change the number of VFs only while all are
// disabled, so that step concerns all VFs of its GPU, and a plan has at most one for each GPU.
// Pure; called by the planner and by jobs.
#pragma once

#include "daemon/service/config/change_plan.h"
#include "daemon/service/vf/settings.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// How the VF is in use: "it belongs to 'vm'"; empty if unused.
std::string use_of(const InventoryVf& vf);

/// Whether a change that concerns all VFs must wait for this VF, also with force.
bool is_blocking(const InventoryVf& vf);

/// Sets what `step` needs. If that is AllIdle, also why, and who uses VFs of the GPU.
void set_needs(Step& step, const GpuInventory& gpu, Need need);

/// The greatest number of a VF of the plan: the VFs that exist suffice, or more are enabled for
/// `creates` (number 0: any). `kept`: the VFs that stay. NotOffered or Observed if the driver or
/// vgpud cannot enable more.
Result<std::uint32_t> vf_limit(const GpuInventory& gpu, const std::set<std::uint32_t>& kept,
                               const std::vector<Step>& creates);

/// Whether VFs up to `limit` require an Enable step.
bool needs_enable(const GpuInventory& gpu, std::uint32_t limit);
Step enable_step(const GpuInventory& gpu, std::uint32_t count);

/// Adds to each Enable step the VRAM of the VFs that `steps` make before any VF must give VRAM
/// back.
void add_sizes(std::vector<Step>& steps);

}  // namespace vgpu::daemon
