// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/host_lock.h"

#include "daemon/engines/kubernetes/names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <array>
#include <cerrno>

namespace vgpu::kubernetes {

Result<HostLock> HostLock::take(const std::string& directory, const std::string& node) {
    constexpr mode_t kMode = 0644;
    const std::string path = directory + "/lock";
    daemon::adapters::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
    if (!fd.is_open()) return fail_errno(ErrorId::System, errno, "cannot open " + path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return fail_errno(ErrorId::System, errno, "cannot lock " + path);
        std::array<char, 512> holder{};
        const ssize_t size = ::pread(fd.get(), holder.data(), holder.size() - 1, 0);
        return fail(ErrorId::AlreadyRunning,
                    fmt::format("another vgpu-dra ({}) serves {} on this host; stop it first",
                                size > 0 ? holder.data() : "unknown", kDriver));
    }
    const std::string self = fmt::format("node {}, pid {}", node, ::getpid());
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), self.data(), self.size(), 0) != static_cast<ssize_t>(self.size()))
        return fail_errno(ErrorId::System, errno, "cannot write " + path);
    return HostLock(std::move(fd));
}

}  // namespace vgpu::kubernetes
