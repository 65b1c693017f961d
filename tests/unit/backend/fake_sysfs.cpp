// SPDX-License-Identifier: MIT
#include "tests/unit/backend/fake_sysfs.h"

#include <fmt/format.h>
#include <cerrno>
#include <set>

namespace vgpu::daemon::testing {

namespace {

constexpr unsigned kReadable = 0400, kWritable = 0200;

bool is_below(const std::string& path, const std::string& directory) {
    return path.starts_with(directory + "/");
}

/// "0000:03:00.1/reset" of "/sys/bus/pci/devices/0000:03:00.1/reset"; all below the PF otherwise.
std::string short_name(const std::string& path) {
    constexpr std::string_view kDevices = "/sys/bus/pci/devices/", kPci = "/sys/bus/pci/";
    if (path.starts_with(kDevices)) return path.substr(kDevices.size());
    return path.starts_with(kPci) ? path.substr(kPci.size()) : path;
}

}  // namespace

bool FakeSysfs::is_directory(const std::string& path) const {
    const auto any_below = [&](const auto& map) {
        const auto next = map.lower_bound(path + "/");
        return next != map.end() && is_below(next->first, path);
    };
    return any_below(files_) || any_below(links_);
}

int FakeSysfs::refusal(const std::string& path, unsigned wanted) const {
    if (const auto failure = failures_.find(path); failure != failures_.end())
        return failure->second;
    const auto file = files_.find(path);
    if (file == files_.end()) return is_directory(path) ? EISDIR : ENOENT;
    return (file->second.mode & wanted) == 0 ? EACCES : 0;
}

sriov::SysfsResult<std::string> FakeSysfs::read(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (const int code = refusal(path, kReadable)) return sriov::cannot_read(path, code);
    if (const auto shown = shown_.find(path); shown != shown_.end()) return shown->second;
    // a function that fails to show its value throws the errno
    try {
        return files_.at(path).show();
    } catch (int code) {
        return sriov::cannot_read(path, code);
    }
}

sriov::SysfsResult<> FakeSysfs::write(const std::string& path, std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (const int code = refusal(path, kWritable)) return sriov::cannot_write(path, text, code);
    if (before_write) before_write(short_name(path));
    std::string value(text);
    if (value.ends_with('\n')) value.pop_back();
    const auto store = files_.at(path).store;
    if (const int code = store(value)) return sriov::cannot_write(path, text, code);
    writes_.push_back(fmt::format("{}={}", short_name(path), value));
    if (writes_to_live_ != 0 && --writes_to_live_ == 0) throw Killed();
    return {};
}

sriov::SysfsResult<std::vector<std::string>> FakeSysfs::list(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (!is_directory(path)) return sriov::cannot_read(path, ENOENT);
    std::set<std::string> names;
    const auto add_names = [&](const auto& map) {
        for (auto at = map.lower_bound(path + "/"); at != map.end() && is_below(at->first, path);
             ++at) {
            const std::string rest = at->first.substr(path.size() + 1);
            names.insert(rest.substr(0, rest.find('/')));
        }
    };
    add_names(files_);
    add_names(links_);
    return std::vector<std::string>(names.begin(), names.end());
}

sriov::SysfsResult<std::string> FakeSysfs::link(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (const auto failure = failures_.find(path); failure != failures_.end())
        return sriov::cannot_read(path, failure->second);
    const auto found = links_.find(path);
    if (found == links_.end()) return sriov::cannot_read(path, ENOENT);
    return found->second.substr(found->second.rfind('/') + 1);
}

std::optional<unsigned> FakeSysfs::mode(const std::string& path) {
    const std::lock_guard lock(mutex_);
    constexpr unsigned kDirectory = 0755;
    if (const auto file = files_.find(path); file != files_.end()) return file->second.mode;
    if (links_.contains(path) || is_directory(path)) return kDirectory;
    return {};
}

void FakeSysfs::add(const std::string& path, FakeFile file) {
    const std::lock_guard lock(mutex_);
    files_[path] = std::move(file);
}

void FakeSysfs::add(const std::string& path, const std::string& text) {
    add(path, {.mode = kReadOnly, .show = [text] { return text; }});
}

void FakeSysfs::add_link(const std::string& path, const std::string& target) {
    const std::lock_guard lock(mutex_);
    links_[path] = target;
}

void FakeSysfs::remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto is_inside = [&](const auto& entry) {
        return entry.first == path || is_below(entry.first, path);
    };
    std::erase_if(files_, is_inside);
    std::erase_if(links_, is_inside);
}

std::string FakeSysfs::text(const std::string& path) {
    return read(path).value_or("");
}

void FakeSysfs::fail(const std::string& path, int code) {
    const std::lock_guard lock(mutex_);
    if (code == 0)
        failures_.erase(path);
    else
        failures_[path] = code;
}

void FakeSysfs::show_instead(const std::string& path, const std::string& text) {
    const std::lock_guard lock(mutex_);
    shown_[path] = text;
}

void FakeSysfs::sleep_until(const std::function<bool()>& is_true) {
    std::unique_lock lock(mutex_, std::adopt_lock);
    changed_.wait(lock, is_true);
    lock.release();
}

void FakeSysfs::change(const std::function<void()>& what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
}

}  // namespace vgpu::daemon::testing
