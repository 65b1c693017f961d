// SPDX-License-Identifier: MIT
#include "daemon/adapters/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <array>
#include <cerrno>

namespace vgpu::daemon::adapters {

namespace {

std::string holder_of(int fd) {
    std::array<char, 32> text{};
    const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
    std::string pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!pid.empty() && pid.back() == '\n') pid.pop_back();
    return pid.empty() ? "unknown" : pid;
}

}  // namespace

Result<RunLock> RunLock::take(const std::string& run_dir) {
    constexpr mode_t kMode = 0644;
    const std::string path = run_dir + "/vgpud.lock";
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
    if (!fd.is_open())
        return fail_errno(ErrorId::System, errno, fmt::format("cannot open {}", path));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return fail_errno(ErrorId::System, errno, fmt::format("cannot lock {}", path));
        return fail(ErrorId::AlreadyRunning,
                    fmt::format("another vgpud (pid {}) serves {}", holder_of(fd.get()), run_dir));
    }
    const std::string pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
        return fail_errno(ErrorId::System, errno, fmt::format("cannot write {}", path));
    return RunLock(std::move(fd));
}

}  // namespace vgpu::daemon::adapters
