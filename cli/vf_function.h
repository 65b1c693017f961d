// SPDX-License-Identifier: MIT
//
// Finds the PCI function of a VF on this host.
#pragma once

#include "cli/service.h"

#include <string>
#include <vector>

namespace vgpu::cli {

/// Directory of the GPUs of vgpu_pf.ko.
inline constexpr const char* kSysfsClass = "/sys/class/vgpu";

/// The GPU of `vf` in `gpus` if vgpu_pf.ko drives it; else null. Reads Id and Platform of the GPUs.
[[nodiscard]] const Properties* kernel_gpu_of(const Properties& vf,
                                              const std::vector<Properties>& gpus);

/// The PCI function of `vf`, as "0000:03:00.1": its property Address, or the function that the link
/// virtfnN of its kernel_gpu_of() names. Empty for a VF of softgpu, and if there is no such link.
/// Reads Target, Index and Address of the VF; Id, Platform and Uapi of the GPUs. `sysfs`:
/// kSysfsClass, or another directory in tests.
[[nodiscard]] std::string function_of(const Properties& vf, const std::vector<Properties>& gpus,
                                      const std::string& sysfs);

}  // namespace vgpu::cli
