// SPDX-License-Identifier: MIT
//
// Parsers for the output of Slurm's programs (versions 22.05 to 26.05). Pure functions. If the text
// is not as expected, a parser that returns a Result fails with System and does not guess, because
// after a wrong guess vgpu-slurm could end the claim of a running job.
#pragma once

#include "daemon/engines/slurm/gres.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::slurm {

/// The values of a job that the bridge needs. `node` is the argument of read_job().
struct Job {
    std::uint32_t life = 0;  ///< number of restarts
    User user;
    std::string state;               ///< as Slurm prints it: "RUNNING"
    bool is_here = false;            ///< true if the job is allocated on `node`
    Counts vfs;                      ///< VFs that Slurm allocated to the job on `node`
    bool has_asked_for_vfs = false;  ///< true if the user requested VFs, even if `vfs` is empty
};

/// A life of a job: one start of the job.
struct JobLife {
    std::string id;          ///< number of the job
    std::uint32_t life = 0;  ///< number of restarts

    auto operator<=>(const JobLife&) const = default;
};

/// A host, as Slurm knows it.
struct Node {
    std::string gres;         ///< GRES list; "(null)" if empty
    std::string reason;       ///< why the host is drained or down; empty if none
    bool is_drained = false;  ///< true also while jobs still run on a host that is being drained
};

/// True if `name` is in `hosts`, a host list of Slurm: "n[1-3,05],m".
[[nodiscard]] bool is_in(std::string_view hosts, std::string_view name);

/// The name of job `id` in commands of scontrol. A task of an array job has a name such as "17_2",
/// because scontrol may apply `id` to all tasks of the array. The name of any other job is `id`.
/// `text`: the output of `scontrol -o -d show job ID`.
[[nodiscard]] std::string task_name(std::string_view text, const std::string& id);
/// Reads job `id` from the output of `scontrol -o -d show job ID`, which may have other tasks of an
/// array job, too. `node`: this host. BadConfiguration if the job is at fault: read_gres() (gres.h)
/// refuses its GRES, or its name or one of its paths imitates the fields of scontrol.
[[nodiscard]] Result<Job> read_job(std::string_view output, const std::string& id,
                                   std::string_view node);
/// Reads the output of `squeue -h -O JobID:20,RestartCnt:20,StateCompact:20`.
[[nodiscard]] Result<std::set<JobLife>> read_queue(std::string_view text);
/// Reads the output of `scontrol -o show node`.
[[nodiscard]] Result<Node> read_node(std::string_view text);
/// True if the job runs, from the output of `squeue -h -o %t -j ID`: a state for each component of
/// the job.
[[nodiscard]] bool has_running_state(std::string_view states);
/// Ids of the jobs with a step on this host, from the output of `scontrol show slurmd`.
[[nodiscard]] Result<std::set<std::string>> read_steps(std::string_view text);

/// The ClusterName of a slurm.conf or of the output of `scontrol show config`, in lower case, as
/// Slurm uses it; none if the text does not set it.
[[nodiscard]] std::optional<std::string> cluster_in(std::string_view configuration);

}  // namespace vgpu::slurm
