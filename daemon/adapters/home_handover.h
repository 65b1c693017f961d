// SPDX-License-Identifier: MIT
//
// HomeHandover: HandoverPort of whatever home of the PF core is at a path, looked at anew each time
// (it may come later, as with UapiClient).
//
//   kernel   vgpu_pf.ko's sysfs, found by the number of its character device:
//            /sys/dev/char/MAJOR:MINOR/device/sriov_admin/vfN/handover
//   process  the VF's vfio-user socket: where everybody looks for it, or, handed over to nobody, in
//            a directory beside it that is vgpud's alone. A client that has it open keeps it.
#pragma once

#include "daemon/ports/handover_port.h"

#include <optional>
#include <string>

namespace vgpu::daemon::adapters {

class HomeHandover final : public HandoverPort {
public:
    /// `vf_socket_dir` may be empty: not known. `sysfs` is another one in tests.
    HomeHandover(std::string uapi_path, std::string vf_socket_dir, std::string sysfs = "/sys")
        : uapi_path_(std::move(uapi_path)),
          vf_socket_dir_(std::move(vf_socket_dir)),
          sysfs_(std::move(sysfs)) {}

    Result<Handover> get(std::uint32_t vf) override;
    Result<> set(std::uint32_t vf, Handover handover) override;

private:
    /// Nothing if the home is no character device.
    [[nodiscard]] std::optional<std::string> attribute_of(std::uint32_t vf) const;
    [[nodiscard]] std::string socket_of(std::uint32_t vf) const;
    [[nodiscard]] std::string withheld_directory() const { return vf_socket_dir_ + "/withheld"; }
    [[nodiscard]] std::string withheld_of(std::uint32_t vf) const;
    [[nodiscard]] Result<> withhold(std::uint32_t vf) const;

    const std::string uapi_path_;
    const std::string vf_socket_dir_;
    const std::string sysfs_;
};

}  // namespace vgpu::daemon::adapters
