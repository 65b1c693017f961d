// SPDX-License-Identifier: MIT
//
// Counters of the server, for statistics and tests. The io thread counts what it serves, and any
// thread counts its message DMA. Any thread may read the counters.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu::softgpu::vfio_user {

/// The counters of one server, over all its clients. They only count up.
struct Counters {
    std::atomic<std::uint64_t> messages{0};        ///< complete messages received
    std::atomic<std::uint64_t> error_replies{0};   ///< failed requests, with or without reply
    std::atomic<std::uint64_t> dropped_posted{0};  ///< failed requests that wanted no reply
    std::atomic<std::uint64_t> malformed{0};       ///< clients closed for a broken stream
    /// Clients refused, or dropped because too many clients were still negotiating.
    std::atomic<std::uint64_t> refused_clients{0};
    std::atomic<std::uint64_t> unexpected_replies{0};  ///< replies that no call waited for
    std::atomic<std::uint64_t> dma_messages{0};        ///< DMA_READ and DMA_WRITE sent
    /// Transfers that failed: refused, answered wrongly or too late, ended by a disconnect, or
    /// rejected because a budget was spent.
    std::atomic<std::uint64_t> dma_failures{0};
};

}  // namespace vgpu::softgpu::vfio_user
