// SPDX-License-Identifier: MIT
//
// Peer: the device's handle to an attached client. Any thread may use a Peer, even after the client
// is gone; calls then fail.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu {

/// Accesses client memory by messages, for ranges that are not mapped into softgpu. All methods
/// return errc{} on success. dma_read() and dma_write() block until the client has answered or the
/// transfer has failed. A caller may hold any lock and may be inside a Device method, because the
/// calling thread itself reads the client's reply if necessary. DmaLimits (vfio_user/device.h)
/// bounds the time for which a slow client can delay callers; a transfer that would take longer
/// ends with ETIMEDOUT. Some clients (QEMU) answer nothing while one of their own requests is
/// unanswered. If softgpu can answer that request only after the transfer, the transfer ends with
/// ETIMEDOUT, too.
class Peer {
public:
    virtual ~Peer() = default;
    [[nodiscard]] virtual std::errc dma_read(Iova address, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual std::errc dma_write(Iova address, std::span<const std::byte> data) = 0;
    /// Posts a write of at most 4 KiB, for interrupts. The call does not wait for the client, and a
    /// failure of the write at the client is not reported.
    [[nodiscard]] virtual std::errc dma_post(Iova address, std::span<const std::byte> data) = 0;
};

}  // namespace vgpu::softgpu
