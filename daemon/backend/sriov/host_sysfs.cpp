// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/host_sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>

namespace vgpu::daemon::sriov {

namespace {

constexpr std::size_t kPage = 4096;

/// An open file; the destructor closes it.
class File {
public:
    File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC)) {}
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] int get() const { return fd_; }

private:
    const int fd_;
};

}  // namespace

SysfsResult<std::string> HostSysfs::read(const std::string& path) {
    const File file(root_ + path, O_RDONLY);
    if (file.get() < 0) return cannot_read(path, errno);
    std::array<char, kPage> text{};
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    if (got < 0) return cannot_read(path, errno);
    std::string out(text.data(), static_cast<std::size_t>(got));
    if (out.ends_with('\n')) out.pop_back();
    return out;
}

SysfsResult<> HostSysfs::write(const std::string& path, std::string_view text) {
    const File file(root_ + path, O_WRONLY);
    if (file.get() < 0) return cannot_write(path, text, errno);
    if (::write(file.get(), text.data(), text.size()) < 0) return cannot_write(path, text, errno);
    return {};
}

SysfsResult<std::vector<std::string>> HostSysfs::list(const std::string& path) {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir((root_ + path).c_str()),
                                                     &::closedir);
    if (!folder) return cannot_read(path, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(folder.get()))
        if (const std::string_view name = entry->d_name; name != "." && name != "..")
            names.emplace_back(name);
    std::sort(names.begin(), names.end());
    return names;
}

SysfsResult<std::string> HostSysfs::link(const std::string& path) {
    std::array<char, PATH_MAX> target{};
    const ssize_t got = ::readlink((root_ + path).c_str(), target.data(), target.size());
    if (got < 0) return cannot_read(path, errno);
    const std::string_view whole(target.data(), static_cast<std::size_t>(got));
    return std::string(whole.substr(whole.rfind('/') + 1));
}

std::optional<unsigned> HostSysfs::mode(const std::string& path) {
    struct stat file {};
    if (::stat((root_ + path).c_str(), &file) != 0) return {};
    constexpr unsigned kPermissions = 0777;
    return file.st_mode & kPermissions;
}

}  // namespace vgpu::daemon::sriov
