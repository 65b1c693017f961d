// SPDX-License-Identifier: MIT
//
// vgpu-slurm: parses the options and runs one verb (subcommand). slurmd calls most verbs and copies
// their stderr to its log.
#include "daemon/engines/slurm/health.h"
#include "daemon/engines/slurm/jobs.h"
#include "daemon/engines/slurm/programs.h"
#include "daemon/engines/slurm/published_file.h"
#include "daemon/engines/slurm/vgpud_client.h"
#include "text/number.h"
#include "text/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace vgpu::slurm {
namespace {

/// How long prolog and ensure wait for a vgpud that is being restarted.
constexpr std::chrono::milliseconds kJobWait{5000};
/// The other verbs do not wait. task and epilog also run for jobs without VFs, which must not wait.
constexpr std::chrono::milliseconds kNoWait{0};

struct CommandLine {
    std::string bus = "system";
    std::string slurm_directory;
    std::string run_dir = "/run/vgpu";
    std::string published = "/run/vgpu-slurm/published";
    std::string job;
    std::vector<std::string> command;
};

std::string variable(const char* name, const std::string& otherwise = "") {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : value;
}

/// The name of this host in Slurm: SLURMD_NODENAME, or the host name up to its first dot if slurmd
/// did not start this process.
std::string node_name() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    const std::string host = name.data();
    return variable("SLURMD_NODENAME", host.substr(0, host.find('.')));
}

/// Reads slurm.conf if the environment does not name the cluster, as in a health check. The second
/// path is that of a host that gets its slurm.conf from slurmctld. Asks slurmctld last.
Result<std::string> cluster_name(const CommandLine& line) {
    if (std::string name = variable("SLURM_CLUSTER_NAME"); !name.empty()) return name;
    const std::string path = variable("SLURM_CONF", "/etc/slurm/slurm.conf");
    for (const std::string& one : {path, std::string("/run/slurm/conf/slurm.conf")})
        if (const auto text = text::whole_file(one))
            if (auto name = cluster_in(*text)) return *std::move(name);
    const ProgramResult ran = Programs(line.slurm_directory).run({"scontrol", "show", "config"});
    if (auto name = cluster_in(ran.out)) return *std::move(name);
    return fail(ErrorId::BadConfiguration,
                "neither " + path + " nor 'scontrol show config' has a ClusterName");
}

/// Identifies the job by the options and the environment. The number of restarts is in
/// SLURM_JOB_RESTART_COUNT for programs that slurmd runs as root, and in SLURM_RESTART_COUNT for
/// programs that run as the job's user. Both may be missing if the job was never restarted.
Result<JobReference> job_name(const CommandLine& line) {
    TRY(const std::string cluster, cluster_name(line));
    JobReference job{.cluster = cluster, .id = line.job, .life = 0};
    if (job.id.empty()) job.id = variable("SLURM_JOB_ID");
    if (!text::number_in<std::uint32_t>(job.id))
        return fail(
            ErrorId::OutOfRange,
            fmt::format("'{}' is not the number of a job; set SLURM_JOB_ID or --job", job.id));
    const std::string life =
        variable("SLURM_JOB_RESTART_COUNT", variable("SLURM_RESTART_COUNT", "0"));
    const auto number = text::number_in<std::uint32_t>(life);
    if (!number)
        return fail(ErrorId::OutOfRange, fmt::format("'{}' is not a number of restarts", life));
    job.life = *number;
    return job;
}

int report(const Outcome& outcome) {
    fmt::print("{}", outcome.out);
    if (!outcome.log.empty()) fmt::print(stderr, "vgpu-slurm: {}\n", outcome.log);
    return outcome.status;
}

int report(const Error& error) {
    return report({.status = kFailed, .log = error.cause, .out = ""});
}

int on_job(const CommandLine& line, Outcome (Jobs::*verb)(const JobReference&),
           std::chrono::milliseconds max_wait) {
    const auto job = job_name(line);
    if (!job) return report(job.error());
    Programs programs(line.slurm_directory);
    Controller slurm(programs, node_name());
    VgpudClient vgpud(line.bus, max_wait);
    PublishedFile published(line.published);
    Jobs jobs(slurm, vgpud, published, line.run_dir);
    return report((jobs.*verb)(*job));
}

/// Returns kFailed only if the name of the cluster cannot be read. No other error may fail a health
/// check, because slurmd stops calling a program that has failed.
int health(const CommandLine& line) {
    const auto cluster = cluster_name(line);
    if (!cluster) return report(cluster.error());
    Programs programs(line.slurm_directory);
    Controller slurm(programs, node_name());
    VgpudClient vgpud(line.bus, kNoWait);
    PublishedFile published(line.published);
    for (const std::string& one : Health(slurm, vgpud, published, *cluster).check())
        fmt::print(stderr, "vgpu-slurm: {}\n", one);
    return kDone;
}

int print_configuration(const CommandLine& line) {
    VgpudClient vgpud(line.bus, kNoWait);
    const auto rows = vgpud.capacity();
    if (!rows) return report(rows.error());
    Counts counts;
    for (const Capacity& row : *rows)
        if (!row.profile.empty()) counts[row.profile] += row.total;
    fmt::print("{}", configuration_of(node_name(), counts));
    return kDone;
}

/// Replaces this process with QEMU, and adds a -device for each VF of the job. Returns only after
/// an error.
int run(const CommandLine& line) {
    std::vector<std::string> words = line.command;
    for (int n = 0;; ++n) {
        const std::string socket = variable(fmt::format("VGPU_SOCKET_{}", n).c_str());
        if (socket.empty()) break;
        words.emplace_back("-device");
        words.push_back(device_of(socket));
    }
    if (words.size() == line.command.size())
        return report({.status = kFailed,
                       .log = "this job has no VF: VGPU_SOCKET_0 is not set. Submit it with "
                              "--gres=vgpu:PROFILE:1, and set TaskProlog (docs/slurm.md)",
                       .out = ""});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    return report(daemon::fail_errno(ErrorId::System, errno, "cannot run " + words[0]).value());
}

int main_of(int argc, char** argv) {
    CommandLine line;
    int status = kDone;
    CLI::App app("vgpu-slurm gives VFs of this host to the jobs of Slurm", "vgpu-slurm");
    app.require_subcommand(1);
    app.add_option("--bus", line.bus, "the bus of vgpud: system, session or a D-Bus address")
        ->capture_default_str();
    app.add_option("--slurm-bin", line.slurm_directory,
                   "the directory of scontrol, squeue and scancel (default: PATH)")
        ->type_name("DIR");
    app.add_option("--run-dir", line.run_dir, "run_dir of vgpud")
        ->capture_default_str()
        ->type_name("DIR");
    app.add_option("--published", line.published, "the file that records the published values")
        ->capture_default_str()
        ->type_name("FILE");
    app.add_option("--job", line.job, "the job (default: SLURM_JOB_ID)")->type_name("ID");
    app.set_version_flag("--version", fmt::format("vgpu-slurm {}", VGPU_VERSION));
    const auto add = [&app](const char* name, const char* text, std::function<void()> verb) {
        return app.add_subcommand(name, text)->callback(std::move(verb));
    };
    add("prolog", "Prolog: give a job its VFs",
        [&] { status = on_job(line, &Jobs::prolog, kJobWait); });
    add("ensure", "before a step: give a job its VFs if it has none",
        [&] { status = on_job(line, &Jobs::ensure, kJobWait); });
    add("task", "TaskProlog: give a task the sockets of its VFs",
        [&] { status = on_job(line, &Jobs::task, kNoWait); });
    add("epilog", "Epilog: end the claims of a job",
        [&] { status = on_job(line, &Jobs::epilog, kNoWait); });
    add("health", "HealthCheckProgram: publish capacity, drain or resume the host, end old claims",
        [&] { status = health(line); });
    add("conf", "print the GRES of this host for slurm.conf and gres.conf",
        [&] { status = print_configuration(line); });
    add("run", "run QEMU with the VFs of this job", [&] { status = run(line); })
        ->add_option("command", line.command, "QEMU and its arguments, after --")
        ->required();
    CLI11_PARSE(app, argc, argv);
    return status;
}

}  // namespace
}  // namespace vgpu::slurm

int main(int argc, char** argv) {
    return vgpu::slurm::main_of(argc, argv);
}
