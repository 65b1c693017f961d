// SPDX-License-Identifier: MIT
//
// OwnerProbe: implements OwnerPort: finds out whether owners of VFs exist, with /proc and with
// softgpu's records of clients (pf-driver/softgpu/vfio_user/client_record.h). Recognises VMs by
// QEMU's `-uuid` argument. OwnerProbe must not ask libvirt, because libvirt may be waiting for its
// hook, and the hook for vgpud. Has no state, so any thread may call an OwnerProbe.
#pragma once

#include "daemon/ports/owner_port.h"

namespace vgpu::daemon::adapters {

class OwnerProbe final : public OwnerPort {
public:
    /// `proc`: another directory in tests.
    explicit OwnerProbe(std::string proc = "/proc") : proc_(std::move(proc)) {}

    [[nodiscard]] std::optional<bool> process_exists(const ProcessId& id) const override;
    [[nodiscard]] std::optional<std::uint64_t> start_time_of(int pid) const override;
    [[nodiscard]] std::optional<std::set<std::string>> running_domains() const override;
    [[nodiscard]] std::string client_of(const std::string& path) const override;

private:
    /// True if a process `pid` exists, but /proc does not show it, because /proc is mounted with
    /// hidepid, or because vgpud lacks descriptors.
    [[nodiscard]] bool is_hidden(int pid) const;

    std::string proc_;
};

}  // namespace vgpu::daemon::adapters
