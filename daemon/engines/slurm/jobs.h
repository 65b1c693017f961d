// SPDX-License-Identifier: MIT
//
// Jobs: gives VFs to the jobs of this host and ends their claims. Slurm calls these verbs
// (subcommands of vgpu-slurm) on the host:
//
//   prolog   before the first step: gives the VFs
//   ensure   before each step: gives the VFs if the job has none. slurmd may skip the prolog of a
//            job that restarts on a host that slurmctld could not reach for a time
//   task     before each task: prints the sockets of the VFs
//   epilog   after the last step: ends the claims
//
// A life of a job is one start of the job. If the epilog of an earlier life runs late, it does not
// end the claims of a later life.
#pragma once

#include "daemon/engines/slurm/controller.h"

#include <optional>
#include <string>

namespace vgpu::slurm {

/// Identifies a life of a job. The values come from the environment in which slurmd runs
/// vgpu-slurm.
struct JobReference {
    std::string cluster;
    std::string id;          ///< number of the job: "17"
    std::uint32_t life = 0;  ///< number of restarts; an epilog after a requeue gets the next life
};

/// The owner of the VFs of a job: "slurm:lab:17.0" for life 0 of job 17 of the cluster lab.
[[nodiscard]] std::string owner_of(const JobReference& job);
/// The life of a job that `owner` names; none if `owner` names no job of `cluster`.
[[nodiscard]] std::optional<JobLife> life_of(const std::string& owner, const std::string& cluster);

/// The argument of QEMU's -device for the VF at `socket` (a path): JSON for vfio-user-pci.
[[nodiscard]] std::string device_of(const std::string& socket);

/// Exit status of a verb that has succeeded.
inline constexpr int kDone = 0;
/// Exit status of a verb that has failed. If a prolog fails, Slurm drains the host. With
/// nohold_on_prolog_fail (data/slurm.conf) Slurm then starts the job elsewhere.
inline constexpr int kFailed = 1;

/// The result of a verb.
struct Outcome {
    int status = kDone;  ///< exit status
    std::string log;     ///< a line for slurmd's log; empty if none
    std::string out;     ///< output for Slurm; only task() sets it
};

class Jobs {
public:
    /// `run_dir`: the option run_dir of vgpud, where the sockets of VFs are.
    Jobs(Controller& slurm, VgpudPort& vgpud, PublishedPort& published, std::string run_dir)
        : slurm_(slurm), vgpud_(vgpud), published_(published), run_dir_(std::move(run_dir)) {}

    /// Gives the VFs to the job. If too few VFs are free, requeues the job and does not drain the
    /// host. If the job is at fault (BadConfiguration, or OutOfRange: it requests more VFs than
    /// vgpud gives at once), holds the job. If Slurm refuses this, cancels the job. After any other
    /// error, for example if vgpud does not answer, drains the host with a reason and returns
    /// kFailed.
    Outcome prolog(const JobReference& job);
    /// Gives the VFs to the job as prolog() does, but after a failure only returns kFailed: task()
    /// then fails the job.
    Outcome ensure(const JobReference& job);
    /// Returns in Outcome::out a line "export VGPU_SOCKET_N=PATH" for each VF. N counts from 0, in
    /// the alphabetical order of the profiles. A line "unset VGPU_SOCKET_N" with the next N
    /// follows. kFailed if the job has no VF, unless Slurm reports that the job neither has nor
    /// requested VFs. Runs as the job's user.
    Outcome task(const JobReference& job);
    /// Ends the claims of earlier lives of the job, and the claims of `job.life` unless this life
    /// still runs. Never returns kFailed, because Slurm drains a host whose epilog fails. If claims
    /// remain, a later health check ends them.
    Outcome epilog(const JobReference& job);

private:
    Result<std::vector<AssignedVf>> assign(const JobReference& job);
    Outcome refuse(const JobReference& job, const Error& error);
    [[nodiscard]] Result<bool> is_over(const JobReference& job, std::uint32_t life, bool is_open);

    Controller& slurm_;
    VgpudPort& vgpud_;
    PublishedPort& published_;
    std::string run_dir_;
};

}  // namespace vgpu::slurm
