// SPDX-License-Identifier: MIT
//
// Freezer: stops the processes that use the VF, and later resumes them. freeze() moves the
// processes into a frozen cgroup (v2), and thaw() moves each back to its former cgroup, its
// "origin". A process that was forked in the frozen cgroup goes to the origin of its parent.
// Processes get no signal. A file records the origins, so that a new agent, or the unit's
// ExecStopPost, can resume the processes after the agent was killed. Runs in one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vgpu::agent {

/// The frozen cgroup ("the group") is <cgroup root>/vgpu-agent.frozen. Requires root. The
/// destructor does not thaw.
class Freezer {
public:
    /// `record`: file of origins, which an earlier agent may have written. `root`: for tests.
    explicit Freezer(std::filesystem::path root = "/",
                     std::filesystem::path record = "/run/vgpu-agent/frozen");

    /// True if the guest has cgroup v2 and the agent may write to its hierarchy.
    [[nodiscard]] bool is_available() const;
    /// Freezes the group and moves `pids` into it. False if the group cannot be made or frozen. A
    /// process that cannot be moved is not an error, because it has usually ended. May be called
    /// again with more pids. is_frozen() reports when all processes have stopped.
    bool freeze(const std::vector<int>& pids);
    /// True if all processes in the group have stopped. A process in uninterruptible sleep, as in
    /// the GPU's driver, stops only after this sleep.
    [[nodiscard]] bool is_frozen() const;
    /// Number of stopped processes. Includes processes that have ended since, and processes that an
    /// earlier agent stopped.
    [[nodiscard]] std::size_t size() const { return origins_.size(); }
    /// True if the process was frozen, so that its origin is known.
    [[nodiscard]] bool holds(int pid) const { return origins_.contains(pid); }
    /// Resumes all processes, including processes that an earlier agent stopped.
    void thaw();

private:
    /// Limit of scans of the group at a thaw. The first scan moves the members. The second moves
    /// children that members forked during the first. Processes that keep forking need more scans.
    static constexpr int kMaxScans = 8;
    /// Limit of the ancestors among which origin_of() searches.
    static constexpr int kMaxGenerations = 64;

    [[nodiscard]] std::vector<int> members() const;
    /// The origin of the process; empty if unknown.
    [[nodiscard]] std::string origin_of(int pid) const;
    void put_back(int pid) const;
    /// True if `cgroup` is a cgroup other than the frozen group.
    [[nodiscard]] bool is_origin(const std::string& cgroup) const;
    void read_record();
    void write_record() const;

    std::filesystem::path root_, record_, hierarchy_, group_;
    std::map<int, std::string> origins_;  ///< by pid: the origin, such as "/user.slice/…"
};

}  // namespace vgpu::agent
