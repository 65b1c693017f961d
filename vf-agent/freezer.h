// SPDX-License-Identifier: MIT
//
// Freezer stops the processes that use the VF in a frozen cgroup (v2), and resumes them: each goes
// back to the cgroup it came from or, if it was born in the group, to the one its parent came from.
// No signal is sent, so a process does not notice. A file notes where each process came from, so
// that a new agent (or the unit's ExecStopPost) can resume the processes that a killed agent had
// stopped. Used by LinuxGuest; one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vgpu::agent {

/// The group is <cgroup root>/vgpu-agent.frozen; no other program may use that name. Moving other
/// users' processes requires root's rights. The destructor thaws nothing; only thaw() does.
class Freezer {
public:
    /// `note`: the file of origins; `root`: for tests.
    /// Reads the note of an earlier agent, so that thaw() resumes that agent's processes as well.
    explicit Freezer(std::filesystem::path root = "/",
                     std::filesystem::path note = "/run/vgpu-agent/frozen");

    /// True if the guest has the cgroup v2 freezer and we may use it.
    [[nodiscard]] bool is_available() const;
    /// Adds `pids` to the group and freezes it; false if the cgroup cannot be made or frozen. A
    /// process that ended meanwhile causes no error.
    /// Returns before they have stopped; ask is_frozen(). May be called again with more pids.
    bool freeze(const std::vector<int>& pids);
    /// True once every process in the group has stopped.
    /// A process in an uninterruptible sleep, for example in the GPU's driver, delays this.
    [[nodiscard]] bool is_frozen() const;
    /// Number of processes that were moved, including those that have ended since.
    [[nodiscard]] std::size_t size() const { return came_from_.size(); }
    [[nodiscard]] bool holds(int pid) const { return came_from_.contains(pid); }
    /// Resumes all processes, including those that an earlier agent left frozen.
    void thaw();

private:
    /// Passes over the members of the group at a thaw. The first moves them, the second finds
    /// children born meanwhile; more are only for processes that fork all the time.
    static constexpr int kMostLooks = 8;
    static constexpr int kMostGenerations = 64;

    /// Pids in the group.
    [[nodiscard]] std::vector<int> members() const;
    /// The cgroup where a member belongs; empty if unknown.
    [[nodiscard]] std::string origin_of(int pid) const;
    void put_back(int pid) const;
    /// False for our own group.
    [[nodiscard]] bool is_origin(const std::string& cgroup) const;
    void read_note();
    void write_note() const;

    std::filesystem::path root_, note_, hierarchy_, group_;
    std::map<int, std::string> came_from_;  ///< pid: its cgroup, "/user.slice/…"
};

}  // namespace vgpu::agent
