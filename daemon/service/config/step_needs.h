// SPDX-License-Identifier: MIT
//
// Conditions of plan steps: which VFs must be idle for a step, and who uses these VFs. Also makes
// the Enable step, which enables more VFs of a GPU. Drivers of SR-IOV GPUs change the number of VFs
// only while all VFs are disabled. So the Enable step concerns all VFs of its GPU, and a plan has
// at most one Enable step for each GPU. Pure; change_plan.cpp and apply_intent.cpp call these
// functions.
#pragma once

#include "daemon/service/config/change_plan.h"
#include "daemon/service/vf/settings.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// How the VF is in use, as text: "it belongs to 'vm'"; empty if unused. An owner whose lease is
/// over does not count.
std::string use_of(const InventoryVf& vf);

/// True if the VF is open or has a running domain. Such a VF prevents changes that require all VFs
/// to be idle, even with force.
bool is_blocking(const InventoryVf& vf);

/// Sets `step.needs` to the condition in `need`. For AllIdle, also sets `step.in_use`,
/// `step.blocked` and, unless the step is an Enable, `step.why`.
void set_needs(Step& step, const GpuInventory& gpu, Need need);

/// The greatest VF number that the plan may use. If Change::Vfs needs nothing (as with a PF core of
/// this project), this is the number of VFs that the device can have. Else it is the number of
/// enabled VFs or, if `creates` require more VFs, the required number, but at least Ability::min.
/// If VFs can be enabled, numbers in use count as taken. `creates`: the Create steps; a step with
/// VF 0 takes any number. `kept`: numbers of the VFs that stay. Fails with NotOffered or Observed
/// if more VFs are required and cannot be enabled.
Result<std::uint32_t> vf_limit(const GpuInventory& gpu, const std::set<std::uint32_t>& kept,
                               const std::vector<Step>& creates);

/// True if the driver requires an Enable step before VFs up to the number `limit` can be used.
bool needs_enable(const GpuInventory& gpu, std::uint32_t limit);
/// The Enable step after which `gpu` has `count` enabled VFs.
Step enable_step(const GpuInventory& gpu, std::uint32_t count);

/// Sets VfCount::vram_bytes of each Enable step: the VRAM sizes of the VFs that later steps create
/// on its GPU before the first Resize or Destroy. VFs that are created later may need VRAM that is
/// not free yet at the Enable.
void add_sizes(std::vector<Step>& steps);

}  // namespace vgpu::daemon
