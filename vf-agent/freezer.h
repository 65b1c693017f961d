// SPDX-License-Identifier: MIT
//
// Freezer: stops the VF's processes in a frozen cgroup (v2), and resumes them in their former
// cgroups. A process that was forked in the group goes to its parent's cgroup. Processes get no
// signal. A file records the former cgroups, so that a new agent, or the unit's ExecStopPost, can
// resume the processes after the agent is killed. Runs in one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vgpu::agent {

/// The group is <cgroup root>/vgpu-agent.frozen. Requires root. The destructor does not thaw.
class Freezer {
public:
    /// `record`: file of origins, which an earlier agent may have written. `root`: for tests.
    explicit Freezer(std::filesystem::path root = "/",
                     std::filesystem::path record = "/run/vgpu-agent/frozen");

    /// True if the guest has the cgroup v2 freezer and allows its use.
    [[nodiscard]] bool is_available() const;
    /// Adds `pids` to the group and freezes it; false if that is impossible. A process that has
    /// ended is not an error. May be repeated. is_frozen() reports when all processes have stopped.
    bool freeze(const std::vector<int>& pids);
    /// True if all processes have stopped. A process in uninterruptible sleep (in the GPU's driver)
    /// delays this.
    [[nodiscard]] bool is_frozen() const;
    /// Number of processes that were moved, including those that have ended.
    [[nodiscard]] std::size_t size() const { return came_from_.size(); }
    [[nodiscard]] bool holds(int pid) const { return came_from_.contains(pid); }
    /// Resumes all processes, including those that an earlier agent stopped.
    void thaw();

private:
    /// Limit of passes over the group at a thaw: one for the members, one for their new children,
    /// more for processes that keep forking.
    static constexpr int kMaxScans = 8;
    static constexpr int kMaxGenerations = 64;

    [[nodiscard]] std::vector<int> members() const;
    /// The cgroup from which the process came; empty if unknown.
    [[nodiscard]] std::string origin_of(int pid) const;
    void put_back(int pid) const;
    /// True if a cgroup is outside our group.
    [[nodiscard]] bool is_origin(const std::string& cgroup) const;
    void read_record();
    void write_record() const;

    std::filesystem::path root_, record_, hierarchy_, group_;
    std::map<int, std::string> came_from_;  ///< pid: its cgroup, "/user.slice/…"
};

}  // namespace vgpu::agent
