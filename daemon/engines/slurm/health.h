// SPDX-License-Identifier: MIT
//
// Health: keeps Slurm's view of this host correct. slurmd runs it (`vgpu-slurm health`) as
// HealthCheckProgram.
//
//   vgpud or a GPU unavailable   drain the host, with a reason that begins with kReasonPrefix,
//   unless the
//                                host is drained with a reason without kReasonPrefix
//   all is well                  publish how many VFs of each profile Slurm may use, and resume
//                                the host if it is drained with a reason that begins with
//                                kReasonPrefix
//   a claim without a job        end the claim
//
// slurmctld serves many hosts. So a check asks slurmctld only if the values to publish have
// changed, if the last publication is older than kPublishedFor, or if a claim has neither an open
// VF nor a step of its job on this host.
#pragma once

#include "daemon/engines/slurm/controller.h"

#include <string>

namespace vgpu::slurm {

/// vgpu-slurm begins the reason of each drain with this prefix. It resumes only a host whose reason
/// has this prefix.
inline constexpr std::string_view kReasonPrefix = "vgpu: ";

class Health {
public:
    /// Publishes again after this time even if nothing changed, because Slurm may have lost the
    /// published values.
    static constexpr std::chrono::minutes kPublishedFor{30};

    Health(Controller& slurm, VgpudPort& vgpud, PublishedPort& published, std::string cluster)
        : slurm_(slurm), vgpud_(vgpud), published_(published), cluster_(std::move(cluster)) {}

    /// Does one health check. Returns one line for each change or failure, for slurmd's log.
    std::vector<std::string> check();

private:
    /// The state of this host that Slurm should know.
    struct HostState {
        Counts vfs;             ///< VFs that Slurm may use; empty if vgpud does not answer
        std::string condition;  ///< why the host must not get jobs; empty if it may get jobs
    };

    [[nodiscard]] HostState read_host_state();
    Result<> publish(const HostState& host_state);
    Result<> publish_gres(const Node& node, const Counts& counts);
    /// Drains or resumes the host. False if `condition` is not empty and could not be published,
    /// because the host is drained with a reason without kReasonPrefix.
    Result<bool> publish_state(const Node& node, const std::string& condition);
    Result<> end_left_claims();

    Controller& slurm_;
    VgpudPort& vgpud_;
    PublishedPort& published_;
    std::string cluster_;
    std::vector<Claim> claims_;     ///< the claims that read_host_state() read
    std::vector<std::string> log_;  ///< the lines that check() returns
};

}  // namespace vgpu::slurm
