// SPDX-License-Identifier: MIT
//
// Discovery: how vgpud manages a PF of each driver (kind_of(), for SriovBackend), and the SR-IOV
// PFs of this machine (find_pfs(), for tests). Writes to no PF. Lists all display controllers and
// accelerators; other PFs (network cards, disks) only if the caller names their address.
#pragma once

#include "daemon/backend/sriov/pf.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::sriov {

/// How a PF of this driver is managed.
enum class PfKind {
    Own,      ///< vgpu_pf: our PF core manages it, not SriovBackend
    Xe,       ///< xe: the files in sriov_admin decide what the backend offers
    Generic,  ///< vgpud sets the number of VFs and their drivers
    Adopted,  ///< VFs that exist are used; their number is read-only
    None,     ///< no driver, or vfio-pci: a VM has the PF itself
};
[[nodiscard]] PfKind kind_of(std::string_view driver);
/// Why vgpud cannot change the number of VFs of a PF with this driver; empty if it can.
[[nodiscard]] std::string_view fixed_count_reason(std::string_view driver);

struct FoundPf {
    std::string address;
    std::string name;             ///< "Intel Corporation Battlemage G21 [Arc Pro B50]"
    std::uint32_t pci_class = 0;  ///< class, subclass and interface: 0x030000
    PfKind kind = PfKind::None;
    PfFunction facts{};
};

struct Discovery {
    std::vector<FoundPf> pfs{};  ///< by address
    /// PFs that could not be read, with the reason.
    std::vector<std::string> problems{};
};

/// GPUs and accelerators with SR-IOV, and the PFs at `named` addresses.
[[nodiscard]] Discovery find_pfs(Sysfs& files, const std::vector<std::string>& named = {});

/// The vendor and device names from libpci's list; the ids as text if the list lacks them.
[[nodiscard]] std::string name_of(const PciIds& ids);

}  // namespace vgpu::daemon::sriov
