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

struct DriverFacts {
    std::string name;  ///< of the driver that is bound; empty if none is
    std::string version, srcversion;
};

struct VfFacts {
    std::string pci_address;  ///< "0000:00:05.0"; empty if there is no VF
    std::string unique_id;    ///< hexadecimal
    std::string render_node;  ///< "/dev/dri/renderD128"
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
};

struct ProcessFacts {
    int pid = 0;
    std::string comm;
    std::uint64_t vram_bytes = 0;
    std::uint32_t queues = 0;
};

class Facts {
public:
    /// `pci_address`: which VF, if there are several; empty: the first one.
    explicit Facts(fs::path root = "/", std::string pci_address = "");

    [[nodiscard]] std::string kernel_release() const;
    /// Version in the file name of libhsa-runtime64.so.1; empty if it is not installed.
    [[nodiscard]] std::string rocr_version() const;
    [[nodiscard]] VfFacts vf() const;
    [[nodiscard]] DriverFacts driver() const;
    /// Those that use the VF, through KFD or DRM, most VRAM first.
    [[nodiscard]] std::vector<ProcessFacts> processes() const;
    /// Pids that have /dev/kfd or the render node open.
    [[nodiscard]] std::vector<int> users() const;

private:
    [[nodiscard]] fs::path device() const;
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
