// SPDX-License-Identifier: MIT
//
// Health: keeps Slurm's view of this host correct. slurmd runs it (`vgpu-slurm health`) as
// HealthCheckProgram.
//
//   vgpud or a GPU unavailable   drain the host, with a reason that begins with kMark
//   all is well                  publish how many VFs of each profile Slurm may use, and resume
//                                the host if it was drained with such a reason
//   a claim without a job        end it
//
// If nothing has changed since the last publication and no claim looks left behind, a check does
// not ask slurmctld, which serves many hosts.
#pragma once

#include "daemon/engines/slurm/controller.h"

#include <string>

namespace vgpu::slurm {

/// Begins the reason of each drain by vgpu-slurm. vgpu-slurm does not resume a host that has
/// another reason.
inline constexpr std::string_view kMark = "vgpu: ";

class Health {
public:
    /// Health asks Slurm again after this time, because Slurm may have lost the published values.
    static constexpr std::chrono::minutes kPublishedFor{30};

    Health(Controller& slurm, VgpudPort& vgpud, PublishedPort& published, std::string cluster)
        : slurm_(slurm), vgpud_(vgpud), published_(published), cluster_(std::move(cluster)) {}

    /// Does one health check. Returns one line for each change or failure, for slurmd's log.
    std::vector<std::string> check();

private:
    /// The state of this host that Slurm should know.
    struct HostState {
        Counts vfs;
        std::string condition;  ///< why the host must not get jobs; empty if it may get jobs
    };

    [[nodiscard]] HostState read_host_state();
    Result<> publish(const HostState& host_state);
    Result<> publish_gres(const Node& node, const Counts& counts);
    /// False if `condition` could not be set, because an operator has drained the host.
    Result<bool> publish_state(const Node& node, const std::string& condition);
    Result<> end_left_claims();

    Controller& slurm_;
    VgpudPort& vgpud_;
    PublishedPort& published_;
    std::string cluster_;
    std::vector<Claim> claims_;     ///< the claims that read_host_state() has read
    std::vector<std::string> log_;  ///< the lines that check() returns
};

}  // namespace vgpu::slurm
