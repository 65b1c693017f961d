// SPDX-License-Identifier: MIT
//
// EventPort reads the event ring of one PF core: events in order of their sequence number, and the
// number of events that were overwritten before they could be read. One reader, one thread; other
// threads may call next_seq().
// Implemented by adapters/event_ring over the shared memory; tests implement it over a vector.
#pragma once

#include "pf-driver/uapi/vgpu_pf.h"

#include <cstdint>
#include <vector>

namespace vgpu::daemon {

/// Result of one call of EventPort::read().
struct EventBatch {
    std::vector<vgpu_pf_event> events;  ///< in order; at most EventPort::kMaxBatch
    std::uint64_t lost = 0;             ///< events overwritten before `events`
};

class EventPort {
public:
    static constexpr std::size_t kMaxBatch = 4096;

    virtual ~EventPort() = default;

    /// Events since the last call; never blocks.
    /// Oldest first, at most kMaxBatch; call again until it is empty. Also drains wait_fd(), so a
    /// later event makes it readable again.
    virtual EventBatch read() = 0;

    /// Sequence number of the next event the PF core will write.
    /// Starts at 1. If it differs before and after another read, an event came in between.
    [[nodiscard]] virtual std::uint64_t next_seq() const = 0;

    /// Skips all events written so far: the next read() starts at next_seq().
    virtual void skip_to_end() = 0;

    /// Readable when there are new events; -1 if there is nothing to poll.
    [[nodiscard]] virtual int wait_fd() const = 0;
};

}  // namespace vgpu::daemon
