// SPDX-License-Identifier: MIT
//
// Single values in guest memory as packets read and write them: in one piece where the memory has a
// host address and the value is aligned, because guests and waves watch these words.
#pragma once

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/sdma/engine.h"

namespace vgpu::softgpu::sdma {

/// False on a fault, which the port holds. Acquires: what the writer did before is seen after.
template <typename T> bool Engine::load_value(std::uint64_t address, T& value) {
    mem::Port& memory = port();
    if (address % sizeof(T) == 0) {
        const mem::Port::Hold hold(memory);
        if (std::byte* const host = memory.at(GpuVa{address}, mem::Access::Read)) {
            value = shared_at<T>(host).load(std::memory_order_acquire);
            return true;
        }
    }
    return !memory.has_fault() && memory.read(GpuVa{address}, bytes_of(value));
}

/// False on a fault. Releases: everything that the queue did before is seen with the value.
template <typename T> bool Engine::store_value(std::uint64_t address, T value) {
    mem::Port& memory = port();
    if (address % sizeof(T) == 0) {
        const mem::Port::Hold hold(memory);
        if (std::byte* const host = memory.at(GpuVa{address}, mem::Access::Write)) {
            shared_at<T>(host).store(value, std::memory_order_release);
            return true;
        }
    }
    return !memory.has_fault() && memory.write(GpuVa{address}, bytes_of(value));
}

}  // namespace vgpu::softgpu::sdma
