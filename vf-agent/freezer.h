// SPDX-License-Identifier: MIT
//
// Freezer: stops processes that use the VF by a cgroup (v2) of their own that is frozen, and lets
// them go again, each back in the cgroup it came from, or, if it was born in the group, where its
// parent came from. A process in it cannot tell; it is not signalled. Where each came from is also
// in a file, so that a new agent (or the unit's ExecStopPost) can undo what one that was killed had
// done. Used by LinuxGuest; one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vgpu::agent {

/// The group is <cgroup root>/vgpu-agent.frozen; nobody else may use that name. Root's rights are
/// needed to move processes of others. The destructor leaves all as it is: only thaw() lets go.
class Freezer {
public:
    /// `note`: the file; `root`: for tests.
    /// Reads what an earlier agent noted, so that thaw() of this one lets those go, too.
    explicit Freezer(std::filesystem::path root = "/",
                     std::filesystem::path note = "/run/vgpu-agent/frozen");

    /// True if the guest has the cgroup v2 freezer and we may use it.
    [[nodiscard]] bool is_available() const;
    /// Takes these in as well and freezes all; false if the cgroup cannot be made. A process that
    /// ended meanwhile is no error.
    /// Returns before they have stopped; ask is_frozen(). May be called again with more.
    bool freeze(const std::vector<int>& pids);
    /// True once all that are in it have stopped.
    /// A process in an uninterruptible sleep, such as one in the GPU's driver, delays that.
    [[nodiscard]] bool is_frozen() const;
    /// Processes that were moved, also those that have ended since.
    [[nodiscard]] std::size_t size() const { return came_from_.size(); }
    [[nodiscard]] bool holds(int pid) const { return came_from_.contains(pid); }
    /// Lets everything go, also what an earlier agent left.
    void thaw();

private:
    /// Looks for who is (still) in the group at a thaw. One is enough, a second finds children
    /// that were born meanwhile; more are only for those who fork all the time.
    static constexpr int kMostLooks = 8;
    static constexpr int kMostGenerations = 64;

    /// Pids in the group.
    [[nodiscard]] std::vector<int> members() const;
    /// The cgroup where a member belongs; empty: nobody knows.
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
