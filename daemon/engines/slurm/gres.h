// SPDX-License-Identifier: MIT
//
// Generic resources (GRES) of Slurm: a profile is a type of the GRES "vgpu", so that users ask for
// --gres=vgpu:PROFILE:N. Reads and writes the lists of Slurm's programs and files. Pure functions.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::slurm {

inline constexpr std::string_view kGres = "vgpu";
/// Limit of the part of a text of Slurm that a message quotes, in bytes.
inline constexpr std::size_t kMaxShown = 200;

/// Numbers of VFs by profile.
using Counts = std::map<std::string, std::uint32_t>;

/// Reads a list of Slurm: "gpu:1,vgpu:small:8" or "vgpu:small(CNT:2)"; "(null)" is empty. Skips
/// other GRES. BadConfiguration for a vgpu without a type or a number.
[[nodiscard]] Result<Counts> read_gres(std::string_view list);

/// `list` with the numbers of `counts`. Other GRES stay. Types of vgpu that are not in `counts` get
/// the number 0.
[[nodiscard]] std::string with_counts(std::string_view list, const Counts& counts);

/// One element per VF: {"small", "small"}.
[[nodiscard]] std::vector<std::string> profiles_of(const Counts& counts);

/// The lines for slurm.conf and gres.conf of a host.
[[nodiscard]] std::string configuration_of(const std::string& node, const Counts& counts);

}  // namespace vgpu::slurm
