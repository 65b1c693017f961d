// SPDX-License-Identifier: MIT
//
// The port of vgpu-peer-engine-flat, which the compiler finds before the device's own header. Its
// at() is an addition, without a TLB. The same workloads on both ports show what translation costs
// the waves. Only transfers that cross a page still translate. port.cpp is compiled with
// Port=TranslatingPort and stays the same.
#pragma once

#ifdef Port
#include_next "pf-driver/softgpu/mem/port.h"
#else
#include "pf-driver/softgpu/base/ids.h"

#define Port TranslatingPort
#include_next "pf-driver/softgpu/mem/port.h"
#undef Port

namespace vgpu::softgpu::mem {

class Port : public TranslatingPort {
public:
    using TranslatingPort::TranslatingPort;

    /// Start of the flat memory, as waves address it and in this process.
    static constexpr std::uint64_t kFlatBase = 0x7f00'0000'0000;
    static inline std::byte* flat_memory = nullptr;

    [[nodiscard]] std::byte* at(GpuVa va, Access) { return flat_memory + (raw(va) - kFlatBase); }
};

}  // namespace vgpu::softgpu::mem
#endif
