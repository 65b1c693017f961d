// SPDX-License-Identifier: MIT
//
// VmSockets: implements VmSocketsPort: gives an owner the sockets of its VFs at paths that are
// known before VFs are chosen. The paths are symbolic links, because QEMU follows them, and because
// they are cheap to replace.
#pragma once

#include "daemon/ports/vm_sockets_port.h"

namespace vgpu::daemon::adapters {

class VmSockets final : public VmSocketsPort {
public:
    /// link() makes the directory of an owner in `run_dir`, with the links and the migration
    /// blocker (migration_blocker.h). unlink() removes that directory.
    explicit VmSockets(std::string run_dir) : run_dir_(std::move(run_dir)) {}

    /// Path of the migration blocker, which keeps QEMU from saving or migrating the VM.
    [[nodiscard]] std::string migration_blocker_path(const std::string& owner_dir) const;
    [[nodiscard]] std::string path_of(const std::string& owner_dir, std::size_t n) const override;
    Result<> link(const std::string& owner_dir, const std::vector<VfSockets>& sockets) override;
    void unlink(const std::string& owner_dir) override;
    void unlink_vf(const std::string& owner_dir, const VfSockets& sockets) override;
    [[nodiscard]] std::vector<std::string> linked(const std::string& owner_dir) const override;
    Result<> grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) override;
    void revoke(const VfSockets& sockets) override;

private:
    std::string run_dir_;
};

}  // namespace vgpu::daemon::adapters
