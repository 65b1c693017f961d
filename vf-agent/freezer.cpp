// SPDX-License-Identifier: MIT
#include "vf-agent/freezer.h"

#include "vf-agent/facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <fstream>
#include <string_view>

namespace vgpu::agent {

namespace {

bool write_to(const fs::path& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_written = ::write(fd, text.data(), text.size()) == ssize_t(text.size());
    ::close(fd);
    return is_written;
}

/// The cgroup of the process, from the v2 line "0::/user.slice/…" of /proc/PID/cgroup; empty if the
/// process has ended.
std::string cgroup_of(const fs::path& root, int pid) {
    std::ifstream file(root / "proc" / std::to_string(pid) / "cgroup");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("0::/")) return line.substr(3);
    return "";
}

/// The pid of the process's parent; 0 if the process has no parent or has ended.
int parent_of(const fs::path& root, int pid) {
    constexpr std::string_view kParent = "PPid:\t";
    std::ifstream file(root / "proc" / std::to_string(pid) / "status");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(kParent)) return pid_of(line.substr(kParent.size()));
    return 0;
}

}  // namespace

Freezer::Freezer(fs::path root, fs::path record)
    : root_(std::move(root)),
      record_(std::move(record)),
      hierarchy_(root_ / "sys/fs/cgroup"),
      group_(hierarchy_ / "vgpu-agent.frozen") {
    read_record();
}

bool Freezer::is_available() const {
    std::error_code error;
    return fs::exists(hierarchy_ / "cgroup.controllers", error) &&
           ::access(hierarchy_.c_str(), W_OK) == 0;
}

bool Freezer::freeze(const std::vector<int>& pids) {
    std::error_code error;
    fs::create_directory(group_, error);
    if (error) return false;
    // freeze before the moves, so that a process stops as it enters the group, and cannot fork
    if (!write_to(group_ / "cgroup.freeze", "1")) return false;
    for (const int pid : pids) {
        const std::string origin = cgroup_of(root_, pid);
        if (!is_origin(origin) || holds(pid)) continue;
        origins_[pid] = origin;
        // write before the move: if the agent is then killed, only the file has the origin
        write_record();
        if (!write_to(group_ / "cgroup.procs", std::to_string(pid))) origins_.erase(pid);
    }
    write_record();
    return true;
}

bool Freezer::is_frozen() const {
    std::ifstream file(group_ / "cgroup.events");
    for (std::string line; std::getline(file, line);)
        if (line == "frozen 1") return true;
    // an empty or missing group has no process that could run
    return members().empty();
}

/// Scans the group several times, because a thawed process runs, and may fork a child in the group
/// until a scan has moved the process out of it.
void Freezer::thaw() {
    write_to(group_ / "cgroup.freeze", "0");
    for (int scan = 0; scan < kMaxScans; ++scan) {
        const std::vector<int> left = members();
        if (left.empty()) break;
        for (const int pid : left) put_back(pid);
    }
    origins_.clear();
    std::error_code error;
    fs::remove(record_, error);
    ::rmdir(group_.c_str());
}

/// Moves a process to its origin. If the origin is unknown or gone, moves the process to the root
/// cgroup, where it belongs to no unit or session.
void Freezer::put_back(int pid) const {
    const std::string text = std::to_string(pid);
    const std::string origin = origin_of(pid);
    // without its first '/', because hierarchy_ / "/x" would be "/x"
    if (origin.empty() || !write_to(hierarchy_ / origin.substr(1) / "cgroup.procs", text))
        write_to(hierarchy_ / "cgroup.procs", text);
}

/// The origin of the process, or of its nearest ancestor that has a recorded origin or is outside
/// the group. The search stops before init, because init adopts processes of other cgroups.
std::string Freezer::origin_of(int pid) const {
    for (int i = 0; i < kMaxGenerations && pid > 1; ++i) {
        if (const auto known = origins_.find(pid); known != origins_.end()) return known->second;
        if (const std::string at = cgroup_of(root_, pid); is_origin(at)) return at;
        pid = parent_of(root_, pid);
    }
    return "";
}

bool Freezer::is_origin(const std::string& cgroup) const {
    return cgroup.starts_with('/') && cgroup != "/" + group_.filename().string();
}

std::vector<int> Freezer::members() const {
    std::ifstream file(group_ / "cgroup.procs");
    std::vector<int> pids;
    // 0 stands for a process of another PID namespace; writing 0 would move the agent itself
    for (int pid = 0; file >> pid;)
        if (pid > 0) pids.push_back(pid);
    return pids;
}

void Freezer::read_record() {
    std::ifstream file(record_);
    std::string origin;
    for (int pid = 0; file >> pid && std::getline(file >> std::ws, origin);)
        if (pid > 0 && is_origin(origin)) origins_[pid] = origin;
}

void Freezer::write_record() const {
    std::error_code error;
    fs::create_directories(record_.parent_path(), error);
    std::ofstream file(record_, std::ios::trunc);
    for (const auto& [pid, origin] : origins_) file << fmt::format("{} {}\n", pid, origin);
}

}  // namespace vgpu::agent
