// SPDX-License-Identifier: MIT
//
// Peer: the attached client of a PCI function as the device sees it. Any thread may use a Peer,
// also after the client is gone; the calls then fail.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "pf-driver/softgpu/base/ids.h"

namespace vgpu::softgpu {

/// Access to client memory by message, for ranges that came without a usable descriptor.
/// dma_read() and dma_write() block until the client has answered. Any thread may call them, also
/// inside a Device method, and with any lock held, because the calling thread reads the client's
/// reply itself if necessary. vfio_user::DmaLimits bounds the time that a slow client can cost; a
/// transfer beyond the limit ends with ETIMEDOUT. Some clients (QEMU) answer nothing while one of
/// their own requests is unanswered. If the answer to that request depends on the transfer, the
/// transfer ends with ETIMEDOUT, too.
class Peer {
public:
    virtual ~Peer() = default;
    [[nodiscard]] virtual std::errc dma_read(Iova address, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual std::errc dma_write(Iova address, std::span<const std::byte> data) = 0;
    /// Posts a write of at most a page, for interrupts. The call does not wait for the write, and
    /// nobody reports whether the write arrived.
    [[nodiscard]] virtual std::errc dma_post(Iova address, std::span<const std::byte> data) = 0;
};

}  // namespace vgpu::softgpu
