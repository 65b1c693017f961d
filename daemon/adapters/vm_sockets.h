// SPDX-License-Identifier: MIT
//
// VmSockets: implements VmSocketsPort with symbolic links, which are cheap to move and which QEMU
// follows. Any thread.
#pragma once

#include "daemon/ports/vm_sockets_port.h"

namespace vgpu::daemon::adapters {

class VmSockets final : public VmSocketsPort {
public:
    /// Directories of places are made for their first owner.
    explicit VmSockets(std::string run_dir) : run_dir_(std::move(run_dir)) {}

    /// The image that keeps QEMU from saving the VM (migration_blocker.h).
    [[nodiscard]] std::string migration_blocker_path(const std::string& place) const;
    [[nodiscard]] std::string path_of(const std::string& place, std::size_t n) const override;
    Result<> link(const std::string& place, const std::vector<VfSockets>& sockets) override;
    void unlink(const std::string& place) override;
    void unlink_vf(const std::string& place, const VfSockets& sockets) override;
    [[nodiscard]] std::vector<std::string> linked(const std::string& place) const override;
    Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) override;
    void revoke(const VfSockets& sockets) override;

private:
    std::string run_dir_;
};

}  // namespace vgpu::daemon::adapters
