// SPDX-License-Identifier: MIT
//
// HostCollector fills HostFacts from a machine. It reads files, asks libpci and runs
// `qemu --version` with a limit, but judges nothing. The caller passes all paths, so that tests can
// put a machine into a directory. Used by doctor and report.
#pragma once

#include "cli/host_facts.h"

#include <functional>
#include <memory>

namespace vgpu::cli {

/// Paths to read. With a `root`, files come from there; PCI (without a dump), QEMU, run_dir and
/// vgpud are still those of this machine.
struct HostPlaces {
    std::string root;  ///< prefix of /proc, /sys, /boot, /lib/modules, /dev; "": this machine
    std::optional<std::string> pci_dump;  ///< a dump of lspci -xxxx in place of this machine's PCI
    std::string run_dir = "/run/vgpu";
    std::string qemu = "qemu-system-x86_64";
};

class HostCollector {
public:
    explicit HostCollector(HostPlaces places) : places_(std::move(places)) {}

    /// `connect` throws ServiceError if there is no bus.
    /// Does not throw for missing facts. Waits at most 5 s for QEMU and kServicePatience for each
    /// of three calls to vgpud.
    [[nodiscard]] HostFacts collect(const std::function<std::unique_ptr<Service>()>& connect) const;

private:
    /// `path` is absolute.
    [[nodiscard]] std::string place(const std::string& path) const { return places_.root + path; }
    void ask_service(const std::function<std::unique_ptr<Service>()>& connect,
                     ServiceFacts& facts) const;
    void read_kernel(HostFacts& facts) const;
    void read_sysfs_of_gpus(HostFacts& facts) const;
    [[nodiscard]] std::optional<std::map<std::string, std::string>> read_config(
        const std::string& release) const;
    [[nodiscard]] ModuleFacts read_module(const std::string& release) const;

    HostPlaces places_;
};

/// CONFIG_… lines of a kernel configuration.
/// "CONFIG_X=y" becomes {"CONFIG_X", "y"}; options that are not set are left out.
[[nodiscard]] std::map<std::string, std::string> parse_kernel_config(const std::string& text);

}  // namespace vgpu::cli
