// SPDX-License-Identifier: MIT
//
// EventRing implements EventPort over the shared memory ring of the uapi. The writer (the PF core)
// runs concurrently: an event is copied, then its sequence number is checked again, so a torn or
// overwritten event is never returned but counted as lost. The mapping is read-only; its sizes are
// checked once against the memory. One thread reads.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"

#include <memory>

namespace vgpu::daemon::adapters {

class EventRing final : public EventPort {
public:
    /// Maps the ring and skips to its end.
    /// PfLost if the sizes contradict each other or the size of `memory`. Takes both descriptors:
    /// keeps `wakeup`, and closes `memory` after mapping it.
    static Result<std::unique_ptr<EventRing>> map(const vgpu_pf_event_ring_info& info,
                                                  UniqueFd memory, UniqueFd wakeup);
    ~EventRing() override;
    EventRing(const EventRing&) = delete;
    EventRing& operator=(const EventRing&) = delete;

    EventBatch read() override;
    [[nodiscard]] std::uint64_t next_seq() const override;
    void skip_to_end() override { next_ = next_seq(); }
    [[nodiscard]] int wait_fd() const override { return wakeup_.get(); }

private:
    EventRing(const void* base, const vgpu_pf_event_ring_info& info, UniqueFd wakeup);
    void drain_wakeup() const;
    /// False if the slot holds another event, or one that is being written.
    [[nodiscard]] bool copy(std::uint64_t seq, vgpu_pf_event& to) const;

    const void* base_;
    vgpu_pf_event_ring_info info_;
    UniqueFd wakeup_;
    /// Sequence number of the next event to read.
    std::uint64_t next_ = 1;
};

}  // namespace vgpu::daemon::adapters
