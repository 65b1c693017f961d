// SPDX-License-Identifier: MIT
//
// Facts of the guest's kernel about its VF: device, driver, VRAM, processes. Read from sysfs and
// procfs below a root. No call fails: missing facts are empty or 0. Sizes are bounded, because
// processes choose some of them. Runs in one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vgpu::agent {

namespace fs = std::filesystem;

/// Facts in /sys/module of the VF's driver.
struct DriverFacts {
    std::string name;  ///< empty if none is bound
    /// Empty if the driver is built in or has no MODULE_VERSION.
    std::string version, srcversion;
};

/// Facts from files of amdgpu (unique_id, mem_info_vram_*).
struct VfFacts {
    std::string pci_address;  ///< "0000:00:05.0"; empty if there is no VF
    std::string unique_id;    ///< hexadecimal
    std::string render_node;  ///< "/dev/dri/renderD128"
    /// As the driver reports it. "used" includes the kernel's share.
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
};

/// A process, which may have ended since.
struct ProcessFacts {
    int pid = 0;
    /// Up to 15 letters that the process chooses. encode() cleans them.
    std::string comm;
    std::uint64_t vram_bytes = 0;
    /// User queues of KFD; 0 if the process has only a render node open.
    std::uint32_t queues = 0;
};

/// Stateless, so each call sees the current driver. May take milliseconds, but never waits for the
/// GPU.
class Facts {
public:
    /// `pci_address`: the VF. If empty: the first Vega10 VF, else the first GPU with amdgpu, else
    /// the first AMD GPU.
    explicit Facts(fs::path root = "/", std::string pci_address = "");

    /// uname -r
    [[nodiscard]] std::string kernel_release() const;
    /// The release in the file name of libhsa-runtime64.so.1; empty if it is not installed.
    [[nodiscard]] std::string rocr_version() const;
    [[nodiscard]] VfFacts vf() const;
    [[nodiscard]] DriverFacts driver() const;
    /// Processes that use the VF through KFD or DRM, most VRAM first, including running self-tests.
    /// VRAM is the larger of KFD's and DRM's numbers, because amdgpu's DRM clients include KFD's
    /// memory.
    [[nodiscard]] std::vector<ProcessFacts> processes() const;
    /// Pids with /dev/kfd or the render node open, sorted. quiesce freezes all except the agent.
    [[nodiscard]] std::vector<int> users() const;

private:
    [[nodiscard]] fs::path device() const;
    /// The ID in the file name vram_ID; empty if KFD does not list the GPU.
    [[nodiscard]] std::string kfd_gpu_id(const std::string& pci_address) const;

    fs::path root_;
    std::string pci_address_;
};

/// The first line, at most 256 bytes; empty if the file is unreadable.
std::string line_of(const fs::path& file);
/// Names in a directory, sorted; empty if it is unreadable.
std::vector<std::string> names_in(const fs::path& directory);
/// -1 if `text` is not a decimal number.
int pid_of(const std::string& text);

}  // namespace vgpu::agent
