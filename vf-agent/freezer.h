// SPDX-License-Identifier: MIT
//
// Freezer: stops processes that use the VF by a cgroup (v2) of their own that is frozen, and lets
// them go again, each back in the cgroup it came from. A process in it cannot tell; it is not
// signalled. Where each came from is also in a file, so that a new agent (or the unit's
// ExecStopPost) can undo what one that was killed had done. Used by LinuxGuest; one thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace vgpu::agent {

class Freezer {
public:
    /// `note`: the file; `root`: for tests.
    explicit Freezer(std::filesystem::path root = "/",
                     std::filesystem::path note = "/run/vgpu-agent/frozen");

    /// True if the guest has the cgroup v2 freezer and we may use it.
    [[nodiscard]] bool is_available() const;
    /// Takes these in as well and freezes all; false if the cgroup cannot be made. A process that
    /// ended meanwhile is no error.
    bool freeze(const std::vector<int>& pids);
    /// True once all that are in it have stopped.
    [[nodiscard]] bool is_frozen() const;
    [[nodiscard]] std::size_t size() const { return came_from_.size(); }
    [[nodiscard]] bool holds(int pid) const { return came_from_.contains(pid); }
    /// Lets everything go, also what an earlier agent left.
    void thaw();

private:
    void read_note();
    void write_note() const;

    std::filesystem::path root_, note_, hierarchy_, group_;
    std::map<int, std::string> came_from_;  ///< pid: its cgroup, "/user.slice/…"
};

}  // namespace vgpu::agent
