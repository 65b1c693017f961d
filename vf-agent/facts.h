// SPDX-License-Identifier: MIT
//
// What the guest's kernel says about its VF: device, driver, VRAM, and the processes that use it.
// Read from sysfs and procfs below a root that tests replace; everything may be missing, so
// nothing here fails: a fact that is not there is empty or 0. Sizes are bounded, since any process
// of the guest chooses some of them. Used by Guest; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vgpu::agent {

namespace fs = std::filesystem;

/// /sys/module of the driver that is bound to the VF.
struct DriverFacts {
    std::string name;  ///< of the driver that is bound; empty if none is
    /// As the module tells them; empty for a driver that is built in or has no MODULE_VERSION.
    std::string version, srcversion;
};

/// From sysfs of the PCI function; the files are amdgpu's (unique_id, mem_info_vram_*).
struct VfFacts {
    std::string pci_address;  ///< "0000:00:05.0"; empty if there is no VF
    std::string unique_id;    ///< hexadecimal
    std::string render_node;  ///< "/dev/dri/renderD128"
    /// As the driver counts them: "used" includes what the kernel keeps for itself.
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
};

/// One process that uses the VF; it may have ended by the time anybody reads this.
struct ProcessFacts {
    int pid = 0;
    /// The kernel's 15 letters, chosen by the process: not to be trusted, cleaned by encode().
    std::string comm;
    std::uint64_t vram_bytes = 0;
    /// User queues of KFD; 0 for a process that only has a render node open.
    std::uint32_t queues = 0;
};

/// Keeps nothing between calls: a driver that is bound or unbound meanwhile is seen by the next.
/// Each call reads files and may take milliseconds on a busy guest; none waits for the GPU.
class Facts {
public:
    /// `pci_address`: which VF, if there are several; empty: the first one.
    explicit Facts(fs::path root = "/", std::string pci_address = "");

    /// As uname -r says.
    [[nodiscard]] std::string kernel_release() const;
    /// Version in the file name of libhsa-runtime64.so.1; empty if it is not installed.
    [[nodiscard]] std::string rocr_version() const;
    [[nodiscard]] VfFacts vf() const;
    [[nodiscard]] DriverFacts driver() const;
    /// Those that use the VF, through KFD or DRM, most VRAM first.
    /// Ours is among them if the self-test runs. VRAM is the larger of what KFD and DRM say, since
    /// amdgpu counts KFD's memory in the process' DRM client, too.
    [[nodiscard]] std::vector<ProcessFacts> processes() const;
    /// Pids that have /dev/kfd or the render node open.
    /// Sorted; these are the ones to freeze, whether they have submitted anything or not.
    [[nodiscard]] std::vector<int> users() const;

private:
    [[nodiscard]] fs::path device() const;
    /// What KFD calls the GPU in names such as vram_ID; empty if KFD does not have it.
    [[nodiscard]] std::string kfd_gpu_id(const std::string& pci_address) const;

    fs::path root_;
    std::string wanted_;
};

/// First line of a file, at most `kMaxLine` bytes; empty if it cannot be read.
std::string line_of(const fs::path& file);
/// Names in a directory, sorted; empty if it cannot be read.
std::vector<std::string> names_in(const fs::path& directory);
/// The digits of `text` as a number; -1 if it is none.
int pid_of(const std::string& text);

}  // namespace vgpu::agent
