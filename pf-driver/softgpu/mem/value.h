// SPDX-License-Identifier: MIT
//
// Loads and stores of single values in guest memory, for CP, SDMA and video. Guests and waves poll
// such values. So an access is atomic if the memory has a host address (Port::at()) and the value
// is aligned. Otherwise the access is a copy (Port::read(), Port::write()).
#pragma once

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::mem {

/// Loads a value. False on a failure, as for Port::read(). An atomic load has acquire order.
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

/// Stores a value. False on a failure, as for Port::write(). An atomic store has release order.
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
