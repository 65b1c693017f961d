// SPDX-License-Identifier: MIT
//
// HostFacts holds everything that `vgpuctl doctor` judges, as plain values. HostCollector fills it
// from the machine, tests fill it by hand; diagnose() only reads it. An unknown fact is empty.
#pragma once

#include "cli/pci_facts.h"
#include "cli/service.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// A directory or socket file.
/// `mode` holds the bits 07777; 0 for a file that does not exist.
struct FileFacts {
    std::string path;
    bool exists = false;
    bool is_expected_kind = false;  ///< a directory, a socket
    unsigned mode = 0;              ///< permission bits
};

/// vgpu_pf.ko; is_available is taken from modules.dep of the running kernel.
struct ModuleFacts {
    bool is_loaded = false;
    bool is_available = false;            ///< modprobe would find it
    std::vector<std::string> pf_devices;  ///< /dev/vgpu-pfN
};

/// Facts from vgpud, or why there are none.
/// Lists are empty unless is_there; a failed call keeps the results of the calls before it.
struct ServiceFacts {
    bool has_bus = false;  ///< there is a bus to ask
    bool is_there = false;
    std::string trouble;  ///< text of the error; may be set although is_there
    Properties manager{};
    std::vector<Properties> gpus{}, vfs{};
};

/// Nothing is locked while the facts are read, so they are only roughly of one moment.
struct HostFacts {
    std::string vgpuctl_version;
    std::string kernel_release;
    std::string kernel_command_line;
    bool is_root = false;
    /// 0: no IOMMU is in use.
    std::size_t iommu_groups = 0;
    /// CONFIG_… of the running kernel; empty if not readable.
    std::optional<std::map<std::string, std::string>> kernel_config;
    PciReading pci;
    /// Members of the IOMMU group of each AMD GPU, by the address of that GPU.
    std::map<std::string, std::vector<std::string>> group_members;
    ModuleFacts module;
    std::optional<std::string> qemu_version;  ///< first line of --version; empty: not found
    FileFacts run_dir;
    std::vector<FileFacts> vf_sockets;
    ServiceFacts service;
};

}  // namespace vgpu::cli
