// SPDX-License-Identifier: MIT
//
// HostCollector: fills HostFacts from files, libpci, `qemu --version` and vgpud. Does not judge the
// facts. Paths are arguments, so that tests can use a directory.
#pragma once

#include "cli/host_facts.h"

#include <functional>
#include <memory>

namespace vgpu::cli {

/// Sources of facts. `root` and `pci_dump` have no effect on `qemu` and vgpud.
struct HostSources {
    std::string root;  ///< prefix of paths such as "/proc/…" and "/sys/…"
    /// File with the output of lspci -xxxx, to read instead of the PCI functions of this host.
    std::optional<std::string> pci_dump;
    std::string run_dir = "/run/vgpu";
    std::string qemu = "qemu-system-x86_64";
};

class HostCollector {
public:
    explicit HostCollector(HostSources sources) : sources_(std::move(sources)) {}

    /// Collects the facts. `connect` throws ServiceError if there is no bus. A missing fact is not
    /// an error. Waits up to 5 s for QEMU, and up to kServiceTimeout for each of three calls of
    /// vgpud.
    [[nodiscard]] HostFacts collect(const std::function<std::unique_ptr<Service>()>& connect) const;

private:
    /// The absolute `path` below the root.
    [[nodiscard]] std::string below_root(const std::string& path) const {
        return sources_.root + path;
    }
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

    HostSources sources_;
};

/// Parses a kernel configuration. "CONFIG_X=y" becomes {"CONFIG_X", "y"}. Omits options that are
/// not set.
[[nodiscard]] std::map<std::string, std::string> parse_kernel_config(const std::string& text);

}  // namespace vgpu::cli
