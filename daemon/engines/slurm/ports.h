// SPDX-License-Identifier: MIT
//
// Ports of the Slurm bridge: interfaces to Slurm's programs, to vgpud, and to the record of the
// values that were last published to Slurm. Tests implement the ports with fakes. Only the main
// thread of vgpu-slurm uses them.
#pragma once

#include "daemon/ports/result.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::slurm {

using daemon::Error;
using daemon::ErrorId;
using daemon::fail;
using daemon::Result;

/// The result of a program.
struct ProgramResult {
    int status = 0;   ///< exit status; 124: limit of time or of output exceeded; 127: not started;
                      ///< 128 + N: ended by signal N
    std::string out;  ///< standard output
    std::string err;  ///< standard error
};

class ProgramPort {
public:
    virtual ~ProgramPort() = default;
    /// Runs a program of Slurm to its end or its time limit. argv[0]: the program's name, without a
    /// directory.
    virtual ProgramResult run(const std::vector<std::string>& argv) = 0;
};

/// A VF that VgpudPort::assign() gave to a job.
struct AssignedVf {
    std::string target;  ///< "gpu0/vf3"
    std::string socket;  ///< path of the vfio-user socket
};

/// A VF with an owner.
struct Claim {
    std::string owner;     ///< not empty
    std::string profile;   ///< empty if none
    bool is_open = false;  ///< true if a client has the VF open
    /// True if the claim had a lease, and the lease is over. While no client has the VF open, vgpud
    /// counts it as free.
    bool is_lease_over = false;
};

/// The VFs of one profile on one GPU: a row of the D-Bus method Manager.Capacity.
struct Capacity {
    std::string gpu;          ///< id of the GPU: "gpu0"
    std::string gpu_state;    ///< property State of the GPU; "ok" if it is in service
    std::string profile;      ///< empty: the VFs without a profile
    std::uint32_t total = 0;  ///< VFs that are defined
    std::uint32_t free = 0;   ///< VFs that may be claimed now, or after a scrub that is under way
};

/// The user of a job, who may open the sockets of its VFs.
struct User {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

/// Errors of vgpud keep their ids. System: vgpud does not answer, or its answer cannot be read.
class VgpudPort {
public:
    virtual ~VgpudPort() = default;
    /// Claims one VF for each element of `profiles`, all or none. On success, also ends claims of
    /// `owner` on other VFs. A repeated call changes nothing. `user` may then open the sockets of
    /// the VFs.
    virtual Result<std::vector<AssignedVf>> assign(const std::string& owner,
                                                   const std::vector<std::string>& profiles,
                                                   const User& user) = 0;
    /// Ends the claims of `owner`. Returns the number of VFs whose claims ended.
    virtual Result<std::uint32_t> unassign(const std::string& owner) = 0;
    /// All VFs of this host that have an owner.
    virtual Result<std::vector<Claim>> claims() = 0;
    /// One row for each profile on each GPU.
    virtual Result<std::vector<Capacity>> capacity() = 0;
};

/// The record of the values that were last published to Slurm. While these values are unchanged, a
/// health check need not publish them again.
class PublishedPort {
public:
    virtual ~PublishedPort() = default;
    /// The recorded values; none if there is no record, or if it is older than `max_age`.
    [[nodiscard]] virtual std::optional<std::string> load(std::chrono::minutes max_age) const = 0;
    virtual void save(const std::string& published) = 0;
    /// Removes the record, so that the next health check publishes again.
    virtual void forget() = 0;
};

}  // namespace vgpu::slurm
