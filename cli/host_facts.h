// SPDX-License-Identifier: MIT
//
// HostFacts: everything `vgpuctl doctor` judges, as plain values. HostCollector fills them from the
// machine, tests by hand; diagnose() only reads them. What could not be found out is nothing, not a
// guess.
#pragma once

#include "cli/pci_facts.h"
#include "cli/service.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::cli {

/// A directory or socket file.
struct FileFacts {
    std::string path;
    bool exists = false;
    bool is_expected_kind = false;  ///< a directory, a socket
    unsigned mode = 0;              ///< permission bits
};

struct ModuleFacts {
    bool is_loaded = false;
    bool is_available = false;            ///< modprobe would find it
    std::vector<std::string> pf_devices;  ///< /dev/vgpu-pfN
};

/// What vgpud says, or why it says nothing.
struct ServiceFacts {
    bool has_bus = false;  ///< there is a bus to ask
    bool is_there = false;
    std::string trouble;  ///< the words of the error
    Properties manager{};
    std::vector<Properties> gpus{}, vfs{};
};

struct HostFacts {
    std::string vgpuctl_version;
    std::string kernel_release;
    std::string kernel_command_line;
    bool is_root = false;
    std::size_t iommu_groups = 0;
    /// CONFIG_… of the running kernel; nothing if it is not readable.
    std::optional<std::map<std::string, std::string>> kernel_config;
    PciReading pci;
    /// Addresses in the same IOMMU group, by the address of each AMD GPU.
    std::map<std::string, std::vector<std::string>> group_members;
    ModuleFacts module;
    std::optional<std::string> qemu_version;  ///< first line of --version; nothing: not found
    FileFacts run_dir;
    std::vector<FileFacts> vf_sockets;
    ServiceFacts service;
};

}  // namespace vgpu::cli
