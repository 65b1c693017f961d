// SPDX-License-Identifier: MIT
//
// HostFacts: the facts that `vgpuctl doctor` judges. HostCollector or a test fills HostFacts, and
// diagnose() reads it. An unknown fact is empty, 0 or false.
#pragma once

#include "cli/pci_facts.h"
#include "cli/service.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// A directory or socket. `mode` is 0 if the file does not exist.
struct FileFacts {
    std::string path;
    bool exists = false;
    bool has_expected_type = false;  ///< true if the file is a directory or a socket, as required
    unsigned mode = 0;               ///< permission bits (07777)
};

/// An SR-IOV GPU or accelerator whose PF driver is not vgpu_pf.
struct VendorPf {
    std::string address;  ///< "0000:03:00.0"
    std::string driver;   ///< empty if none is bound
    std::uint64_t total_vfs = 0;
    bool has_vf_quantum = false;   ///< xe: true if each VF can have its own quantum
    bool has_vram_quota = false;   ///< xe: true if each VF can have its own amount of VRAM
    bool has_vfio_driver = false;  ///< true if vfio-pci or xe-vfio-pci is loaded
    bool has_xe_vfio = false;      ///< xe: true if xe-vfio-pci, a variant of vfio-pci, is loaded
    /// The driver's name for each VF that has a driver of the host, so that no VM can get the VF.
    /// VFs with a vfio driver or with NVIDIA's driver have no entry.
    std::vector<std::string> host_drivers{};
    unsigned vfs_without_type = 0;  ///< nvidia: number of enabled VFs that have no vGPU type
};

/// Facts of the host that concern GPUs with vendors' drivers. Read only if the host has such a GPU.
struct VendorFacts {
    bool has_xe = false;                      ///< true if the module xe is loaded
    std::optional<unsigned> xe_max_vfs{};     ///< xe's parameter max_vfs; none if unreadable
    bool has_gim_config = false;              ///< true if /etc/gim_config exists
    bool has_sriov_manage = false;            ///< true if NVIDIA's program that enables VFs exists
    unsigned iommu_bits = 0;                  ///< narrowest of Intel's IOMMUs; 0: unknown
    unsigned cpu_bits = 0;                    ///< physical address width of the CPU; 0: unknown
    std::vector<std::string> other_managers;  ///< paths of programs and files that may set up VFs
};

/// The kernel module vgpu_pf.
struct ModuleFacts {
    bool is_loaded = false;
    bool is_available = false;            ///< true if modules.dep of the running kernel lists it
    std::vector<std::string> pf_devices;  ///< /dev/vgpu-pfN
};

/// Answers of vgpud. After a failed call, HostCollector makes no further calls, and keeps the
/// earlier answers.
struct ServiceFacts {
    bool has_bus = false;
    bool has_answered = false;  ///< true if vgpud sent `manager`; if false, the lists are empty
    std::string error;          ///< error of the failed call; empty if no call failed
    Properties manager{};
    std::vector<Properties> gpus{}, vfs{};
};

/// All facts. vgpuctl reads them one after the other, without a lock, so they may contradict each
/// other.
struct HostFacts {
    std::string vgpuctl_version;
    std::string kernel_release;
    std::string kernel_command_line;
    bool is_root = false;
    /// Number of IOMMU groups; 0 without an IOMMU.
    std::size_t iommu_groups = 0;
    /// Values ("y", "m" or other text) by option ("CONFIG_…"); none if unreadable.
    std::optional<std::map<std::string, std::string>> kernel_config;
    PciReading pci;
    /// By the address of a GPU: the addresses of all functions in the GPU's IOMMU group.
    std::map<std::string, std::vector<std::string>> group_members;
    std::vector<VendorPf> vendor_pfs{};
    VendorFacts vendor{};
    ModuleFacts module;
    std::optional<std::string> qemu_version;  ///< first line of --version; none if QEMU fails
    FileFacts run_dir;
    std::vector<FileFacts> vf_sockets;  ///< of the VFs whose assignment mode is not "none"
    ServiceFacts service;
};

}  // namespace vgpu::cli
