// SPDX-License-Identifier: MIT
//
// Generic resources (GRES) of Slurm: a profile of vgpu is a type of the GRES "vgpu", so that users
// request VFs with --gres=vgpu:PROFILE:N. These pure functions parse and write GRES lists in the
// format of Slurm's programs and files.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::slurm {

inline constexpr std::string_view kGres = "vgpu";
/// An error message quotes at most this many bytes of Slurm's output.
inline constexpr std::size_t kMaxShown = 200;

/// Numbers of VFs by profile.
using Counts = std::map<std::string, std::uint32_t>;

/// Parses a GRES list, such as "gpu:1,vgpu:small:8" or "vgpu:small(CNT:2)". Slurm prints an empty
/// list as "(null)". Skips GRES other than vgpu. BadConfiguration if an element of vgpu lacks a
/// type or a number up to 65535, or if parentheses do not match.
[[nodiscard]] Result<Counts> read_gres(std::string_view list);

/// True if `list` requests VFs. `list`: the value TresPerNode of a job, such as
/// "gres:gpu:1,gres:vgpu:small:8"; newer versions of Slurm print "gres/" instead of "gres:".
[[nodiscard]] bool has_vfs(std::string_view list);

/// Returns `list` with the numbers of vgpu replaced by those of `counts`. Other GRES stay. Types of
/// vgpu that are in `list` but not in `counts` get the number 0.
[[nodiscard]] std::string with_counts(std::string_view list, const Counts& counts);

/// One element per VF: {"small", "small"} for 2 VFs of the profile small.
[[nodiscard]] std::vector<std::string> profiles_of(const Counts& counts);

/// The lines that slurm.conf and gres.conf require for the host `node`, for an administrator to
/// copy.
[[nodiscard]] std::string configuration_of(const std::string& node, const Counts& counts);

}  // namespace vgpu::slurm
