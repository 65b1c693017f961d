// SPDX-License-Identifier: MIT
//
// Single values in guest memory as packets read and write them. An access is atomic if the memory
// has a host address and the value is aligned, because guests and waves poll these values. Waves do
// not use these functions.
#pragma once

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::mem {

/// Loads a value; fails as Port::read() does. An atomic load has acquire order: the caller then
/// sees everything that the writer of the value did before.
template <typename T> [[nodiscard]] bool load_value(Port& port, GpuVa va, T& value) {
    if (raw(va) % sizeof(T) == 0) {
        const Port::Hold hold(port);
        if (std::byte* const host = port.at(va, Access::Read)) {
            value = shared_at<T>(host).load(std::memory_order_acquire);
            return true;
        }
    }
    return !port.has_fault() && port.read(va, bytes_of(value));
}

/// Stores a value; fails as Port::write() does. An atomic store has release order: a reader of the
/// value sees everything that the caller did before.
template <typename T> [[nodiscard]] bool store_value(Port& port, GpuVa va, T value) {
    if (raw(va) % sizeof(T) == 0) {
        const Port::Hold hold(port);
        if (std::byte* const host = port.at(va, Access::Write)) {
            shared_at<T>(host).store(value, std::memory_order_release);
            return true;
        }
    }
    return !port.has_fault() && port.write(va, bytes_of(value));
}

}  // namespace vgpu::softgpu::mem
