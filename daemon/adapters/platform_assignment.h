// SPDX-License-Identifier: MIT
//
// PlatformAssignment: implements AssignmentPort for a GPU that our PF core drives: reads and sets
// the assignment modes of VFs. Each call determines again whether the PF core is the kernel module
// or a process, because the PF core may start later than vgpud:
//
//   kernel   a sysfs file of vgpu_pf.ko has the mode. The number of the character device leads to
//            the file: /sys/dev/char/MAJOR:MINOR/device/sriov_admin/vfN/assignment_mode
//   process  the path of the VF's vfio-user socket shows the mode. In mode 'vfio-user' the socket
//            has its public path. In mode 'none' the socket is in a directory that only vgpud's
//            user and root may enter. A client that is already connected keeps the VF.
#pragma once

#include "daemon/ports/assignment_port.h"

#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

class PlatformAssignment final : public AssignmentPort {
public:
    /// `uapi_path`: the socket of vgpu-pf or the device of vgpu_pf.ko. `vf_socket_dir`: directory
    /// of the VFs' vfio-user sockets; empty if unknown. `sysfs`: another directory in tests.
    PlatformAssignment(std::string uapi_path, std::string vf_socket_dir, std::string sysfs = "/sys")
        : uapi_path_(std::move(uapi_path)),
          vf_socket_dir_(std::move(vf_socket_dir)),
          sysfs_(std::move(sysfs)) {}

    Result<AssignmentMode> get(std::uint32_t vf) override;
    /// Ignores TakeFromHost, because vgpu_pf.ko never takes a VF in use from a driver of the host.
    Result<> set(std::uint32_t vf, AssignmentMode assignment_mode, TakeFromHost) override;

private:
    /// The path of the VF's sysfs file; none if the PF core is a process or does not run.
    [[nodiscard]] std::optional<std::string> attribute_of(std::uint32_t vf) const;
    /// The public path of the VF's socket.
    [[nodiscard]] std::string socket_of(std::uint32_t vf) const;
    [[nodiscard]] std::string withheld_directory() const { return vf_socket_dir_ + "/withheld"; }
    /// The path of the VF's socket in mode None.
    [[nodiscard]] std::string withheld_of(std::uint32_t vf) const;
    /// Moves the VF's socket to withheld_of().
    [[nodiscard]] Result<> withhold(std::uint32_t vf) const;

    const std::string uapi_path_;
    const std::string vf_socket_dir_;
    const std::string sysfs_;
};

}  // namespace vgpu::daemon::adapters
