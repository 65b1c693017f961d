// SPDX-License-Identifier: MIT
//
// Facts of the guest's kernel about its VF: device, driver, VRAM, processes; from sysfs and procfs
// below a root. No call fails: missing facts are empty or 0. Sizes are bounded, because processes
// choose some of them. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vgpu::agent {

namespace fs = std::filesystem;

/// /sys/module of the VF's driver.
struct DriverFacts {
    std::string name;  ///< empty if none is bound
    /// Empty if the driver is built in or has no MODULE_VERSION.
    std::string version, srcversion;
};

/// Files of amdgpu (unique_id, mem_info_vram_*).
struct VfFacts {
    std::string pci_address;  ///< "0000:00:05.0"; empty if there is no VF
    std::string unique_id;    ///< hexadecimal
    std::string render_node;  ///< "/dev/dri/renderD128"
    /// By the driver; "used" includes the kernel's share.
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
};

/// May have ended since.
struct ProcessFacts {
    int pid = 0;
    /// 15 letters that the process chooses; encode() cleans them.
    std::string comm;
    std::uint64_t vram_bytes = 0;
    /// User queues of KFD; 0 with only a render node.
    std::uint32_t queues = 0;
};

/// Stateless: each call sees the current driver. May take milliseconds; never waits for the GPU.
class Facts {
public:
    /// `pci_address` selects a VF; empty: the first one.
    explicit Facts(fs::path root = "/", std::string pci_address = "");

    /// uname -r
    [[nodiscard]] std::string kernel_release() const;
    /// From the file name of libhsa-runtime64.so.1; empty if not installed.
    [[nodiscard]] std::string rocr_version() const;
    [[nodiscard]] VfFacts vf() const;
    [[nodiscard]] DriverFacts driver() const;
    /// By KFD or DRM, most VRAM first, running self-tests included. VRAM is the larger number,
    /// because amdgpu's DRM clients include KFD's memory.
    [[nodiscard]] std::vector<ProcessFacts> processes() const;
    /// Sorted pids with /dev/kfd or the render node open; quiesce freezes all of them.
    [[nodiscard]] std::vector<int> users() const;

private:
    [[nodiscard]] fs::path device() const;
    /// As in vram_ID; empty if KFD does not list the GPU.
    [[nodiscard]] std::string kfd_gpu_id(const std::string& pci_address) const;

    fs::path root_;
    std::string wanted_;
};

/// At most 256 bytes; empty if unreadable.
std::string line_of(const fs::path& file);
/// Sorted; empty if unreadable.
std::vector<std::string> names_in(const fs::path& directory);
/// -1 if `text` is not a decimal number.
int pid_of(const std::string& text);

}  // namespace vgpu::agent
