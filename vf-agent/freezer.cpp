// SPDX-License-Identifier: MIT
#include "vf-agent/freezer.h"

#include "vf-agent/facts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <fstream>

namespace vgpu::agent {

namespace {

bool write_to(const fs::path& file, const std::string& text) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool is_written = ::write(fd, text.data(), text.size()) == ssize_t(text.size());
    ::close(fd);
    return is_written;
}

/// "/user.slice/…" of "0::/user.slice/…", the v2 line of /proc/PID/cgroup.
std::string cgroup_of(const fs::path& root, int pid) {
    std::ifstream file(root / "proc" / std::to_string(pid) / "cgroup");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("0::/")) return line.substr(3);
    return "";
}

}  // namespace

Freezer::Freezer(fs::path root, fs::path note)
    : root_(std::move(root)),
      note_(std::move(note)),
      hierarchy_(root_ / "sys/fs/cgroup"),
      group_(hierarchy_ / "vgpu-agent.frozen") {
    read_note();
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
    for (const int pid : pids) {
        const std::string from = cgroup_of(root_, pid);
        if (from.empty() || holds(pid)) continue;
        came_from_[pid] = from;
        // before it is moved: one that is noted and was not moved is skipped by thaw(), the other
        // way round it would stay frozen for ever
        write_note();
        if (!write_to(group_ / "cgroup.procs", std::to_string(pid))) came_from_.erase(pid);
    }
    write_note();
    return write_to(group_ / "cgroup.freeze", "1");
}

bool Freezer::is_frozen() const {
    std::ifstream file(group_ / "cgroup.events");
    for (std::string line; std::getline(file, line);)
        if (line == "frozen 1") return true;
    return came_from_.empty();
}

/// A process whose cgroup is gone meanwhile goes to the root's.
void Freezer::thaw() {
    write_to(group_ / "cgroup.freeze", "0");
    for (const auto& [pid, from] : came_from_) {
        if (cgroup_of(root_, pid) != "/" + group_.filename().string()) continue;
        const std::string text = std::to_string(pid);
        if (!write_to(hierarchy_ / from.substr(1) / "cgroup.procs", text))
            write_to(hierarchy_ / "cgroup.procs", text);
    }
    came_from_.clear();
    std::error_code error;
    fs::remove(note_, error);
    ::rmdir(group_.c_str());
}

void Freezer::read_note() {
    std::ifstream file(note_);
    std::string from;
    for (int pid = 0; file >> pid && std::getline(file >> std::ws, from);)
        if (pid > 0 && from.starts_with('/')) came_from_[pid] = from;
}

void Freezer::write_note() const {
    std::error_code error;
    fs::create_directories(note_.parent_path(), error);
    std::ofstream file(note_, std::ios::trunc);
    for (const auto& [pid, from] : came_from_) file << fmt::format("{} {}\n", pid, from);
}

}  // namespace vgpu::agent
