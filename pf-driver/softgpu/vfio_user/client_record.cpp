// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/client_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

#include "pf-driver/confine/sealed.h"
#include "pf-driver/softgpu/base/owned_fd.h"

namespace vgpu::softgpu::vfio_user {
namespace {

constexpr std::string_view kSocketEnd = ".sock", kSuffix = ".client";

/// The seccomp filter allows exactly these flags for client records (pf-driver/confine/filter.c).
OwnedFd create_record(const std::string& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    constexpr mode_t kMode = 0644;
    return OwnedFd(::open(vgpu_sealed(path.c_str()), kFlags, kMode));
}

}  // namespace

std::string ClientRecord::path_of(std::string path) {
    if (path.ends_with(kSocketEnd)) path.resize(path.size() - kSocketEnd.size());
    return path.append(kSuffix);
}

ClientRecord::ClientRecord(const std::string& path, int fd) : path_(path_of(path)) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
    const std::string text = fmt::format("{}\n", peer.pid);
    const OwnedFd record = create_record(path_);
    if (record && ::write(record.get(), text.data(), text.size()) < 0)
        ::unlink(vgpu_sealed(path_.c_str()));
}

ClientRecord::~ClientRecord() {
    ::unlink(vgpu_sealed(path_.c_str()));
}

}  // namespace vgpu::softgpu::vfio_user
