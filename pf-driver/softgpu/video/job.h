// SPDX-License-Identifier: MIT
//
// An encode job (an IB) as this device sees it: a chain of frames {bytes, command, payload}
// (hw/video.h). The chain is followed to its end or to padding; nothing is coded or written. Jobs
// come from processes, so any dword may have any value.
#pragma once

#include <cstdint>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::video {

/// No result stops the ring.
enum class JobResult : std::uint8_t {
    Walked,
    Bad,    ///< too long, or a frame that does not fit
    Fault,  ///< a frame's head cannot be read; the port holds the fault
};

/// `address` is dword-aligned and in the port's VMID.
[[nodiscard]] JobResult walk_job(mem::Port& memory, GpuVa address, std::uint32_t dwords);

}  // namespace vgpu::softgpu::video
