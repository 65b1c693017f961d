// SPDX-License-Identifier: MIT
//
// ClientRecord: a file that names the process attached to a socket, so that vgpud can show it.
// vf1.client, next to vf1.sock, holds the PID that the kernel reports for the client's end of the
// connection (SO_PEERCRED). The file is created before the device learns of the client and exists
// until the client is detached. Used by Session.
#pragma once

#include <string>

namespace vgpu::softgpu::vfio_user {

class ClientRecord {
public:
    /// Writes the record of a client at socket `path`, connected as `fd`. A failure to write the
    /// record is ignored.
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
