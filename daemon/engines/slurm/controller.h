// SPDX-License-Identifier: MIT
//
// Controller: runs Slurm's programs and returns their parsed output. Most calls ask slurmctld,
// which serves a whole cluster; steps() asks only the slurmd of this host. If a program exceeds its
// limit of time or of output, the call fails with TimedOut. If a program fails or its output cannot
// be parsed, the call fails with System.
#pragma once

#include "daemon/engines/slurm/texts.h"

#include <set>
#include <string>

namespace vgpu::slurm {

class Controller {
public:
    /// `node`: name of this host in Slurm.
    Controller(ProgramPort& programs, std::string node)
        : programs_(programs), node_(std::move(node)) {}

    [[nodiscard]] const std::string& node() const { return node_; }
    /// The job with the number `id`. BadConfiguration as read_job() (texts.h).
    Result<Job> job(const std::string& id);
    /// The name of the job `id` in commands of scontrol, as task_name() (texts.h) returns it.
    Result<std::string> task_name(const std::string& id);
    /// The current life of each job that squeue lists on this host.
    Result<std::set<JobLife>> jobs_here();
    /// This host as a node of Slurm.
    Result<Node> this_node();
    /// Ids of jobs with steps on this host. Asks slurmd, so steps() works while slurmctld is out of
    /// reach.
    Result<std::set<std::string>> steps();
    /// Sets the GRES of this host. `gres`: the complete list, such as "gpu:1,vgpu:small:8".
    Result<> set_gres(const std::string& gres);
    /// Drains this host: Slurm starts no more jobs here. `reason` is shown to operators.
    Result<> drain(const std::string& reason);
    /// Ends a drain of this host.
    Result<> resume();
    /// Makes Slurm start the job again, on any host with free resources.
    Result<> requeue(const std::string& id);
    /// Requeues the job and holds it until somebody releases it. `comment`, which gives the reason,
    /// becomes the job's AdminComment.
    Result<> hold(const std::string& id, const std::string& comment);
    /// Cancels the job if it runs. A job that is pending or has ended stays as it is. `comment` as
    /// for hold().
    Result<> cancel(const std::string& id, const std::string& comment);

private:
    Result<std::string> output_of(const std::vector<std::string>& argv);
    Result<> set_comment(const std::string& name, const std::string& comment);
    Result<> update_node(const std::vector<std::string>& values);

    ProgramPort& programs_;
    std::string node_;
};

}  // namespace vgpu::slurm
