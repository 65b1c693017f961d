// SPDX-License-Identifier: MIT
//
// Memory: the VF's address spaces as the command processor itself accesses them, with one port per
// VMID. Waves do not use Memory; they have other ports (WorkerContext in core.h). Memory reads and
// writes blocks of bytes and single values. The guest's CPU and the SDMA engines access the same
// values, so an access to a value is atomic if the value is aligned and its page has a host
// address. Used with the VF's lock held.
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

/// Each call is one access. An access that faults may have copied the bytes before the page that
/// faults.
class Memory {
public:
    /// `services` makes the port of a VMID when the VMID is first used.
    explicit Memory(Services& services) : services_(services) {}

    /// On a fault, load() returns nullopt, and store(), read() and write() return false; fault()
    /// then returns the fault. An atomic load has acquire order, an atomic store release order.
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

    /// The fault of the last access that failed, and the VMID of that access.
    [[nodiscard]] const mem::Fault& fault() const { return fault_; }
    [[nodiscard]] Vmid fault_vmid() const { return fault_vmid_; }

    /// The port of a VMID. This object owns the port.
    [[nodiscard]] mem::Port& port(Vmid vmid);

private:
    /// The port of a VMID; clears the fault of an earlier access.
    [[nodiscard]] mem::Port& clean_port(Vmid vmid);
    /// Copies the fault of the VMID's port to fault_. Returns false, for the caller to return.
    bool record_fault(Vmid vmid);

    Services& services_;
    std::array<std::unique_ptr<mem::Port>, CP_VMIDS> ports_;
    mem::Fault fault_;
    Vmid fault_vmid_{};
};

}  // namespace vgpu::softgpu::cp
