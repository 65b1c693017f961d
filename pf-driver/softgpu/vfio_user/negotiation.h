// SPDX-License-Identifier: MIT
//
// agree(): the answer to VERSION, with which a client proposes a version and capabilities. The
// reply names only capabilities that the client named, and is never longer than the proposal: QEMU
// reads the reply into the buffer of its proposal. The JSON is untrusted; kMaxVersionData bounds
// its size.
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
    std::uint32_t max_transfer = kMaxTransfer;  ///< data bytes of one DMA message
    /// JSON of the reply; empty if the client sent no JSON.
    std::string capabilities{};
};

/// `body` is the payload of VERSION. EPROTONOSUPPORT: another major version. EINVAL: the version
/// data is too long or not a JSON object, or a capability is of the wrong kind or too small.
[[nodiscard]] Result<Agreement> agree(std::span<const std::byte> body);

}  // namespace vgpu::softgpu::vfio_user
