// SPDX-License-Identifier: MIT
//
// Facts that the guest's kernel reports about its VF: device, driver, VRAM, and the processes that
// use the VF. They are read from sysfs and procfs below a root that tests replace. Any file may be
// missing, so no call fails: a missing fact is empty or 0. Sizes are bounded, since any process of
// the guest chooses some of them. Used by LinuxGuest; one thread.
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
    /// As the module reports them; empty if the driver is built in or has no MODULE_VERSION.
    std::string version, srcversion;
};

/// From sysfs of the PCI function; the files are amdgpu's (unique_id, mem_info_vram_*).
struct VfFacts {
    std::string pci_address;  ///< "0000:00:05.0"; empty if there is no VF
    std::string unique_id;    ///< hexadecimal
    std::string render_node;  ///< "/dev/dri/renderD128"
    /// As the driver counts them: "used" includes the kernel's own share.
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
};

/// One process that uses the VF; it may have ended since it was read.
struct ProcessFacts {
    int pid = 0;
    /// The kernel's 15 letters. The process chooses them: do not trust them; encode() cleans them.
    std::string comm;
    std::uint64_t vram_bytes = 0;
    /// User queues of KFD; 0 for a process that only has a render node open.
    std::uint32_t queues = 0;
};

/// Keeps nothing between calls, so each call sees the driver that is bound at that moment.
/// A call reads files and may take milliseconds on a busy guest; none waits for the GPU.
class Facts {
public:
    /// `pci_address` selects the VF if there are several; empty: the first one.
    explicit Facts(fs::path root = "/", std::string pci_address = "");

    /// As uname -r says.
    [[nodiscard]] std::string kernel_release() const;
    /// Version in the file name of libhsa-runtime64.so.1; empty if it is not installed.
    [[nodiscard]] std::string rocr_version() const;
    [[nodiscard]] VfFacts vf() const;
    [[nodiscard]] DriverFacts driver() const;
    /// The processes that use the VF through KFD or DRM, most VRAM first.
    /// Includes a running self-test. VRAM is the larger of KFD's and DRM's number, not the sum:
    /// amdgpu counts KFD's memory in the DRM client of the process as well.
    [[nodiscard]] std::vector<ProcessFacts> processes() const;
    /// Pids that have /dev/kfd or the render node open, sorted.
    /// Quiesce freezes all of them, whether they have submitted work or not.
    [[nodiscard]] std::vector<int> users() const;

private:
    [[nodiscard]] fs::path device() const;
    /// KFD's id of the GPU, as in the file name vram_ID; empty if KFD does not list the GPU.
    [[nodiscard]] std::string kfd_gpu_id(const std::string& pci_address) const;

    fs::path root_;
    std::string wanted_;
};

/// First line of a file, at most 256 bytes; empty if it cannot be read.
std::string line_of(const fs::path& file);
/// Names in a directory, sorted; empty if it cannot be read.
std::vector<std::string> names_in(const fs::path& directory);
/// `text` as a decimal number; -1 if it is not one.
int pid_of(const std::string& text);

}  // namespace vgpu::agent
