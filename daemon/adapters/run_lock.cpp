// SPDX-License-Identifier: MIT
#include "daemon/adapters/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <array>
#include <cerrno>

namespace vgpu::daemon::adapters {

namespace {

constexpr mode_t kMode = 0644;

std::string holder_of(int fd) {
    std::array<char, 32> text{};
    const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
    std::string pid(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!pid.empty() && pid.back() == '\n') pid.pop_back();
    return pid.empty() ? "unknown" : pid;
}

Result<> lock(int fd, const std::string& path, const std::string& holder_activity) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK)
        return fail_errno(ErrorId::System, errno, fmt::format("cannot lock {}", path));
    return fail(ErrorId::AlreadyRunning,
                fmt::format("another vgpud (pid {}) {}", holder_of(fd), holder_activity));
}

bool record_holder(int fd) {
    const std::string pid = fmt::format("{}\n", ::getpid());
    return ::ftruncate(fd, 0) == 0 &&
           ::pwrite(fd, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size());
}

}  // namespace

Result<RunLock> RunLock::take(const std::string& run_dir) {
    const std::string path = run_dir + "/vgpud.lock";
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
    if (!fd.is_open())
        return fail_errno(ErrorId::System, errno, fmt::format("cannot open {}", path));
    TRY_VOID(lock(fd.get(), path, fmt::format("serves {}", run_dir)));
    if (!record_holder(fd.get()))
        return fail_errno(ErrorId::System, errno, fmt::format("cannot write {}", path));
    return RunLock(std::move(fd));
}

Result<RunLock> RunLock::lock_state(const std::string& state_dir) {
    const std::string path = state_dir + "/vgpud.state.lock";
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
    // On a read-only disk vgpud only shows the state, but still takes the lock.
    if (!fd.is_open()) fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.is_open()) fd = UniqueFd(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.is_open())
        return fail_errno(ErrorId::System, errno, fmt::format("cannot open {}", state_dir));
    TRY_VOID(lock(fd.get(), path, fmt::format("keeps its state in {}", state_dir)));
    static_cast<void>(record_holder(fd.get()));  // for the error message of the next vgpud
    return RunLock(std::move(fd));
}

}  // namespace vgpu::daemon::adapters
