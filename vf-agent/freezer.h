// SPDX-License-Identifier: MIT
//
// Freezer stops the VF's processes in a frozen cgroup (v2) and resumes them in their former cgroups
// (those born in the group: their parent's). Processes get no signal. A file notes the origins, so
// that a new agent, or the unit's ExecStopPost, can resume processes after a kill. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vgpu::agent {

/// The group is <cgroup root>/vgpu-agent.frozen. Requires root. The destructor thaws nothing.
class Freezer {
public:
    /// `note`: file of origins, also read from an earlier agent; `root`: for tests.
    explicit Freezer(std::filesystem::path root = "/",
                     std::filesystem::path note = "/run/vgpu-agent/frozen");

    /// The guest has the cgroup v2 freezer and allows its use.
    [[nodiscard]] bool is_available() const;
    /// Adds `pids` and freezes the group; false if that is impossible. Ended processes are no
    /// error. Repeatable; is_frozen() reports when all have stopped.
    bool freeze(const std::vector<int>& pids);
    /// All have stopped; a process in uninterruptible sleep (the GPU's driver) delays this.
    [[nodiscard]] bool is_frozen() const;
    /// Moved processes, ended ones included.
    [[nodiscard]] std::size_t size() const { return came_from_.size(); }
    [[nodiscard]] bool holds(int pid) const { return came_from_.contains(pid); }
    /// Also of an earlier agent.
    void thaw();

private:
    /// Passes over the group at a thaw: one for members, one for their new children, more for
    /// processes that keep forking.
    static constexpr int kMostLooks = 8;
    static constexpr int kMostGenerations = 64;

    [[nodiscard]] std::vector<int> members() const;
    /// Empty if unknown.
    [[nodiscard]] std::string origin_of(int pid) const;
    void put_back(int pid) const;
    /// False for our group.
    [[nodiscard]] bool is_origin(const std::string& cgroup) const;
    void read_note();
    void write_note() const;

    std::filesystem::path root_, note_, hierarchy_, group_;
    std::map<int, std::string> came_from_;  ///< pid: its cgroup, "/user.slice/…"
};

}  // namespace vgpu::agent
