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

/// True if the PF has a driver other than vfio-pci, and offers VFs. Otherwise adds a finding with
/// the reason.
bool check_driver(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver.empty())
        found.push_back({"pf-driver", Level::Warning, pf.address + " has no driver",
                         "only the driver of the PF can enable VFs",
                         "load the driver; 'dmesg' shows why it does not bind to the GPU"});
    else if (pf.driver == "vfio-pci")
        found.push_back({"pf-driver", Level::Warning,
                         pf.address + " itself has the driver vfio-pci",
                         "vfio-pci gives the whole GPU to one VM, so no VM can get a VF",
                         "if a VM has the GPU, detach it; then bind the GPU's own driver again"});
    else if (pf.total_vfs == 0 && pf.driver == "xe" && facts.vendor.xe_max_vfs == 0u)
        found.push_back({"pf-vfs", Level::Warning, pf.address + " (driver xe) offers no VFs",
                         "the parameter max_vfs of the module xe is 0",
                         "remove xe.max_vfs=0 from the kernel command line or max_vfs=0 from "
                         "/etc/modprobe.d, and boot again"});
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

void check_known(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    const std::string what =
        fmt::format("{} (driver {}) can have {} VFs", pf.address, pf.driver, pf.total_vfs);
    if (gpu_at(facts, pf.address) != nullptr) {
        found.push_back({"pf-found", Level::Ok, what});
        return;
    }
    if (!facts.service.has_answered) return;
    found.push_back({"pf-found", Level::Note, what + ", and vgpud does not know the GPU",
                     "its VFs have no owners, and their sizes and drivers are lost at a reboot",
                     fmt::format("add {{\"id\": …, \"pci\": {{\"address\": \"{}\"}}}} to 'gpus' of "
                                 "/etc/vgpu/vgpud.json; vgpud only observes it then",
                                 pf.address)});
}

void check_vfio(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    const Properties* gpu = gpu_at(facts, pf.address);
    if (gpu == nullptr || text_of(*gpu, "Manage") != "full" || pf.has_vfio_driver) return;
    found.push_back({"pf-vfio", Level::Warning,
                     pf.address + ": no vfio driver is loaded, so no VM can get a VF",
                     "the assignment mode vfio-pci fails, and vgpud loads no modules",
                     "'modprobe vfio-pci'; for each boot: 'echo vfio-pci > "
                     "/etc/modules-load.d/vfio.conf'"});
}

void check_xe(const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver != "xe") return;
    if (!pf.has_vf_quantum)
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
    if (!pf.has_xe_vfio)
        found.push_back({"xe-variant", Level::Note, pf.address + ": xe-vfio-pci is not loaded",
                         "plain vfio-pci does not wait until the PF has finished the reset of a VF",
                         "load xe-vfio-pci if the kernel has it"});
}

/// Checks that no drivers of the host are bound to VFs.
void check_host_drivers(const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.host_drivers.empty()) return;
    found.push_back(
        {"pf-autoprobe", Level::Warning,
         fmt::format("{}: drivers of the host, such as {}, are bound to {} of its VFs", pf.address,
                     pf.host_drivers.front(), pf.host_drivers.size()),
         "no VM can get these VFs, and the number of VFs cannot be changed",
         fmt::format(
             "'echo 0 > /sys/bus/pci/devices/{}/sriov_drivers_autoprobe'; then unbind each VF from "
             "its driver: 'echo VF > /sys/bus/pci/drivers/{}/unbind'",
             pf.address, pf.host_drivers.front())});
}

void check_i915(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver != "i915" || !facts.vendor.has_xe) return;
    found.push_back({"i915-xe", Level::Note,
                     pf.address + " has the driver i915, and xe is loaded, too",
                     "after an update or a reboot either driver may bind to the GPU",
                     "exclude the GPU from one of the drivers: boot with xe.force_probe=!ID or "
                     "i915.force_probe=!ID, where ID is the GPU's device id of 'lspci -n'"});
}

void check_amd(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver == "amdgpu")
        found.push_back({"gim-driver", Level::Note,
                         pf.address + " has SR-IOV, but its driver is amdgpu",
                         "amdgpu cannot enable VFs", "for VFs, use AMD's driver gim instead"});
    if (pf.driver == "gim" && !facts.vendor.has_gim_config)
        found.push_back(
            {"gim-config", Level::Note, pf.address + ": there is no /etc/gim_config",
             "the parameter vf_num of gim then sets the number of VFs, and vgpud cannot "
             "change this number",
             "to set the number of VFs for all reboots, set vf_num in /etc/gim_config "
             "and load gim again"});
}

void check_nvidia(const HostFacts& facts, const VendorPf& pf, std::vector<Finding>& found) {
    if (pf.driver != "nvidia") return;
    if (!facts.vendor.has_sriov_manage)
        found.push_back({"nvidia-vfio", Level::Warning,
                         pf.address + ": /usr/lib/nvidia/sriov-manage is missing",
                         "only this program of NVIDIA's vGPU host driver enables VFs",
                         "install NVIDIA's vGPU host driver in place of the usual one"});
    if (pf.vfs_without_type > 0)
        found.push_back(
            {"nvidia-vfio", Level::Note,
             fmt::format("{}: {} VFs have no vGPU type", pf.address, pf.vfs_without_type),
             "a VM that gets such a VF does not start; types are lost at a reboot",
             "write an id of nvidia/creatable_vgpu_types of the VF to its "
             "nvidia/current_vgpu_type"});
}

/// Compares the address widths of the IOMMU and the CPU. A guest that uses all physical address
/// bits of the CPU may place BARs at addresses that the IOMMU cannot map.
void check_iommu_width(const VendorFacts& facts, std::vector<Finding>& found) {
    if (facts.iommu_bits == 0 || facts.iommu_bits >= facts.cpu_bits) return;
    found.push_back(
        {"iommu-width", Level::Note,
         fmt::format("the IOMMU has {} address bits, the CPU {}", facts.iommu_bits, facts.cpu_bits),
         "a VM whose CPU has more address bits than the IOMMU may fail to start with a VF "
         "(VFIO_MAP_DMA: Invalid argument)",
         fmt::format("add <maxphysaddr mode='emulate' bits='{}'/> to the <cpu> of such a VM's "
                     "domain",
                     facts.iommu_bits)});
}

void check_other_managers(const VendorFacts& facts, std::vector<Finding>& found) {
    if (facts.other_managers.empty()) return;
    found.push_back(
        {"pf-other-manager", Level::Note,
         fmt::format("other programs may set up VFs: {}", fmt::join(facts.other_managers, ", ")),
         "two managers of one GPU change each other's VFs; vgpud reports such a "
         "change and does not undo it",
         "exclude the GPUs of vgpud from the configuration of these programs, or let "
         "vgpud only observe them"});
}

/// Finds VFs without a known longest wait. No longest wait is known if another function has no
/// quantum or no preempt time-out and so can keep the engine for ever, or if the driver's values
/// are unreadable.
void check_quanta(const HostFacts& facts, std::vector<Finding>& found) {
    for (const Properties& vf : facts.service.vfs) {
        if (!vf.contains("DriverQuantumUs") || vf.contains("WorstWaitUs")) continue;
        found.push_back({"xe-quanta", Level::Warning,
                         text_of(vf, "Target") + ": the wait for the engine has no known limit",
                         "another function with a quantum or time-out of 0 can keep the engine for "
                         "ever",
                         "let vgpud manage the GPU (\"manage\": \"full\"); it writes both values"});
    }
}

}  // namespace

void check_vendor_pfs(const HostFacts& facts, std::vector<Finding>& found) {
    for (const VendorPf& pf : facts.vendor_pfs) {
        if (!check_driver(facts, pf, found)) continue;
        check_known(facts, pf, found);
        check_vfio(facts, pf, found);
        check_host_drivers(pf, found);
        check_xe(pf, found);
        check_i915(facts, pf, found);
        check_amd(facts, pf, found);
        check_nvidia(facts, pf, found);
    }
    if (facts.vendor_pfs.empty()) return;
    check_quanta(facts, found);
    check_iommu_width(facts.vendor, found);
    check_other_managers(facts.vendor, found);
}

}  // namespace vgpu::cli
