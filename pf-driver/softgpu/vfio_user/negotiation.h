// SPDX-License-Identifier: MIT
//
// VERSION: the client's proposal and the agreement of both sides. The reply names only capabilities
// that the client named, and is never longer than the proposal: QEMU reads the reply into the
// buffer of its proposal. The JSON is untrusted; kMaxVersionData bounds its size.
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
    std::uint32_t max_transfer = kMaxTransfer;  ///< most data of a DMA message of the server
    std::string capabilities{};                 ///< JSON of the reply; empty: none was proposed
};

/// `body` is the payload of VERSION. EPROTONOSUPPORT: another major version; EINVAL: the
/// capabilities are no JSON object or have values of the wrong kind, or too small ones.
[[nodiscard]] Result<Agreement> agree(std::span<const std::byte> body);

}  // namespace vgpu::softgpu::vfio_user
