// SPDX-License-Identifier: MIT
//
// Stands between a core and its ModelGpu from its making on: counts the memory that the core has
// for the device, and says before each access what the device has become. The device's services do
// the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "daemon/simulator/model_gpu.h"

namespace vgpu::test {

class PlatformWatch {
public:
    explicit PlatformWatch(simulator::ModelGpu& gpu)
        : gpu_(gpu), below_(gpu.os()->ops), handle_{*below_, this} {
        vgpu_os_ops& ops = handle_.ops;
        ops.config_read =
            &before<&vgpu_os_ops::config_read, std::uint32_t, std::uint32_t, std::uint32_t*>;
        ops.config_write = [](vgpu_os* os, std::uint32_t offset, std::uint32_t bytes,
                              std::uint32_t value) {
            if (offset == kPciCommand) self(os).is_bus_master_ = (value & kPciBusMaster) != 0;
            return before<&vgpu_os_ops::config_write>(os, offset, bytes, value);
        };
        ops.mmio_read = &before<&vgpu_os_ops::mmio_read, std::uint32_t, std::uint32_t*>;
        ops.mmio_write = &before<&vgpu_os_ops::mmio_write, std::uint32_t, std::uint32_t>;
        ops.vram_read = &before<&vgpu_os_ops::vram_read, std::uint64_t, void*, std::uint32_t>;
        ops.vram_write =
            &before<&vgpu_os_ops::vram_write, std::uint64_t, const void*, std::uint32_t>;
        ops.dma_alloc = [](vgpu_os* os, std::uint32_t bytes, vgpu_os_dma* dma) {
            const int error = self(os).below_->dma_alloc(os, bytes, dma);
            if (error == 0) self(os).memory_[dma->bus] = bytes;
            if (error == 0) self(os).largest_ = std::max(self(os).largest_, bytes);
            return error;
        };
        ops.dma_free = [](vgpu_os* os, vgpu_os_dma* dma) {
            self(os).memory_.erase(dma->bus);
            if (self(os).on_free) self(os).on_free();
            self(os).below_->dma_free(os, dma);
        };
        gpu.os()->ops = &ops;
    }
    PlatformWatch(const PlatformWatch&) = delete;
    PlatformWatch& operator=(const PlatformWatch&) = delete;
    ~PlatformWatch() { gpu_.os()->ops = below_; }

    std::function<void()> on_access;
    std::function<void()> on_free;

    /// Until the core says otherwise.
    [[nodiscard]] bool is_bus_master() const { return is_bus_master_; }
    /// Pieces of memory that the core has now, but for those from before the watch.
    [[nodiscard]] std::size_t pieces() const { return memory_.size(); }
    /// Bytes of the largest piece so far.
    [[nodiscard]] std::uint32_t largest_bytes() const { return largest_; }

private:
    static constexpr std::uint32_t kPciCommand = 4, kPciBusMaster = 4;

    struct Handle {
        vgpu_os_ops ops;
        PlatformWatch* self;
    };
    static PlatformWatch& self(vgpu_os* os) {
        const void* ops = os->ops;
        return *static_cast<const Handle*>(ops)->self;  // its first member
    }
    template <auto Service, typename... Arguments>
    static int before(vgpu_os* os, Arguments... arguments) {
        if (self(os).on_access) self(os).on_access();
        return (self(os).below_->*Service)(os, arguments...);
    }

    simulator::ModelGpu& gpu_;
    const vgpu_os_ops* below_;
    Handle handle_;
    std::map<std::uint64_t, std::uint32_t> memory_;
    std::uint32_t largest_ = 0;
    bool is_bus_master_ = true;
};

}  // namespace vgpu::test
