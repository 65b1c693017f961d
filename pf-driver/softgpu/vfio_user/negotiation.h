// SPDX-License-Identifier: MIT
//
// agree(): decides the answer to VERSION, in which a client proposes a version and capabilities.
// The reply contains only capabilities that the client has proposed, and is never longer than the
// proposal, because QEMU receives the reply in the buffer of its proposal. The client's JSON is
// untrusted; kMaxVersionData limits its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/vfio_user/protocol.h"

namespace vgpu::softgpu::vfio_user {

/// The contents of VERSION's reply.
struct Agreement {
    Version version;
    std::uint32_t max_transfer = kMaxTransfer;  ///< maximum number of data bytes in one DMA message
    /// The whole JSON of the reply; empty if the client sent none.
    std::string json{};
};

/// `body` is the payload of VERSION, at least a Version. EPROTONOSUPPORT: another major version.
/// EINVAL: the JSON is too long, too deep, not an object or has no NUL at its end, or a capability
/// has the wrong type or a value that softgpu does not support.
[[nodiscard]] Result<Agreement> agree(std::span<const std::byte> body);

}  // namespace vgpu::softgpu::vfio_user
