// SPDX-License-Identifier: MIT
//
// Ports of the Slurm bridge: interfaces to Slurm's programs, to vgpud, and to the record of the
// published values. Tests implement the ports with fakes. vgpu-slurm has one thread.
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

/// The result of a program. `status` is as in a shell; 124: the program exceeded its time limit.
struct ProgramResult {
    int status = 0;
    std::string out;
    std::string err;
};

class ProgramPort {
public:
    virtual ~ProgramPort() = default;
    /// Runs a program of Slurm (argv[0] without a directory) to its end or its time limit.
    virtual ProgramResult run(const std::vector<std::string>& argv) = 0;
};

/// A VF that a job got.
struct AssignedVf {
    std::string target;  ///< "gpu0/vf3"
    std::string socket;
};

/// A VF with an owner.
struct Claim {
    std::string owner;
    std::string profile;
    bool is_open = false;  ///< true if a client has the VF open
};

/// The VFs of a profile on a GPU, as in Manager.Capacity.
struct Capacity {
    std::string gpu;
    std::string gpu_state;
    std::string profile;
    std::uint32_t total = 0;
    std::uint32_t free = 0;
};

struct User {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
};

/// Errors of vgpud keep their ids. System: vgpud does not answer, or the bus or this host failed.
class VgpudPort {
public:
    virtual ~VgpudPort() = default;
    /// Claims one VF for each element of `profiles`, all or none. A repeated call changes nothing.
    virtual Result<std::vector<AssignedVf>> assign(const std::string& owner,
                                                   const std::vector<std::string>& profiles,
                                                   const User& user) = 0;
    /// Ends the claims of `owner`. Returns the number of VFs whose claims ended.
    virtual Result<std::uint32_t> unassign(const std::string& owner) = 0;
    virtual Result<std::vector<Claim>> claims() = 0;
    virtual Result<std::vector<Capacity>> capacity() = 0;
};

/// Record of the published values, so that a health check without changes does not ask Slurm.
class PublishedPort {
public:
    virtual ~PublishedPort() = default;
    /// None if there is no record, or if it is older than `max_age`.
    [[nodiscard]] virtual std::optional<std::string> load(std::chrono::minutes max_age) const = 0;
    virtual void save(const std::string& published) = 0;
    virtual void forget() = 0;
};

}  // namespace vgpu::slurm
