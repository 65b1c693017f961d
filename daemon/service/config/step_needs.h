// SPDX-License-Identifier: MIT
//
// Fills in the condition for a step of a plan, and the users of the VFs that must be idle. Also
// makes the Enable step, which gives a GPU more VFs. Drivers of SR-IOV GPUs change the number of
// VFs only while all VFs are disabled. So the Enable step concerns all VFs of its GPU, and a plan
// has at most one Enable step for each GPU. Pure; called by the planner and by jobs.
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

/// True if a change that concerns all VFs must wait for this VF, even with force.
bool is_blocking(const InventoryVf& vf);

/// Sets `step.needs`. For AllIdle, also sets `step.in_use`, `step.blocked` and, unless the step is
/// an Enable, `step.why`.
void set_needs(Step& step, const GpuInventory& gpu, Need need);

/// The greatest VF number that the plan may use. If VFs need not be enabled, this is the number of
/// VFs of the device. Else it is the number of enabled VFs, or more if `creates` need more (a step
/// with VF 0 takes any number). `kept`: numbers of the VFs that stay. NotOffered or Observed if the
/// driver or vgpud cannot enable more VFs.
Result<std::uint32_t> vf_limit(const GpuInventory& gpu, const std::set<std::uint32_t>& kept,
                               const std::vector<Step>& creates);

/// True if VFs up to `limit` require an Enable step.
bool needs_enable(const GpuInventory& gpu, std::uint32_t limit);
/// The Enable step after which `gpu` has `count` VFs.
Step enable_step(const GpuInventory& gpu, std::uint32_t count);

/// Adds to each Enable step the VRAM sizes of the VFs that later steps create on the GPU, up to the
/// first Resize or Destroy.
void add_sizes(std::vector<Step>& steps);

}  // namespace vgpu::daemon
