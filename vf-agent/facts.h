// SPDX-License-Identifier: MIT
//
// Facts: what the guest's kernel reports about the VF (device, driver, VRAM, processes), for the
// agent's messages to the host. Facts reads sysfs and procfs below a root directory. No call fails;
// missing facts are empty or 0. The lengths of texts and lists are bounded, because processes
// choose some texts. Runs in one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::agent {

namespace fs = std::filesystem;

/// The VF's driver.
struct DriverFacts {
    std::string name;        ///< empty if no driver is bound
    std::string version;     ///< of the module; empty if the module states none
    std::string srcversion;  ///< checksum of the module's sources; empty if the module states none
};

/// The VF. The unique ID and the VRAM come from amdgpu's files in sysfs.
struct VfFacts {
    std::string pci_address;  ///< "0000:00:05.0"; empty if there is no VF
    std::string unique_id;    ///< hexadecimal
    std::string render_node;  ///< "/dev/dri/renderD128"
    std::uint64_t vram_total_bytes = 0;
    std::uint64_t vram_used_bytes = 0;  ///< includes VRAM that the kernel uses
};

/// A process that used the VF when the facts were read.
struct ProcessFacts {
    int pid = 0;
    std::string comm;  ///< /proc/PID/comm: chosen by the process, up to 15 bytes of any value
    std::uint64_t vram_bytes = 0;
    /// User queues of KFD; 0 if the process has only a render node open.
    std::uint32_t queues = 0;
};

/// Stateless, so each call sees the current driver. A call may take milliseconds, but never waits
/// for the GPU.
class Facts {
public:
    /// `pci_address`: the VF. If it is empty, the VF is the first Vega10 VF, else the first AMD GPU
    /// whose driver is amdgpu, else the first AMD GPU.
    explicit Facts(fs::path root = "/", std::string pci_address = "");

    /// The release of Linux, as uname -r prints it.
    [[nodiscard]] std::string kernel_release() const;
    /// The release in the name of the file behind libhsa-runtime64.so.1; empty if unknown.
    [[nodiscard]] std::string rocr_version() const;
    [[nodiscard]] VfFacts vf() const;
    [[nodiscard]] DriverFacts driver() const;
    /// Processes that use the VF through KFD or DRM, sorted by VRAM, largest first. Includes a
    /// running self-test. The VRAM of a process is the larger of KFD's and DRM's numbers, not their
    /// sum, because amdgpu's DRM number includes KFD's memory.
    [[nodiscard]] std::vector<ProcessFacts> processes() const;
    /// Pids of the processes that have /dev/kfd or the VF's render node open, sorted. A quiesce
    /// freezes these processes, except the agent. None if there are too many processes or open
    /// files to find all.
    [[nodiscard]] std::optional<std::vector<int>> users() const;

private:
    [[nodiscard]] fs::path device() const;
    /// KFD's ID of the GPU, as in the file name vram_ID; empty if KFD does not list the GPU.
    [[nodiscard]] std::string kfd_gpu_id(const std::string& pci_address) const;

    fs::path root_;
    std::string pci_address_;
};

/// The first line of a file, at most 256 bytes; empty if the file is unreadable.
std::string line_of(const fs::path& file);
/// Up to 8192 names in a directory, sorted; empty if the directory is unreadable.
std::vector<std::string> names_in(const fs::path& directory);
/// The pid in `text`; -1 if `text` is not a decimal number.
int pid_of(const std::string& text);

}  // namespace vgpu::agent
