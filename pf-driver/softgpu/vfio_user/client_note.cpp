// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/client_note.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string_view>

namespace vgpu::softgpu::vfio_user {
namespace {

constexpr std::string_view kSocketEnd = ".sock", kNoteEnd = ".client";

std::string note_of(std::string path) {
    if (path.ends_with(kSocketEnd)) path.resize(path.size() - kSocketEnd.size());
    return path.append(kNoteEnd);
}

std::string name_of(pid_t pid) {
    std::string name;
    std::ifstream file(fmt::format("/proc/{}/comm", pid));
    std::getline(file, name);
    return name;
}

}  // namespace

ClientNote::ClientNote(const std::string& path, int fd) : path_(note_of(path)) {
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
    std::ofstream(path_, std::ios::trunc) << peer.pid << ' ' << name_of(peer.pid) << '\n';
}

ClientNote::~ClientNote() {
    ::unlink(path_.c_str());
}

}  // namespace vgpu::softgpu::vfio_user
