// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/controller.h"

#include <fmt/format.h>

namespace vgpu::slurm {

namespace {

/// ProgramResult::status of a program that exceeded its limit of time or of output.
constexpr int kTimedOut = 124;

}  // namespace

Result<std::string> Controller::output_of(const std::vector<std::string>& argv) {
    ProgramResult ran = programs_.run(argv);
    if (ran.status == 0) return std::move(ran.out);
    const std::string words = fmt::format("{}", fmt::join(argv, " "));
    if (ran.status == kTimedOut)
        return fail(ErrorId::TimedOut, fmt::format("'{}' did not end in time", words));
    return fail(ErrorId::System, fmt::format("'{}' failed with status {}: {}", words, ran.status,
                                             ran.err.substr(0, ran.err.find('\n'))));
}

Result<Job> Controller::job(const std::string& id) {
    TRY(const std::string text, output_of({"scontrol", "-o", "-d", "show", "job", id}));
    return read_job(text, id, node_);
}

/// requeue(), hold() and cancel() need this name, because scontrol applies the number of an array
/// job to all tasks of the array.
Result<std::string> Controller::task_name(const std::string& id) {
    TRY(const std::string text, output_of({"scontrol", "-o", "-d", "show", "job", id}));
    return slurm::task_name(text, id);
}

Result<std::set<JobLife>> Controller::jobs_here() {
    TRY(const std::string text,
        output_of({"squeue", "-h", "-w", node_, "-O", "JobID:20,RestartCnt:20,StateCompact:20"}));
    return read_queue(text);
}

Result<Node> Controller::this_node() {
    TRY(const std::string text, output_of({"scontrol", "-o", "show", "node", node_}));
    return read_node(text);
}

Result<std::set<std::string>> Controller::steps() {
    TRY(const std::string text, output_of({"scontrol", "show", "slurmd"}));
    return read_steps(text);
}

Result<> Controller::update_node(const std::vector<std::string>& values) {
    std::vector<std::string> argv{"scontrol", "update", "nodename=" + node_};
    argv.insert(argv.end(), values.begin(), values.end());
    TRY_VOID(output_of(argv));
    return {};
}

Result<> Controller::set_gres(const std::string& gres) {
    return update_node({"gres=" + gres});
}

Result<> Controller::drain(const std::string& reason) {
    return update_node({"state=drain", "reason=" + reason});
}

Result<> Controller::resume() {
    return update_node({"state=resume"});
}

Result<> Controller::requeue(const std::string& id) {
    TRY(const std::string name, task_name(id));
    TRY_VOID(output_of({"scontrol", "requeue", name}));
    return {};
}

Result<> Controller::hold(const std::string& id, const std::string& comment) {
    TRY(const std::string name, task_name(id));
    TRY_VOID(output_of({"scontrol", "requeuehold", name}));
    return set_comment(name, comment);
}

/// Asks squeue for the state, because a job's name may imitate the fields of scontrol.
Result<> Controller::cancel(const std::string& id, const std::string& comment) {
    TRY(const std::string name, task_name(id));
    TRY(const std::string states, output_of({"squeue", "-h", "-o", "%t", "-j", name}));
    if (!has_running_state(states)) return {};
    static_cast<void>(set_comment(name, comment));
    TRY_VOID(output_of({"scancel", name}));
    return {};
}

Result<> Controller::set_comment(const std::string& name, const std::string& comment) {
    TRY_VOID(output_of({"scontrol", "update", "jobid=" + name, "admincomment=" + comment}));
    return {};
}

}  // namespace vgpu::slurm
