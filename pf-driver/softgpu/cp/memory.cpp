// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/cp/memory.h"

namespace vgpu::softgpu::cp {

mem::Port& Memory::port(Vmid vmid) {
    std::unique_ptr<mem::Port>& port = ports_[raw(vmid) % CP_VMIDS];
    if (!port) port = services_.make_port(vmid);
    return *port;
}

mem::Port& Memory::clean_port(Vmid vmid) {
    mem::Port& port = this->port(vmid);
    port.clear_fault();
    return port;
}

/// Also clears the port's fault.
bool Memory::record_fault(Vmid vmid) {
    fault_ = port(vmid).fault();
    // The port records no fault if a DMA message to the vfio-user client fails.
    if (fault_.kind == mem::FaultKind::None) fault_.kind = mem::FaultKind::OutOfRange;
    fault_vmid_ = vmid;
    port(vmid).clear_fault();
    return false;
}

bool Memory::read(Vmid vmid, GpuVa va, std::span<std::byte> out) {
    return clean_port(vmid).read(va, out) || record_fault(vmid);
}

bool Memory::write(Vmid vmid, GpuVa va, std::span<const std::byte> data) {
    return clean_port(vmid).write(va, data) || record_fault(vmid);
}

mem::AtomicResult Memory::atomic(Vmid vmid, const mem::AtomicRequest& request) {
    const mem::AtomicResult result = mem::perform_atomic(clean_port(vmid), request);
    if (result.status == mem::AtomicStatus::Fault) record_fault(vmid);
    return result;
}

}  // namespace vgpu::softgpu::cp
