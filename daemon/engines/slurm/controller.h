// SPDX-License-Identifier: MIT
//
// Controller: Slurm by its programs, as values. Each call names what it costs: most ask slurmctld,
// steps() asks the slurmd of this host alone. A program that fails, says nothing, or says something
// else is an error.
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
    /// Asks slurmctld.
    Result<Job> job(const std::string& id);
    /// Lives of jobs on this host that are not over. Asks slurmctld.
    Result<std::set<JobLife>> jobs_here();
    /// Asks slurmctld.
    Result<Node> this_node();
    /// Ids of jobs with steps on this host. Asks slurmd; works while slurmctld is out of reach.
    Result<std::set<std::string>> steps();
    Result<> set_gres(const std::string& gres);
    Result<> drain(const std::string& reason);
    Result<> resume();
    /// The job starts again where it finds resources.
    Result<> requeue(const std::string& id);
    /// The job waits for its user; `comment` says why.
    Result<> hold(const std::string& id, const std::string& comment);

private:
    Result<std::string> output_of(const std::vector<std::string>& argv);
    Result<> update_node(const std::vector<std::string>& values);

    ProgramPort& programs_;
    std::string node_;
};

}  // namespace vgpu::slurm
