// SPDX-License-Identifier: MIT
//
// Parsers for the output of Slurm's programs (22.05 to 26.05). Pure functions. An unknown text is
// an error and never a guess, because a misread text could end a claim.
#pragma once

#include "daemon/engines/slurm/gres.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::slurm {

/// The values of a job that the bridge needs.
struct Job {
    std::uint32_t life = 0;  ///< number of restarts
    User user;
    std::string state;               ///< "RUNNING"
    bool is_here = false;            ///< true if the job has the host `node` of read_job()
    Counts vfs;                      ///< on the host `node` of read_job()
    bool has_asked_for_vfs = false;  ///< true if the user requested VFs, even if `vfs` is empty
};

/// A life of a job, which is one start of the job.
struct JobLife {
    std::string id;
    std::uint32_t life = 0;

    auto operator<=>(const JobLife&) const = default;
};

struct Node {
    std::string gres;
    std::string reason;  ///< empty if none
    bool is_drained = false;
};

/// True if `name` is in a host list of Slurm: "n[1-3,05],m".
[[nodiscard]] bool is_in(std::string_view hosts, std::string_view name);

/// Reads the output of `scontrol -o -d show job`. System if the text is not as expected.
/// BadConfiguration if the job is at fault: a GRES without a type, or a name or path that imitates
/// the fields of scontrol.
[[nodiscard]] Result<Job> read_job(std::string_view text, std::string_view node);
/// Reads the output of `squeue -h -O JobID:20,RestartCnt:20,StateCompact:20`.
[[nodiscard]] Result<std::set<JobLife>> read_queue(std::string_view text);
/// Reads the output of `scontrol -o show node`.
[[nodiscard]] Result<Node> read_node(std::string_view text);
/// Ids of the jobs with a step on this host, from the output of `scontrol show slurmd`.
[[nodiscard]] Result<std::set<std::string>> read_steps(std::string_view text);

/// The ClusterName of a slurm.conf; none if the file does not set it.
[[nodiscard]] std::optional<std::string> cluster_in(std::string_view configuration);

}  // namespace vgpu::slurm
