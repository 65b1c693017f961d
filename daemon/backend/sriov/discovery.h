// SPDX-License-Identifier: MIT
//
// Discovery: says how vgpud manages a PF of each driver (kind_of(), for SriovBackend), and lists
// the SR-IOV PFs of this machine (find_pfs(), for tests). Writes to no PF. The list has all display
// controllers and accelerators. It has another PF (network card, disk) only if the caller names the
// address of that PF.
#pragma once

#include "daemon/backend/sriov/pf.h"

#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::sriov {

/// How vgpud manages a PF, by the PF's driver.
enum class PfKind {
    Own,      ///< vgpu_pf: our PF core manages the PF, not SriovBackend
    Xe,       ///< xe: the files in sriov_admin decide what the backend offers
    Generic,  ///< vgpud sets the number of VFs and their drivers
    Adopted,  ///< vgpud uses the VFs that exist, and cannot change their number
    None,     ///< no driver, or vfio-pci, by which a VM has the PF itself
};
[[nodiscard]] PfKind kind_of(std::string_view driver);
/// Why vgpud cannot change the number of VFs of a PF with this driver; empty if vgpud can.
[[nodiscard]] std::string_view fixed_count_reason(std::string_view driver);

struct FoundPf {
    std::string address;
    std::string name;             ///< "Intel Corporation Battlemage G21 [Arc Pro B50]"
    std::uint32_t pci_class = 0;  ///< class, subclass and interface: 0x030000
    PfKind kind = PfKind::None;
    PfFunction facts{};
};

struct Discovery {
    std::vector<FoundPf> pfs{};  ///< in the order of their addresses
    /// One text for each PF that could not be read; a single text if PFs could not be listed.
    std::vector<std::string> problems{};
};

/// GPUs and accelerators with SR-IOV, and the PFs at `named` addresses.
[[nodiscard]] Discovery find_pfs(Sysfs& files, const std::vector<std::string>& named = {});

/// The names of vendor and device from libpci's list; describe(ids) if the list lacks the ids.
[[nodiscard]] std::string name_of(const PciIds& ids);

}  // namespace vgpu::daemon::sriov
