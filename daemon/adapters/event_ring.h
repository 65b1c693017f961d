// SPDX-License-Identifier: MIT
//
// EventRing: implements EventPort: reads events from the ring that the PF core writes in shared
// memory. The PF core may write during a read, so read() checks the sequence number of an event
// again after the copy. Events that were overwritten before or during the copy count as lost. The
// mapping is read-only, and map() checks the sizes once. Only one thread calls read().
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"

#include <memory>

namespace vgpu::daemon::adapters {

class EventRing final : public EventPort {
public:
    /// Maps the ring in `memory`, and skips the events that it contains. PfLost if the sizes
    /// contradict each other, or if the ring cannot be mapped. Closes `memory`. `wakeup` becomes
    /// wait_fd().
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
    /// Copies the event with the number `seq`. False if its slot has another event, or if the PF
    /// core is writing the slot.
    [[nodiscard]] bool copy(std::uint64_t seq, vgpu_pf_event& to) const;

    const void* base_;
    vgpu_pf_event_ring_info info_;
    UniqueFd wakeup_;
    std::uint64_t next_ = 1;  ///< number of the next event to read
};

}  // namespace vgpu::daemon::adapters
