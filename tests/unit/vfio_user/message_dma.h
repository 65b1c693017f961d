// SPDX-License-Identifier: MIT
//
// Both ends of a message DMA: a transfer on a thread of its own, and the client's answer.
#pragma once

#include <future>
#include <memory>
#include <span>
#include <utility>

#include "pf-driver/softgpu/vfio_user/device.h"
#include "tests/unit/vfio_user/test_client.h"

namespace vgpu::softgpu::vfio_user::test {

inline Bytes numbers(std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; i++) bytes[i] = static_cast<std::byte>(i % 253);
    return bytes;
}

inline std::future<std::errc> read_later(std::shared_ptr<Peer> peer, std::uint64_t address,
                                         std::span<std::byte> out) {
    return std::async(std::launch::async, [peer = std::move(peer), address, out] {
        return peer->dma_read(Iova{address}, out);
    });
}

/// What QEMU 11.1 answers to DMA_READ: address, 64-bit count, data.
inline void answer_read(TestClient& client, const Incoming& request, const Bytes& data) {
    const auto access = request.as<DmaAccess>();
    client.reply(request.header, join(as_bytes(access), data));
}

}  // namespace vgpu::softgpu::vfio_user::test
