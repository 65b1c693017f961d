// SPDX-License-Identifier: MIT
//
// Health: keeps Slurm's view of this host true. slurmd calls it as HealthCheckProgram.
//
//   vgpud or a GPU is away       drain the host, with a reason that begins with kMark
//   all is well                  resume the host if it was drained with such a reason; publish how
//                                many VFs of each profile Slurm may use
//   a claim without a job        end it
//
// Without news it asks the controller nothing, because a cluster has many hosts.
#pragma once

#include "daemon/engines/slurm/controller.h"

#include <string>

namespace vgpu::slurm {

/// Begins the reason of each drain of ours. Other drains are not resumed.
inline constexpr std::string_view kMark = "vgpu: ";

class Health {
public:
    /// Slurm is asked again after this time, because it may have forgotten what it was told.
    static constexpr std::chrono::minutes kNoteLife{30};

    Health(Controller& slurm, VgpudPort& vgpud, NotePort& note, std::string cluster)
        : slurm_(slurm), vgpud_(vgpud), note_(note), cluster_(std::move(cluster)) {}

    /// What was done or failed, one line each, for slurmd's log.
    std::vector<std::string> check();

private:
    /// What Slurm should know of this host.
    struct Truth {
        Counts vfs;
        std::string condition;  ///< why the host must not get jobs; empty: it may
    };

    [[nodiscard]] Truth truth();
    Result<> publish(const Truth& truth);
    Result<> publish_gres(const Node& node, const Counts& counts);
    /// Whether Slurm knows the truth afterwards: another reason to drain is not ours to change.
    Result<bool> publish_state(const Node& node, const std::string& condition);
    Result<> end_left_claims();

    Controller& slurm_;
    VgpudPort& vgpud_;
    NotePort& note_;
    std::string cluster_;
    std::vector<Claim> claims_;
    std::vector<std::string> log_;
};

}  // namespace vgpu::slurm
