// SPDX-License-Identifier: MIT
//
// ClientNote: which process has a socket open, for vgpud to show: "PID NAME" in vf1.client next to
// vf1.sock, as the kernel knows the client's end (SO_PEERCRED). There for as long as the client is
// attached; made before the device hears of it. Used by Session.
#pragma once

#include <string>

namespace vgpu::softgpu::vfio_user {

class ClientNote {
public:
    /// Of a client at the socket `path`, connected as `fd`. A note that cannot be written is
    /// missing, and nothing else.
    ClientNote(const std::string& path, int fd);
    ~ClientNote();
    ClientNote(const ClientNote&) = delete;
    ClientNote& operator=(const ClientNote&) = delete;

private:
    std::string path_;
};

}  // namespace vgpu::softgpu::vfio_user
