// SPDX-License-Identifier: MIT
#include "cli/vendor_checks.h"

#include "cli/format.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::cli {

namespace {

/// The GPU of vgpud at this address; null if there is none.
const Properties* gpu_at(const HostFacts& facts, const std::string& address) {
    const auto at = std::ranges::find_if(facts.service.gpus, [&address](const Properties& gpu) {
        return text_of(gpu, "Address") == address;
    });
    return at == facts.service.gpus.end() ? nullptr : &*at;
}

/// False if the PF cannot have VFs now.
bool check_driver(const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver.empty())
        found.push_back({"pf-driver", Level::Warning, pf.address + " has no driver",
                         "only the driver of the PF can enable VFs",
                         "load it; 'dmesg' shows why it does not take the GPU"});
    else if (pf.driver == "vfio-pci")
        found.push_back({"pf-driver", Level::Warning,
                         pf.address + " itself is assigned to a VM (vfio-pci)",
                         "its VFs cannot be shared meanwhile",
                         "take it out of the VM and give it its own driver back"});
    else if (pf.total_vfs == 0)
        found.push_back({"pf-vfs", Level::Warning,
                         fmt::format("{} (driver {}) offers no VFs", pf.address, pf.driver),
                         "sriov_totalvfs is 0: SR-IOV is off in the firmware or by a parameter of "
                         "the driver, or the driver does not support it for this GPU",
                         "look for SR-IOV in the firmware's settings and in 'dmesg'"});
    else
        return true;
    return false;
}

void check_found(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    const std::string what =
        fmt::format("{} (driver {}) can have {} VFs", pf.address, pf.driver, pf.total_vfs);
    if (gpu_at(facts, pf.address) != nullptr) {
        found.push_back({"pf-found", Level::Ok, what});
        return;
    }
    if (!facts.service.is_there) return;
    found.push_back({"pf-found", Level::Note, what + ", and vgpud does not know it",
                     "its VFs have no owners, and their sizes and drivers are lost at a reboot",
                     fmt::format("add {{\"id\": …, \"pci\": {{\"address\": \"{}\"}}}} to 'gpus' of "
                                 "/etc/vgpu/vgpud.json; vgpud only observes it then",
                                 pf.address)});
}

void check_vfio(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    const Properties* gpu = gpu_at(facts, pf.address);
    if (gpu == nullptr || text_of(*gpu, "Manage") != "full" || pf.has_vfio_driver) return;
    found.push_back({"pf-vfio", Level::Warning,
                     pf.address + ": no driver through which a VM gets a VF is loaded",
                     "the assignment mode vfio-pci fails, and vgpud loads no modules",
                     "load vfio-pci, and name it in /etc/modules-load.d/vfio.conf"});
}

void check_xe(const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver != "xe") return;
    if (!pf.has_profiles)
        found.push_back({"xe-level", Level::Note, pf.address + ": xe has no sriov_admin",
                         "only the number of VFs can be chosen",
                         "use Linux 6.19 for quanta, 7.0 for the VRAM of each VF"});
    else if (!pf.has_vram_quota)
        found.push_back({"xe-level", Level::Note, pf.address + ": xe has no vram_quota",
                         "all VFs get equal shares of the VRAM",
                         "use Linux 7.0 or newer for the VRAM of each VF"});
    else
        found.push_back(
            {"xe-level", Level::Ok, pf.address + ": xe can set quanta and VRAM of each VF"});
    if (!pf.has_variant)
        found.push_back({"xe-variant", Level::Note, pf.address + ": xe-vfio-pci is not loaded",
                         "plain vfio-pci does not wait until the PF has finished the reset of a VF",
                         "load xe-vfio-pci where the kernel has it"});
}

/// A function that is limited by no quantum or no time-out can keep the engine.
void check_quanta(const HostFacts& facts, std::vector<Finding>& found) {
    for (const Properties& vf : facts.service.vfs) {
        if (!vf.contains("DriverQuantumUs") || vf.contains("WorstWaitUs")) continue;
        found.push_back({"xe-quanta", Level::Warning,
                         text_of(vf, "Target") + ": another function of its GPU has no limit",
                         "with a quantum or time-out of 0 it can keep the engine for ever",
                         "let vgpud manage the GPU (\"manage\": \"full\"); it writes both"});
    }
}

}  // namespace

void check_vendor_pfs(const HostFacts& facts, std::vector<Finding>& found) {
    for (const VendorPf& pf : facts.vendor_pfs) {
        if (!check_driver(pf, found)) continue;
        check_found(facts, pf, found);
        check_vfio(facts, pf, found);
        check_xe(pf, found);
    }
    check_quanta(facts, found);
}

}  // namespace vgpu::cli
