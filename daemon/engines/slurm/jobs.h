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

/// A job as slurmd names it in the environment of its programs.
struct JobName {
    std::string cluster;
    std::string id;
    std::uint32_t life = 0;  ///< in an epilog it may already be the number of the next life
};

/// "slurm:lab:17.0"
[[nodiscard]] std::string owner_of(const JobName& job);
/// The job that an owner of this cluster names; none for other owners.
[[nodiscard]] std::optional<JobLife> life_of(const std::string& owner, const std::string& cluster);

/// The argument of QEMU's -device for the VF at `socket`.
[[nodiscard]] std::string device_of(const std::string& socket);

/// Exit statuses of verbs, as slurmd understands them. If a prolog fails, Slurm drains the host and
/// starts the job elsewhere.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;

/// The result of a verb: its exit status, a line for slurmd's log (may be empty), and for task the
/// lines for Slurm.
struct Outcome {
    int status = kDone;
    std::string log;
    std::string out;
};

class Jobs {
public:
    Jobs(Controller& slurm, VgpudPort& vgpud, PublishedPort& published, std::string run_dir)
        : slurm_(slurm), vgpud_(vgpud), published_(published), run_dir_(std::move(run_dir)) {}

    /// Gives the VFs. If none is free, the job is requeued, and the host stays in service. A job
    /// that is at fault itself (BadConfiguration) is held. After any other error, such as a vgpud
    /// that does not answer, the host is drained with a reason.
    Outcome prolog(const JobName& job);
    /// As prolog(), but after a failure it does not requeue or hold the job, and does not drain the
    /// host: task() then fails the job.
    Outcome ensure(const JobName& job);
    /// "export VGPU_SOCKET_0=…" for each VF, in the order of their profiles. kFailed if the job
    /// should have VFs and has none. Runs as the job's user.
    Outcome task(const JobName& job);
    /// Ends claims of earlier lives, and of this life unless it runs. Never fails, because Slurm
    /// drains a host whose epilog failed. The next health check ends the claims that are left.
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
