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
/// `mode` has 07777 and is 0 for a file that does not exist.
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

/// What vgpud says, or why it says nothing.
/// Lists are empty unless is_there; a call that failed in between leaves what came before it.
struct ServiceFacts {
    bool has_bus = false;  ///< there is a bus to ask
    bool is_there = false;
    std::string trouble;  ///< the words of the error; also of one after is_there
    Properties manager{};
    std::vector<Properties> gpus{}, vfs{};
};

/// As of one moment, more or less: nothing is locked while it is read.
struct HostFacts {
    std::string vgpuctl_version;
    std::string kernel_release;
    std::string kernel_command_line;
    bool is_root = false;
    /// 0: no IOMMU is in use.
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
