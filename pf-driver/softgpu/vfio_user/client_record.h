// SPDX-License-Identifier: MIT
//
// ClientRecord: says which process has a socket open, for vgpud to show: its PID in vf1.client next
// to vf1.sock, as the kernel knows the client's end (SO_PEERCRED). The file exists as long as the
// client is attached; it is made before the device learns of the client. Used by Session.
#pragma once

#include <string>

namespace vgpu::softgpu::vfio_user {

class ClientRecord {
public:
    /// For a client at socket `path`, connected as `fd`. A failure to write the record is ignored.
    ClientRecord(const std::string& path, int fd);
    /// The file of a socket's client.
    [[nodiscard]] static std::string path_of(std::string path);
    ~ClientRecord();
    ClientRecord(const ClientRecord&) = delete;
    ClientRecord& operator=(const ClientRecord&) = delete;

private:
    std::string path_;
};

}  // namespace vgpu::softgpu::vfio_user
