// SPDX-License-Identifier: MIT
//
// HostFacts: the facts that `vgpuctl doctor` judges. HostCollector or a test fills them, and
// diagnose() reads them. Unknown facts are empty.
#pragma once

#include "cli/pci_facts.h"
#include "cli/service.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// A directory or socket. `mode` is 0 if it does not exist.
struct FileFacts {
    std::string path;
    bool exists = false;
    bool has_expected_type = false;  ///< true if it is a directory or a socket, as required
    unsigned mode = 0;               ///< permission bits (07777)
};

/// An SR-IOV GPU or accelerator whose PF driver is not ours.
struct VendorPf {
    std::string address;
    std::string driver;  ///< empty: none
    std::uint64_t total_vfs = 0;
    bool has_profiles = false;     ///< xe: true if each VF can have its own quantum
    bool has_vram_quota = false;   ///< xe: true if each VF can have its own amount of VRAM
    bool has_vfio_driver = false;  ///< true if vfio-pci or the variant is loaded
    bool has_variant = false;      ///< xe: true if the variant xe-vfio-pci is loaded
    /// Host drivers that are bound to VFs of this PF, such as "igbvf"; one entry per VF.
    std::vector<std::string> host_drivers{};
    unsigned vfs_without_type = 0;  ///< nvidia: VFs that are enabled and have no vGPU type
};

/// Other facts of the host that concern GPUs with vendors' drivers.
struct VendorFacts {
    bool has_xe = false;                      ///< true if the module xe is loaded
    std::optional<unsigned> xe_max_vfs{};     ///< xe's parameter; none: not readable
    bool has_gim_config = false;              ///< true if /etc/gim_config exists
    bool has_sriov_manage = false;            ///< true if NVIDIA's program that enables VFs exists
    unsigned iommu_bits = 0;                  ///< address width of the IOMMU; 0: unknown
    unsigned cpu_bits = 0;                    ///< physical address width of the CPU; 0: unknown
    std::vector<std::string> other_managers;  ///< files of other programs that set up VFs
};

/// The kernel module vgpu_pf.
struct ModuleFacts {
    bool is_loaded = false;
    bool is_available = false;            ///< true if modules.dep of the running kernel lists it
    std::vector<std::string> pf_devices;  ///< /dev/vgpu-pfN
};

/// Answers of vgpud. After a failed call, no further calls are made, and earlier results stay.
struct ServiceFacts {
    bool has_bus = false;
    bool is_there = false;  ///< true if `manager` was read; else the lists are empty
    std::string error;      ///< of the failed call, which may be a later one; else empty
    Properties manager{};
    std::vector<Properties> gpus{}, vfs{};
};

/// vgpuctl reads the facts one after the other, without a lock, so they may contradict each other.
struct HostFacts {
    std::string vgpuctl_version;
    std::string kernel_release;
    std::string kernel_command_line;
    bool is_root = false;
    /// Number of IOMMU groups; 0: no IOMMU.
    std::size_t iommu_groups = 0;
    /// Options CONFIG_…; none if unreadable.
    std::optional<std::map<std::string, std::string>> kernel_config;
    PciReading pci;
    /// Members of the IOMMU group of each GPU, by the GPU's address.
    std::map<std::string, std::vector<std::string>> group_members;
    std::vector<VendorPf> vendor_pfs{};
    VendorFacts vendor{};
    ModuleFacts module;
    std::optional<std::string> qemu_version;  ///< first line of --version; none: not found
    FileFacts run_dir;
    std::vector<FileFacts> vf_sockets;
    ServiceFacts service;
};

}  // namespace vgpu::cli
