// SPDX-License-Identifier: MIT
#include "tests/contract/pf_platform/kernel_platform.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "pf-driver/core/resource/pf_vram.h"

namespace vgpu::test {

namespace {

namespace fs = std::filesystem;

/// udev, or devtmpfs, may take a moment to show a new node.
UniqueFd open_node(const std::string& path, int flags) {
    constexpr int kTries = 100;
    constexpr std::chrono::milliseconds kPause{50};
    for (int i = 0; i < kTries; ++i) {
        UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC));
        if (fd) return fd;
        std::this_thread::sleep_for(kPause);
    }
    throw std::runtime_error("cannot open " + path);
}

/// The PCI function behind a node, found when the first test starts.
const fs::path& function_of(const std::string& node) {
    static const fs::path path =
        fs::canonical(fs::path("/sys/class/vgpu") / fs::path(node).filename() / "device");
    return path;
}

}  // namespace

KernelPlatform::KernelPlatform(const std::string& node)
    : function_(function_of(node)), driver_(fs::canonical(fs::path(function_) / "driver")) {
    forget();
}

// A core that was bound while files of the one before were open has another number.
KernelPlatform::~KernelPlatform() {
    if (!is_restarted_) return;
    order("unbind");
    order("bind");
}

void KernelPlatform::order(const char* verb) const {
    std::ofstream file(driver_ + "/" + verb);
    file << fs::path(function_).filename().string() << std::flush;
    if (!file) throw std::runtime_error(std::string("the driver refuses to ") + verb);
}

void KernelPlatform::erase_checkpoint() const {
    constexpr std::size_t kBytes = PF_VRAM_RUN_TABLE + 2 * PF_VRAM_RUN_TABLE_BYTES;
    constexpr std::size_t kCopies[] = {
        PF_VRAM_CHECKPOINT, PF_VRAM_CHECKPOINT + PF_VRAM_CHECKPOINT_BYTES, PF_VRAM_RUN_TABLE,
        PF_VRAM_RUN_TABLE + PF_VRAM_RUN_TABLE_BYTES};
    const UniqueFd bar(open((function_ + "/resource0").c_str(), O_RDWR | O_CLOEXEC));
    void* start = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, bar.get(), 0);
    if (start == MAP_FAILED) throw std::runtime_error("cannot map the PF's VRAM");
    const Mapping mapping(start, kBytes);
    // without its first word a copy is none
    for (const std::size_t copy : kCopies) {
        volatile std::byte* magic = &mapping.bytes()[copy];
        for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i) magic[i] = std::byte{0};
    }
}

void KernelPlatform::forget() const {
    order("unbind");
    erase_checkpoint();
    order("bind");
}

void KernelPlatform::restart() {
    is_restarted_ = true;
    order("unbind");
    order("bind");
}

std::string KernelPlatform::node() const {
    for (const auto& entry : fs::directory_iterator(fs::path(function_) / "vgpu"))
        if (entry.path().filename().string().starts_with("vgpu-pf"))
            return "/dev/" + entry.path().filename().string();
    throw std::runtime_error("the PF has no node");
}

std::unique_ptr<UapiClient> KernelPlatform::connect(bool is_owner) {
    return std::make_unique<DeviceClient>(open_node(node(), is_owner ? O_RDWR : O_RDONLY));
}

}  // namespace vgpu::test
