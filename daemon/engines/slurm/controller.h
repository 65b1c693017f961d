// SPDX-License-Identifier: MIT
//
// Controller: runs Slurm's programs and returns their output as values. Most calls ask slurmctld,
// which serves a whole cluster; steps() asks only the slurmd of this host. A call fails if its
// program fails or prints a text that cannot be parsed.
#pragma once

#include "daemon/engines/slurm/texts.h"

#include <set>
#include <string>

namespace vgpu::slurm {

class Controller {
public:
    Controller(ProgramPort& programs, std::string node)
        : programs_(programs), node_(std::move(node)) {}

    [[nodiscard]] const std::string& node() const { return node_; }
    /// The job with the number `id`. Asks slurmctld.
    Result<Job> job(const std::string& id);
    /// The lives of the jobs on this host that are not over, as squeue lists them. Asks slurmctld.
    Result<std::set<JobLife>> jobs_here();
    /// This host as a node of Slurm. Asks slurmctld.
    Result<Node> this_node();
    /// Ids of jobs with steps on this host. Asks slurmd, so steps() works while slurmctld is out of
    /// reach.
    Result<std::set<std::string>> steps();
    Result<> set_gres(const std::string& gres);
    Result<> drain(const std::string& reason);
    Result<> resume();
    /// Starts the job again on any host with free resources.
    Result<> requeue(const std::string& id);
    /// Requeues the job and holds it until somebody releases it. `comment` gives the reason.
    Result<> hold(const std::string& id, const std::string& comment);

private:
    Result<std::string> output_of(const std::vector<std::string>& argv);
    Result<> update_node(const std::vector<std::string>& values);

    ProgramPort& programs_;
    std::string node_;
};

}  // namespace vgpu::slurm
