// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/memory.h"

#include "pf-driver/softgpu/mem/value.h"

namespace vgpu::softgpu::cp {

mem::Port& Memory::port(Vmid vmid) {
    std::unique_ptr<mem::Port>& port = ports_[raw(vmid) % CP_VMIDS];
    if (!port) port = services_.make_port(vmid);
    return *port;
}

/// Keeps the fault for the caller's report and leaves the port clean for the next access.
bool Memory::failed(Vmid vmid, mem::Port& port) {
    fault_ = port.fault();
    // the client of an indirect page failed: to the guest, there is no memory
    if (fault_.kind == mem::FaultKind::None) fault_.kind = mem::FaultKind::OutOfRange;
    fault_vmid_ = vmid;
    port.clear_fault();
    return false;
}

template <typename T> std::optional<T> Memory::load_value(Vmid vmid, GpuVa va) {
    mem::Port& port = this->port(vmid);
    port.clear_fault();
    T value{};
    if (mem::load_value(port, va, value)) return value;
    failed(vmid, port);
    return std::nullopt;
}

template <typename T> bool Memory::store_value(Vmid vmid, GpuVa va, T value) {
    mem::Port& port = this->port(vmid);
    port.clear_fault();
    return mem::store_value(port, va, value) || failed(vmid, port);
}

std::optional<std::uint32_t> Memory::load32(Vmid vmid, GpuVa va) {
    return load_value<std::uint32_t>(vmid, va);
}

std::optional<std::uint64_t> Memory::load64(Vmid vmid, GpuVa va) {
    return load_value<std::uint64_t>(vmid, va);
}

bool Memory::store16(Vmid vmid, GpuVa va, std::uint16_t value) {
    return store_value(vmid, va, value);
}

bool Memory::store32(Vmid vmid, GpuVa va, std::uint32_t value) {
    return store_value(vmid, va, value);
}

bool Memory::store64(Vmid vmid, GpuVa va, std::uint64_t value) {
    return store_value(vmid, va, value);
}

bool Memory::read(Vmid vmid, GpuVa va, std::span<std::byte> out) {
    mem::Port& port = this->port(vmid);
    port.clear_fault();
    return port.read(va, out) || failed(vmid, port);
}

bool Memory::write(Vmid vmid, GpuVa va, std::span<const std::byte> data) {
    mem::Port& port = this->port(vmid);
    port.clear_fault();
    return port.write(va, data) || failed(vmid, port);
}

mem::AtomicResult Memory::atomic(Vmid vmid, const mem::AtomicRequest& request) {
    mem::Port& port = this->port(vmid);
    port.clear_fault();
    const mem::AtomicResult result = mem::perform_atomic(port, request);
    if (result.status == mem::AtomicStatus::Fault) failed(vmid, port);
    return result;
}

}  // namespace vgpu::softgpu::cp
