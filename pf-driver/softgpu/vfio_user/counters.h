// SPDX-License-Identifier: MIT
//
// Counters of the server, for statistics and tests. Any thread may count, and any thread may read
// the counters.
#pragma once

#include <atomic>
#include <cstdint>

namespace vgpu::softgpu::vfio_user {

/// The counters of one server, for all its clients together. A counter never decreases.
struct Counters {
    std::atomic<std::uint64_t> messages{0};  ///< messages from clients, replies included
    /// Failed requests, with or without kNoReply, and message headers with an impossible size.
    std::atomic<std::uint64_t> error_replies{0};
    std::atomic<std::uint64_t> suppressed_errors{
        0};  ///< the error_replies not sent due to kNoReply
    /// Clients disconnected because a message had an impossible size or type.
    std::atomic<std::uint64_t> malformed{0};
    /// Clients disconnected because the function had an attachment, the device refused them,
    /// softgpu had no descriptor left, or too many clients were negotiating. Excludes clients whose
    /// first message softgpu does not accept: such a message counts in error_replies only.
    std::atomic<std::uint64_t> refused_clients{0};
    std::atomic<std::uint64_t> unexpected_replies{0};  ///< replies for which no call waited
    /// softgpu's DMA_READ and DMA_WRITE requests, including posted writes and requests that could
    /// not be sent.
    std::atomic<std::uint64_t> dma_messages{0};
    /// DMA transfers that failed: the request could not be sent; the client refused, answered
    /// wrongly or too late, or disconnected; or a StallBudget of the client was spent. Excludes
    /// posted writes, and transfers that begin after the disconnection.
    std::atomic<std::uint64_t> dma_failures{0};
};

}  // namespace vgpu::softgpu::vfio_user
