// SPDX-License-Identifier: MIT
//
// Memory: the packet processor's access to the VF's address spaces, with one port per VMID. It
// reads and writes blocks of bytes, and values of 32 and 64 bits. The guest's CPU and copy engines
// use the same values, so an access to a value is atomic if the value is aligned and its page has a
// host address. fault() returns the last fault. Used with the VF's lock held.
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
#include "pf-driver/softgpu/mem/value.h"

namespace vgpu::softgpu::cp {

/// Each call is one access. An access that faults may have done a part, up to a page border.
class Memory {
public:
    /// `services` makes the port of a VMID when the VMID is first used.
    explicit Memory(Services& services) : services_(services) {}

    /// On a fault, loads return nullopt and stores false; fault() then returns the fault. Loads
    /// acquire and stores release if the value is aligned and has a host address.
    template <typename T> [[nodiscard]] std::optional<T> load(Vmid vmid, GpuVa va) {
        T value{};
        if (mem::load_value(clean_port(vmid), va, value)) return value;
        record_fault(vmid);
        return std::nullopt;
    }
    template <typename T> [[nodiscard]] bool store(Vmid vmid, GpuVa va, T value) {
        return mem::store_value(clean_port(vmid), va, value) || record_fault(vmid);
    }
    [[nodiscard]] bool read(Vmid vmid, GpuVa va, std::span<std::byte> out);
    [[nodiscard]] bool write(Vmid vmid, GpuVa va, std::span<const std::byte> data);
    /// Like mem::perform_atomic(), but fault() of this Memory, not of the port, returns the fault.
    [[nodiscard]] mem::AtomicResult atomic(Vmid vmid, const mem::AtomicRequest& request);

    /// The fault of the last access that failed.
    [[nodiscard]] const mem::Fault& fault() const { return fault_; }
    [[nodiscard]] Vmid fault_vmid() const { return fault_vmid_; }

    /// The port of a VMID, which this object owns. For the packet processor only; waves have other
    /// ports.
    [[nodiscard]] mem::Port& port(Vmid vmid);

private:
    [[nodiscard]] mem::Port& clean_port(Vmid vmid);
    /// Keeps the fault of the VMID's port for fault(). Returns false.
    bool record_fault(Vmid vmid);

    Services& services_;
    std::array<std::unique_ptr<mem::Port>, CP_VMIDS> ports_;
    mem::Fault fault_;
    Vmid fault_vmid_{};
};

}  // namespace vgpu::softgpu::cp
