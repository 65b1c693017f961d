// SPDX-License-Identifier: MIT
//
// ClientRecord: a file with the PID of the client that is attached to a socket, so that vgpud can
// show the client. For vf1.sock, the file is vf1.client in the same directory. The kernel reports
// the PID (SO_PEERCRED). The file is created before Device::attach() is called. It is removed after
// the client is detached, or if the device refuses the client. Session makes the object.
#pragma once

#include <string>

namespace vgpu::softgpu::vfio_user {

class ClientRecord {
public:
    /// Writes the record for the client of the socket at `path`; `fd` is the connection. Failures
    /// are ignored.
    ClientRecord(const std::string& path, int fd);
    /// Path of the record for the socket at `path`.
    [[nodiscard]] static std::string path_of(std::string path);
    ~ClientRecord();
    ClientRecord(const ClientRecord&) = delete;
    ClientRecord& operator=(const ClientRecord&) = delete;

private:
    std::string path_;
};

}  // namespace vgpu::softgpu::vfio_user
