// SPDX-License-Identifier: MIT
//
// EventRing: implements EventPort over the uapi's ring in shared memory. The PF core may write
// during a read, so the sequence number is checked again after the copy; torn and overwritten
// events count as lost. The mapping is read-only, and sizes are checked once. Only one thread
// reads.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/event_port.h"
#include "daemon/ports/result.h"

#include <memory>

namespace vgpu::daemon::adapters {

class EventRing final : public EventPort {
public:
    /// Maps the ring and skips to its end. PfLost for sizes that contradict each other. Closes
    /// `memory`.
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
    /// False if the slot has another event or is being written.
    [[nodiscard]] bool copy(std::uint64_t seq, vgpu_pf_event& to) const;

    const void* base_;
    vgpu_pf_event_ring_info info_;
    UniqueFd wakeup_;
    std::uint64_t next_ = 1;
};

}  // namespace vgpu::daemon::adapters
