// SPDX-License-Identifier: MIT
//
// Jobs: gives VFs to the jobs of this host and ends their claims. Slurm's slurmd calls the verbs:
//
//   prolog   before the first step: gives the VFs
//   ensure   before each step: gives the VFs if the job has none, because slurmd may skip the
//            prolog of a job that restarts on a host that slurmctld could not reach for a time
//   task     before each task: prints the sockets of the VFs
//   epilog   after the last step: ends the claims
//
// A life of a job is one start of the job. A late epilog of an earlier life does not end claims of
// a later life.
#pragma once

#include "daemon/engines/slurm/controller.h"

#include <optional>
#include <string>

namespace vgpu::slurm {

/// The names of a job in the environment that slurmd gives to its programs.
struct JobName {
    std::string cluster;
    std::string id;
    std::uint32_t life = 0;  ///< an epilog may get the number of the next life
};

/// "slurm:lab:17.0"
[[nodiscard]] std::string owner_of(const JobName& job);
/// The life of a job that `owner` names; none if `owner` names no job of `cluster`.
[[nodiscard]] std::optional<JobLife> life_of(const std::string& owner, const std::string& cluster);

/// The argument of QEMU's -device for the VF at `socket`.
[[nodiscard]] std::string device_of(const std::string& socket);

/// Exit status of a verb that has succeeded.
inline constexpr int kDone = 0;
/// Exit status of a verb that has failed. If a prolog fails, Slurm drains the host. With
/// nohold_on_prolog_fail (data/slurm.conf) Slurm then starts the job elsewhere.
inline constexpr int kFailed = 1;

/// The result of a verb.
struct Outcome {
    int status = kDone;  ///< exit status
    std::string log;     ///< a line for slurmd's log; may be empty
    std::string out;     ///< the output of task() for Slurm; else empty
};

class Jobs {
public:
    Jobs(Controller& slurm, VgpudPort& vgpud, PublishedPort& published, std::string run_dir)
        : slurm_(slurm), vgpud_(vgpud), published_(published), run_dir_(std::move(run_dir)) {}

    /// Gives the VFs to the job. If too few VFs are free, requeues the job, and the host stays in
    /// service. Holds a job that is at fault itself (BadConfiguration). After any other error, such
    /// as a vgpud that does not answer, drains the host with a reason.
    Outcome prolog(const JobName& job);
    /// As prolog(), but after a failure does not requeue or hold the job, and does not drain the
    /// host, because task() then fails the job.
    Outcome ensure(const JobName& job);
    /// Returns in Outcome::out a line "export VGPU_SOCKET_N=…" for each VF, in the order of their
    /// profiles. kFailed if the job has no VF, unless Slurm says that the job needs none. Runs as
    /// the job's user.
    Outcome task(const JobName& job);
    /// Ends claims of earlier lives of the job, and of this life unless this life still runs. Never
    /// fails, because Slurm drains a host whose epilog failed. The next health check ends the
    /// claims that are left.
    Outcome epilog(const JobName& job);

private:
    Result<std::vector<AssignedVf>> assign(const JobName& job);
    Outcome refuse(const JobName& job, const Error& error);
    [[nodiscard]] Result<bool> is_over(const JobName& job, std::uint32_t life, bool is_open);

    Controller& slurm_;
    VgpudPort& vgpud_;
    PublishedPort& published_;
    std::string run_dir_;
};

}  // namespace vgpu::slurm
