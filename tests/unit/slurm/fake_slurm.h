// SPDX-License-Identifier: MIT
//
// FakeSlurm: one cluster in memory, at the ProgramPort seam: it prints what Slurm's programs print.
// The texts are those of Slurm 22.05.8. The host under test is n1.
#pragma once

#include "daemon/engines/slurm/ports.h"

#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

namespace vgpu::slurm::testing {

struct FakeJob {
    std::uint32_t restarts = 0;
    std::string state = "RUNNING";
    std::string hosts = "n1";
    std::string gres = "vgpu:small(CNT:1)";  ///< on each host; empty: none
    std::string asked{};                     ///< "gres:vgpu:small:1"
    std::string name = "wrap";
    std::string comment{};
    std::string array{}, task{};  ///< of a task of an array job: ArrayJobId and ArrayTaskId
};

class FakeSlurm final : public ProgramPort {
public:
    ProgramResult run(const std::vector<std::string>& argv) override {
        const std::string words = fmt::format("{}", fmt::join(argv, " "));
        if (words == "scontrol show slurmd") return slurmd();
        ++controller_calls;
        if (!is_controller_up)
            return {.status = 1,
                    .out = "",
                    .err =
                        "slurm_load_node error: Unable to contact slurm controller (connect "
                        "failure)\n"};
        for (const auto& [begin, error] : refusals)
            if (words.starts_with(begin)) return {.status = 1, .out = "", .err = error};
        if (!foreign_words.empty()) return {.status = 0, .out = foreign_words, .err = ""};
        if (words.starts_with("scontrol -o -d show job ")) return show_job(argv.back());
        if (words == "scontrol -o show node n1") return {.status = 0, .out = node(), .err = ""};
        if (words.starts_with("squeue -h -w n1 -O ")) return queue();
        if (words.starts_with("scontrol update nodename=n1 ")) return update_node(argv);
        if (words.starts_with("scontrol update jobid=")) return update_job(argv);
        if (words.starts_with("squeue -h -o %t -j ")) return show_state(argv.back());
        if (words.starts_with("scancel ")) return cancel(argv.back());
        if (words.starts_with("scontrol requeue")) return requeue(argv[1], argv.back());
        return {.status = 1, .out = "", .err = "unknown command: " + words};
    }

    std::map<std::string, FakeJob> jobs;
    std::string steps = "NONE";
    std::string gres = "gpu:tesla:1,vgpu:large:4,vgpu:small:8";
    std::string state = "IDLE";
    std::string reason;
    bool is_controller_up = true;
    bool is_slurmd_up = true;
    std::string foreign_words;  ///< what all programs print that ask the controller
    std::map<std::string, std::string> refusals;  ///< errors, by the first words of a command
    bool is_queue_cut_off = false;
    int controller_calls = 0;
    std::vector<std::string> changed;  ///< the jobs that requeue, hold, update, scancel named

private:
    [[nodiscard]] ProgramResult slurmd() const {
        if (!is_slurmd_up)
            return {.status = 1,
                    .out = "",
                    .err = "scontrol: error: slurm_slurmd_info: Connection refused\n"};
        return {.status = 0,
                .out = fmt::format("Active Steps             = {}\n"
                                   "Actual CPUs              = 2\nVersion = 22.05.8\n",
                                   steps),
                .err = ""};
    }
    /// Prints all tasks of the array whose id is `id`, as slurmctld does.
    [[nodiscard]] ProgramResult show_job(const std::string& id) const {
        if (!jobs.contains(id))
            return {
                .status = 1, .out = "", .err = "slurm_load_jobs error: Invalid job id specified\n"};
        std::string out;
        for (const auto& [other, job] : jobs)
            if (other == id || job.array == id) out += line_of(other, job);
        return {.status = 0, .out = out, .err = ""};
    }
    [[nodiscard]] static std::string line_of(const std::string& id, const FakeJob& job) {
        const std::string details =
            job.gres.empty() ? ""
                             : fmt::format("JOB_GRES={0}   Nodes={1} CPU_IDs=0 Mem=0 GRES={0} ",
                                           job.gres, job.hosts);
        const std::string array =
            job.array.empty() ? ""
                              : fmt::format("ArrayJobId={} ArrayTaskId={} ", job.array, job.task);
        return fmt::format(
            "JobId={} {}JobName={} UserId=ada(1000) GroupId=users(100) MCS_label=N/A "
            "Priority=4294901759 JobState={} Reason=None Requeue=1 Restarts={} BatchFlag=1 "
            "ReqNodeList=(null) ExcNodeList=(null) NodeList={} BatchHost=n1 NumNodes=1 "
            "TRES=cpu=1,node=1,billing=1 CoreSpec=* {}MinCPUsNode=1 MinMemoryNode=0 "
            "Command=(null) WorkDir=/tmp StdOut=/tmp/slurm-1.out Power= {}\n",
            id, array, job.name, job.state, job.restarts, job.hosts, details,
            job.asked.empty() ? "" : fmt::format("TresPerNode={} ", job.asked));
    }
    [[nodiscard]] std::string node() const {
        const std::string why =
            reason.empty() ? "" : fmt::format("Reason={} [root@2026-11-27T20:51:07]", reason);
        return fmt::format(
            "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 Gres={} "
            "NodeAddr=10.77.0.11 NodeHostName=n1 Version=22.05.8 State={} "
            "CfgTRES=cpu=64,mem=1M,billing=64 AllocTRES= {}\n",
            gres, state, why);
    }
    [[nodiscard]] ProgramResult queue() const {
        std::string out;
        for (const auto& [id, job] : jobs)
            if (job.state != "COMPLETED" && job.hosts == "n1")
                out +=
                    fmt::format("{:<20}{:<20}{:<20}\n", id, job.restarts, job.state.substr(0, 2));
        if (is_queue_cut_off) out = out.substr(0, out.size() / 2);
        return {.status = 0, .out = out, .err = ""};
    }
    static std::string value_of(const std::string& word) { return word.substr(word.find('=') + 1); }
    ProgramResult update_node(const std::vector<std::string>& argv) {
        for (const std::string& word : argv) {
            if (word.starts_with("gres=")) gres = value_of(word);
            if (word == "state=drain") state = "IDLE+DRAIN";
            if (word.starts_with("reason=")) reason = value_of(word);
            if (word == "state=resume") {
                state = "IDLE";
                reason.clear();
            }
        }
        return {};
    }
    ProgramResult update_job(const std::vector<std::string>& argv) {
        job_of(value_of(argv[2])).comment = value_of(argv[3]);
        return {};
    }
    /// The job with this id, or the task "ARRAY_TASK".
    FakeJob& named(const std::string& name) {
        for (auto& [id, job] : jobs)
            if (job.array + "_" + job.task == name) return job;
        return jobs.at(name);
    }
    FakeJob& job_of(const std::string& name) {
        changed.push_back(name);
        return named(name);
    }
    ProgramResult show_state(const std::string& name) {
        const std::string& now = named(name).state;
        return {.status = 0, .out = (now == "RUNNING" ? "R" : now.substr(0, 2)) + "\n", .err = ""};
    }
    ProgramResult cancel(const std::string& name) {
        job_of(name).state = "CANCELLED";
        return {};
    }
    ProgramResult requeue(const std::string& verb, const std::string& id) {
        FakeJob& job = job_of(id);
        ++job.restarts;
        job.state = verb == "requeuehold" ? "REQUEUE_HOLD" : "PENDING";
        job.hosts.clear();
        return {};
    }
};

}  // namespace vgpu::slurm::testing
