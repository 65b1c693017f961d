// SPDX-License-Identifier: MIT
//
// Single values in guest memory as packets read and write them: in one piece where the memory has a
// host address and the value is aligned, because guests and waves watch these words.
#pragma once

#include "pf-driver/softgpu/base/bits.h"
#include "pf-driver/softgpu/sdma/engine.h"

namespace vgpu::softgpu::sdma {

template <typename T> bool Engine::load_value(std::uint64_t address, T& value) {
    mem::Port& memory = port();
    std::byte* const host =
        address % sizeof(T) == 0 ? memory.at(GpuVa{address}, mem::Access::Read) : nullptr;
    if (host == nullptr) return !memory.has_fault() && memory.read(GpuVa{address}, bytes_of(value));
    value = shared_at<T>(host).load(std::memory_order_acquire);
    return true;
}

template <typename T> bool Engine::store_value(std::uint64_t address, T value) {
    mem::Port& memory = port();
    std::byte* const host =
        address % sizeof(T) == 0 ? memory.at(GpuVa{address}, mem::Access::Write) : nullptr;
    if (host == nullptr)
        return !memory.has_fault() && memory.write(GpuVa{address}, bytes_of(value));
    shared_at<T>(host).store(value, std::memory_order_release);
    return true;
}

}  // namespace vgpu::softgpu::sdma
