// SPDX-License-Identifier: MIT
#include "daemon/adapters/event_ring.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

namespace vgpu::daemon::adapters {

namespace {

Result<> check(const vgpu_pf_event_ring_info& info, int memory) {
    struct stat file {};
    if (::fstat(memory, &file) != 0) return fail_errno(ErrorId::PfLost, errno, "event ring");
    const std::uint64_t event_bytes = std::uint64_t{info.entries} * sizeof(vgpu_pf_event);
    // Check all sizes, because the PF core may be of another version, or hostile.
    const bool is_sound = std::has_single_bit(info.entries) && info.entries <= (1u << 20) &&
                          info.events_offset >= sizeof(vgpu_pf_event_ring_head) &&
                          info.events_offset % alignof(vgpu_pf_event) == 0 &&
                          info.bytes <= (1u << 30) && info.events_offset <= info.bytes &&
                          event_bytes <= info.bytes - info.events_offset;
    // a device has no size; its mmap() checks the range
    const bool is_within_file =
        S_ISCHR(file.st_mode) ||
        (file.st_size >= 0 && info.bytes <= static_cast<std::uint64_t>(file.st_size));
    if (!is_sound || !is_within_file)
        return fail(ErrorId::PfLost, "the event ring's sizes contradict each other");
    return {};
}

/// Loads a sequence number. The writer stores it with release order, and the mapping is shared.
std::uint64_t load_acquire(const std::uint64_t& shared) {
    return __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
}

}  // namespace

Result<std::unique_ptr<EventRing>> EventRing::map(const vgpu_pf_event_ring_info& info,
                                                  UniqueFd memory, UniqueFd wakeup) {
    TRY_VOID(check(info, memory.get()));
    void* base = ::mmap(nullptr, info.bytes, PROT_READ, MAP_SHARED, memory.get(), 0);
    if (base == MAP_FAILED) return fail_errno(ErrorId::PfLost, errno, "cannot map the event ring");
    std::unique_ptr<EventRing> ring(new EventRing(base, info, std::move(wakeup)));
    ring->skip_to_end();
    return ring;
}

EventRing::EventRing(const void* base, const vgpu_pf_event_ring_info& info, UniqueFd wakeup)
    : base_(base), info_(info), wakeup_(std::move(wakeup)) {}

EventRing::~EventRing() {
    ::munmap(const_cast<void*>(base_), info_.bytes);
}

std::uint64_t EventRing::next_seq() const {
    const auto* head = static_cast<const vgpu_pf_event_ring_head*>(base_);
    return std::max<std::uint64_t>(1, load_acquire(head->next_seq));
}

bool EventRing::copy(std::uint64_t seq, vgpu_pf_event& to) const {
    const auto* bytes = static_cast<const char*>(base_) + info_.events_offset;
    const void* slot = bytes + ((seq - 1) & (info_.entries - 1)) * sizeof(vgpu_pf_event);
    const auto* event = static_cast<const vgpu_pf_event*>(slot);
    if (load_acquire(event->seq) != seq) return false;
    std::memcpy(&to, event, sizeof to);
    // As in a sequence lock: the copy must be complete before the number is checked again.
    std::atomic_thread_fence(std::memory_order_acquire);
    return load_acquire(event->seq) == seq;
}

/// Resets wakeup_, so that only a later event makes wakeup_ readable. Polls before the read,
/// because a read of a blocking descriptor without data would wait.
void EventRing::drain_wakeup() const {
    pollfd waited{.fd = wakeup_.get(), .events = POLLIN, .revents = 0};
    std::uint64_t count = 0;
    if (::poll(&waited, 1, 0) == 1 && ::read(wakeup_.get(), &count, sizeof count) < 0 &&
        errno == EINTR)
        drain_wakeup();
}

EventBatch EventRing::read() {
    drain_wakeup();
    EventBatch batch;
    const std::uint64_t end = next_seq();
    // An end below next_ means that the PF core has restarted.
    if (end < next_) next_ = end;
    if (end - next_ > info_.entries) {
        batch.lost = end - next_ - info_.entries;
        next_ = end - info_.entries;
    }
    for (; next_ < end && batch.events.size() < kMaxBatch; ++next_) {
        vgpu_pf_event event{};
        if (copy(next_, event))
            batch.events.push_back(event);
        else
            ++batch.lost;
    }
    return batch;
}

}  // namespace vgpu::daemon::adapters
