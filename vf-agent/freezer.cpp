// SPDX-License-Identifier: MIT
#include "vf-agent/freezer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace vgpu::agent {

namespace fs = std::filesystem;

namespace {

constexpr const char* kGroup = "vgpu-agent.frozen";

/// Returns the errno of a failure, else 0.
int write_to(const fs::path& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int error = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
    ::close(fd);
    return error;
}

/// The cgroup of the process, from the v2 line "0::/user.slice/…" of /proc/PID/cgroup; empty if the
/// process has ended.
std::string cgroup_of(const fs::path& root, int pid) {
    std::ifstream file(root / "proc" / std::to_string(pid) / "cgroup");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("0::/")) return line.substr(3);
    return "";
}

std::vector<int> members_of(const fs::path& group) {
    std::ifstream file(group / "cgroup.procs");
    std::vector<int> pids;
    // 0 stands for a process of another PID namespace; writing 0 would move the agent itself
    for (int pid = 0; file >> pid;)
        if (pid > 0) pids.push_back(pid);
    return pids;
}

/// Reads the whole hierarchy. A cgroup that is removed meanwhile only ends the reading of itself.
std::set<fs::path> groups_below(const fs::path& hierarchy) {
    std::set<fs::path> groups;
    std::vector<fs::path> unread{hierarchy};
    while (!unread.empty()) {
        const fs::path cgroup = std::move(unread.back());
        unread.pop_back();
        std::error_code error, ignored;
        for (fs::directory_iterator at(cgroup, error), end; !error && at != end;
             at.increment(error)) {
            if (at->is_symlink(ignored) || !at->is_directory(ignored)) continue;
            if (at->path().filename() == kGroup)
                groups.insert(at->path());
            else
                unread.push_back(at->path());
        }
    }
    return groups;
}

}  // namespace

Freezer::Freezer(fs::path root)
    : root_(std::move(root)),
      hierarchy_(root_ / "sys/fs/cgroup"),
      groups_(groups_below(hierarchy_)) {}

bool Freezer::is_available() const {
    std::error_code error;
    return fs::exists(hierarchy_ / "cgroup.controllers", error) &&
           ::access(hierarchy_.c_str(), W_OK) == 0;
}

tl::expected<std::size_t, std::string> Freezer::freeze(const std::vector<int>& pids) {
    std::size_t outside = 0;
    for (const int pid : pids) {
        const std::string origin = cgroup_of(root_, pid);
        const bool is_inside = fs::path(origin).filename() == kGroup;
        if (!is_inside) ++outside;
        if (origin.empty()) continue;
        // without its first '/', because hierarchy_ / "/x" would be "/x"
        const fs::path cgroup = hierarchy_ / origin.substr(1);
        const fs::path group = is_inside ? cgroup : cgroup / kGroup;
        // freeze before the move, so that a process stops as it enters the group, and cannot fork
        int error = make_frozen(group);
        if (error == 0 && !is_inside) error = write_to(group / "cgroup.procs", std::to_string(pid));
        // a process that is no longer in its cgroup has ended, or others have moved it
        if (error != 0 && error != ESRCH && cgroup_of(root_, pid) == origin)
            return tl::make_unexpected(fmt::format("process {} in cgroup {} cannot be stopped: {}",
                                                   pid, origin, std::strerror(error)));
    }
    return outside;
}

int Freezer::make_frozen(const fs::path& group) {
    if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) return errno;
    groups_.insert(group);
    return write_to(group / "cgroup.freeze", "1");
}

bool Freezer::is_frozen() const {
    return std::ranges::all_of(groups_, [](const fs::path& group) {
        std::ifstream file(group / "cgroup.events");
        for (std::string line; std::getline(file, line);)
            if (line == "frozen 1") return true;
        // an empty or missing group has no process that could run
        return members_of(group).empty();
    });
}

std::size_t Freezer::size() const {
    std::size_t count = 0;
    for (const fs::path& group : groups_) count += members_of(group).size();
    return count;
}

/// Scans a group several times, because a thawed process runs, and may fork a child in the group
/// until a scan has moved the process out of it.
void Freezer::thaw() {
    for (const fs::path& group : groups_) {
        write_to(group / "cgroup.freeze", "0");
        for (int scan = 0; scan < kMaxScans; ++scan) {
            const std::vector<int> left = members_of(group);
            if (left.empty()) break;
            for (const int pid : left)
                write_to(group.parent_path() / "cgroup.procs", std::to_string(pid));
        }
        ::rmdir(group.c_str());
    }
    groups_.clear();
}

}  // namespace vgpu::agent
