// SPDX-License-Identifier: MIT
//
// Freezer: stops the processes that use the VF, and later resumes them. freeze() moves the
// processes of a cgroup (v2), their "origin", into a frozen child of this cgroup, their "group".
// So the limits and the device filter of the origin remain in force, and systemd, which removes a
// scope without processes, keeps the origin. thaw() moves each process back. Processes get no
// signal. The path of a group names the origin, so that a new agent, or the unit's ExecStopPost,
// can resume the processes after the agent was killed. Runs in one thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace vgpu::agent {

/// The group of an origin is <origin>/vgpu-agent.frozen. Requires root. The destructor does not
/// thaw.
class Freezer {
public:
    /// Finds the groups that an earlier agent has left. `root`: for tests.
    explicit Freezer(std::filesystem::path root = "/");

    /// True if the guest has cgroup v2 and the agent may write to its hierarchy.
    [[nodiscard]] bool is_available() const;
    /// Makes and freezes the groups of `pids`, and moves the processes into them. Returns the
    /// number of processes that were outside their groups, including processes that have ended
    /// before the move. The error names a process that cannot be moved. May be called again with
    /// more pids. is_frozen() reports when all processes have stopped.
    tl::expected<std::size_t, std::string> freeze(const std::vector<int>& pids);
    /// True if all processes in the groups have stopped. A process in uninterruptible sleep, as in
    /// the GPU's driver, stops only after this sleep.
    [[nodiscard]] bool is_frozen() const;
    /// Number of processes in the groups. Includes processes that an earlier agent stopped.
    [[nodiscard]] std::size_t size() const;
    /// Resumes all processes, including processes that an earlier agent stopped. A process that
    /// cannot be moved continues in its group.
    void thaw();

private:
    /// Limit of scans of a group at a thaw. The first scan moves the members. The second moves
    /// children that members forked during the first. Processes that keep forking need more scans.
    static constexpr int kMaxScans = 8;

    /// Makes and freezes a group, which may exist already. Returns the errno of a failure, else 0.
    int make_frozen(const std::filesystem::path& group);

    std::filesystem::path root_, hierarchy_;
    std::set<std::filesystem::path> groups_;  ///< that this or an earlier agent has made
};

}  // namespace vgpu::agent
