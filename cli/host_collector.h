// SPDX-License-Identifier: MIT
//
// HostCollector: fills HostFacts from a machine: files, libpci, `qemu --version`. Does not judge
// them. Paths are arguments, so that tests can use a directory.
#pragma once

#include "cli/host_facts.h"

#include <functional>
#include <memory>

namespace vgpu::cli {

/// Sources of facts. `root` applies to files. It does not apply to PCI (without a dump), QEMU and
/// vgpud.
struct HostPlaces {
    std::string root;                     ///< prefix of /proc, /sys, /boot, /lib/modules, /dev
    std::optional<std::string> pci_dump;  ///< lspci -xxxx dump, for PCI
    std::string run_dir = "/run/vgpu";
    std::string qemu = "qemu-system-x86_64";
};

class HostCollector {
public:
    explicit HostCollector(HostPlaces places) : places_(std::move(places)) {}

    /// Collects the facts. `connect` throws ServiceError if there is no bus. A missing fact is not
    /// an error. Waits up to 5 s for QEMU and kServiceTimeout for each of three calls.
    [[nodiscard]] HostFacts collect(const std::function<std::unique_ptr<Service>()>& connect) const;

private:
    /// Places an absolute path below the root.
    [[nodiscard]] std::string place(const std::string& path) const { return places_.root + path; }
    void ask_service(const std::function<std::unique_ptr<Service>()>& connect,
                     ServiceFacts& facts) const;
    void read_kernel(HostFacts& facts) const;
    void read_sysfs_of_gpus(HostFacts& facts) const;
    void read_vendor_pfs(HostFacts& facts) const;
    void read_vfs(const std::string& node, VendorPf& pf) const;
    [[nodiscard]] VendorFacts read_vendor_facts() const;
    [[nodiscard]] std::vector<std::string> find_other_managers() const;
    [[nodiscard]] std::optional<VendorPf> read_vendor_pf(const std::string& address) const;
    [[nodiscard]] std::optional<std::map<std::string, std::string>> read_config(
        const std::string& release) const;
    [[nodiscard]] ModuleFacts read_module(const std::string& release) const;

    HostPlaces places_;
};

/// Parses lines: "CONFIG_X=y" becomes {"CONFIG_X", "y"}. Omits options that are not set.
[[nodiscard]] std::map<std::string, std::string> parse_kernel_config(const std::string& text);

}  // namespace vgpu::cli
