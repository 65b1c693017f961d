// SPDX-License-Identifier: MIT
//
// Counters of the server, for statistics and tests. Written on the io thread (those that message
// DMA changes: on any thread), read from anywhere.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu::softgpu::vfio_user {

/// They only count up; they belong to a server, not to a client.
struct Counters {
    std::atomic<std::uint64_t> messages{0};            ///< well-formed messages handled
    std::atomic<std::uint64_t> error_replies{0};       ///< requests answered with an error
    std::atomic<std::uint64_t> dropped_posted{0};      ///< posted writes that failed
    std::atomic<std::uint64_t> malformed{0};           ///< clients closed for a broken stream
    std::atomic<std::uint64_t> refused_clients{0};     ///< clients that the server refused
    std::atomic<std::uint64_t> unexpected_replies{0};  ///< replies that no call waited for
    std::atomic<std::uint64_t> dma_messages{0};        ///< DMA_READ and DMA_WRITE sent
    /// Transfers that failed: refused, answered wrongly or too late, ended by a disconnect, or
    /// rejected because a budget was spent.
    std::atomic<std::uint64_t> dma_failures{0};
};

}  // namespace vgpu::softgpu::vfio_user
