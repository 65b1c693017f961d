// SPDX-License-Identifier: MIT
//
// Memory: the packet processor's access to the VF's address spaces: one port per VMID, values of 32
// and 64 bits that are read and written whole (atomically where the page has a host address,
// because a guest's CPU and other engines read them), and blocks of bytes. fault() keeps the last
// fault. Used with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pf-driver/hw/pm4.h"
#include "pf-driver/softgpu/cp/services.h"
#include "pf-driver/softgpu/mem/atomic.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::cp {

/// Each call is one access. On a fault it may have done a part, up to a page border.
class Memory {
public:
    /// Ports are made by `services` when a VMID is first used.
    explicit Memory(Services& services) : services_(services) {}

    /// On a fault nullopt, or false for stores; fault() holds the reason. Loads acquire and stores
    /// release if the value is aligned and has a host address.
    [[nodiscard]] std::optional<std::uint32_t> load32(Vmid vmid, GpuVa va);
    [[nodiscard]] std::optional<std::uint64_t> load64(Vmid vmid, GpuVa va);
    [[nodiscard]] bool store16(Vmid vmid, GpuVa va, std::uint16_t value);
    [[nodiscard]] bool store32(Vmid vmid, GpuVa va, std::uint32_t value);
    [[nodiscard]] bool store64(Vmid vmid, GpuVa va, std::uint64_t value);
    [[nodiscard]] bool read(Vmid vmid, GpuVa va, std::span<std::byte> out);
    [[nodiscard]] bool write(Vmid vmid, GpuVa va, std::span<const std::byte> data);
    /// Like mem::perform_atomic(), but fault() keeps the fault.
    [[nodiscard]] mem::AtomicResult atomic(Vmid vmid, const mem::AtomicRequest& request);

    /// The fault of the access that failed last.
    [[nodiscard]] const mem::Fault& fault() const { return fault_; }
    [[nodiscard]] Vmid fault_vmid() const { return fault_vmid_; }

    /// The port of a VMID, owned by this object. For the packet processor only: waves have ports of
    /// their own.
    [[nodiscard]] mem::Port& port(Vmid vmid);

private:
    template <typename T> std::optional<T> load_value(Vmid vmid, GpuVa va);
    template <typename T> bool store_value(Vmid vmid, GpuVa va, T value);
    bool failed(Vmid vmid, mem::Port& port);

    Services& services_;
    std::array<std::unique_ptr<mem::Port>, CP_VMIDS> ports_;
    mem::Fault fault_;
    Vmid fault_vmid_{};
};

}  // namespace vgpu::softgpu::cp
