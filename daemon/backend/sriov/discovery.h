// SPDX-License-Identifier: MIT
//
// Decides by the name of a PF's driver how vgpud manages the PF (kind_of(), for SriovBackend), and
// lists the SR-IOV PFs of this machine (find_pfs(), for tests). Writes to no PF. The list contains
// display controllers and accelerators, and other PFs (network card, disk) only if the caller names
// their addresses.
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
    Generic,  ///< another driver: vgpud sets the number of VFs and their drivers
    Adopted,  ///< vgpud uses the VFs that exist, and cannot change their number
    None,     ///< no driver, or vfio-pci, which gives the PF itself to a VM
};
[[nodiscard]] PfKind kind_of(std::string_view driver);
/// Why vgpud cannot change the number of VFs of a PF with this driver; empty if vgpud can.
[[nodiscard]] std::string_view fixed_count_reason(std::string_view driver);

/// True if the PF's driver is also the driver of its VFs, and gives the VFs to VMs itself (NVIDIA).
[[nodiscard]] bool keeps_its_vfs(std::string_view driver);

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

/// GPUs and accelerators that can have VFs, and the PFs at `named` addresses.
[[nodiscard]] Discovery find_pfs(Sysfs& files, const std::vector<std::string>& named = {});

}  // namespace vgpu::daemon::sriov
