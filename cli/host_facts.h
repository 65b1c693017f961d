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
    bool is_expected_kind = false;  ///< a directory, a socket
    unsigned mode = 0;              ///< 07777
};

/// An SR-IOV GPU or accelerator whose PF driver is not ours.
struct VendorPf {
    std::string address;
    std::string driver;  ///< empty: none
    std::uint64_t total_vfs = 0;
    bool has_profiles = false;     ///< xe: quanta of each VF
    bool has_vram_quota = false;   ///< xe: VRAM of each VF
    bool has_vfio_driver = false;  ///< vfio-pci or the variant is loaded
    bool has_variant = false;      ///< xe: xe-vfio-pci is loaded
    /// Drivers of the host that have VFs of it, such as "igbvf", one for each such VF.
    std::vector<std::string> host_drivers{};
    unsigned vfs_without_type = 0;  ///< nvidia: VFs that are enabled and have no vGPU type
};

/// What else on the host concerns GPUs of vendors' drivers.
struct VendorFacts {
    bool has_xe = false;                      ///< the module is loaded
    std::optional<unsigned> xe_max_vfs{};     ///< its parameter; none: unknown, or without limit
    bool has_gim_config = false;              ///< /etc/gim_config
    bool has_sriov_manage = false;            ///< NVIDIA's program that enables VFs
    unsigned iommu_bits = 0;                  ///< address width of the IOMMU; 0: unknown
    unsigned cpu_bits = 0;                    ///< physical address width of the CPU; 0: unknown
    std::vector<std::string> other_managers;  ///< files of other programs that set up VFs
};

struct ModuleFacts {
    bool is_loaded = false;
    bool is_available = false;            ///< in modules.dep of the running kernel
    std::vector<std::string> pf_devices;  ///< /dev/vgpu-pfN
};

/// Lists are empty unless is_there. After a failed call, earlier results stay.
struct ServiceFacts {
    bool has_bus = false;
    bool is_there = false;
    std::string error;  ///< error text; may be set although is_there
    Properties manager{};
    std::vector<Properties> gpus{}, vfs{};
};

/// vgpuctl reads the facts one after the other, without a lock, so they may not fit together.
struct HostFacts {
    std::string vgpuctl_version;
    std::string kernel_release;
    std::string kernel_command_line;
    bool is_root = false;
    /// 0: no IOMMU.
    std::size_t iommu_groups = 0;
    /// Options CONFIG_…; none if unreadable.
    std::optional<std::map<std::string, std::string>> kernel_config;
    PciReading pci;
    /// By the address of each GPU.
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
