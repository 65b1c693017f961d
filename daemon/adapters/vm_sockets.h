// SPDX-License-Identifier: MIT
//
// VmSockets: implements VmSocketsPort with symbolic links, which are cheap to move and which QEMU
// follows. Any thread.
#pragma once

#include "daemon/ports/vm_sockets_port.h"

namespace vgpu::daemon::adapters {

class VmSockets final : public VmSocketsPort {
public:
    /// `directory`: run_dir/vm; made for the first VM with a VF.
    explicit VmSockets(std::string directory) : directory_(std::move(directory)) {}

    /// The image that keeps QEMU from saving the VM (migration_blocker.h).
    [[nodiscard]] std::string migration_blocker_path(const std::string& uuid) const;
    [[nodiscard]] std::string path_of(const std::string& uuid, std::size_t n) const override;
    Result<> link(const std::string& uuid, const std::vector<VfSockets>& sockets) override;
    void unlink(const std::string& uuid) override;
    void unlink_vf(const std::string& uuid, const VfSockets& sockets) override;
    [[nodiscard]] std::vector<std::string> linked(const std::string& uuid) const override;
    Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) override;
    void revoke(const VfSockets& sockets) override;

private:
    std::string directory_;
};

}  // namespace vgpu::daemon::adapters
