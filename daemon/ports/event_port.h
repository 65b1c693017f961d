// SPDX-License-Identifier: MIT
//
// EventPort: reads the events of one PF core in order from its event ring, and counts the events
// that the PF core overwrote before they were read. One thread reads; any thread may call
// next_seq(). Implemented by adapters/event_ring; tests implement EventPort over a vector.
#pragma once

#include "pf-driver/uapi/vgpu_pf.h"

#include <cstdint>
#include <vector>

namespace vgpu::daemon {

struct EventBatch {
    std::vector<vgpu_pf_event> events;  ///< in order; at most EventPort::kMaxBatch
    std::uint64_t lost = 0;             ///< events overwritten before read() could copy them
};

class EventPort {
public:
    static constexpr std::size_t kMaxBatch = 4096;

    virtual ~EventPort() = default;

    /// Events since the last call, oldest first, at most kMaxBatch. Call again until the batch has
    /// no events. Never blocks. Also drains wait_fd().
    virtual EventBatch read() = 0;

    /// Number of the event that the PF core will write next; starts at 1. A changed number means
    /// that an event came.
    [[nodiscard]] virtual std::uint64_t next_seq() const = 0;

    /// Skips all events so far: the next read() starts at next_seq().
    virtual void skip_to_end() = 0;

    /// A descriptor that is readable when there are new events; -1 if there is no such descriptor.
    [[nodiscard]] virtual int wait_fd() const = 0;
};

}  // namespace vgpu::daemon
