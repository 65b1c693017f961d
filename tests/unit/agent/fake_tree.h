// SPDX-License-Identifier: MIT
//
// FakeTree: a directory that looks like the /sys, /proc and /dev of a guest, removed at the end.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace vgpu::agent::testing {

namespace fs = std::filesystem;

class FakeTree {
public:
    FakeTree() {
        std::string name = (fs::temp_directory_path() / "vgpu-agent-XXXXXX").string();
        root = ::mkdtemp(name.data());
    }
    ~FakeTree() { fs::remove_all(root); }
    FakeTree(const FakeTree&) = delete;
    FakeTree& operator=(const FakeTree&) = delete;

    void file(const std::string& path, const std::string& text) const {
        fs::create_directories((root / path).parent_path());
        std::ofstream(root / path) << text;
    }
    void link(const std::string& path, const std::string& target) const {
        fs::create_directories((root / path).parent_path());
        fs::create_symlink(target, root / path);
    }

    /// A Vega10 VF with amdgpu, and pid 412 that has 3 MiB and two queues on it.
    void add_vf() const {
        const std::string device = "sys/bus/pci/devices/0000:00:05.0/";
        file(device + "vendor", "0x1002\n");
        file(device + "device", "0x686c\n");
        file(device + "class", "0x030000\n");
        file(device + "unique_id", "1d2c3b4a59687706\n");
        file(device + "mem_info_vram_total", "536870912\n");
        file(device + "mem_info_vram_used", "16777216\n");
        file(device + "drm/renderD128/dev", "226:128\n");
        link(device + "driver", "../../../../bus/pci/drivers/amdgpu");
        file("sys/module/amdgpu/srcversion", "ABCDEF\n");
        const std::string kfd = "sys/class/kfd/kfd/";
        file(kfd + "topology/nodes/0/gpu_id", "0\n");
        file(kfd + "topology/nodes/1/gpu_id", "51234\n");
        file(kfd + "topology/nodes/1/properties", "simd_count 32\nlocation_id 40\ndomain 0\n");
        file(kfd + "proc/412/vram_51234", "3145728\n");
        file(kfd + "proc/412/queues/0/gpuid", "51234\n");
        file(kfd + "proc/412/queues/1/gpuid", "51234\n");
        file(kfd + "proc/412/queues/2/gpuid", "999\n");
        file("proc/412/comm", "matmul\n");
        file("proc/sys/kernel/osrelease", "6.12.57+deb13-amd64\n");
    }

    fs::path root;
};

}  // namespace vgpu::agent::testing
