// SPDX-License-Identifier: MIT
//
// ClientMemory: sends DMA_READ and DMA_WRITE to one client and waits for the replies. Any thread
// may call it, including the io thread inside a Device method. At most one of the waiting threads
// reads the channel (Channel::Reader) and passes each reply to the call with the same message id;
// the other waiting threads sleep. So a reply arrives even while the io thread waits for a lock
// that a waiting thread holds, unless the channel's queue is full (channel.h).
//
// A transfer fails if its request cannot be sent, or if the client refuses, answers wrongly,
// answers too late or disconnects. The time for which callers may wait for the client is limited
// per message (DmaLimits::answer, device.h) and by a budget for all messages together
// (DmaLimits::stalls). Once the budget is used up, transfers fail at once. The first part of each
// wait, the grace, is free, because most clients answer within it. A second budget
// (DmaLimits::blocking) is charged for the whole of a wait that begins while the io thread or a
// park is already delayed (BusySince), because such a wait may delay all clients.
//
// A client such as QEMU cannot answer while one of its own requests is unanswered. If softgpu needs
// a lock to answer that request, and the caller of the transfer holds the lock, the transfer fails
// when its time is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pf-driver/softgpu/base/busy_since.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/vfio_user/channel.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/stall_budget.h"

namespace vgpu::softgpu::vfio_user {

/// The session and the device share a ClientMemory; the device uses it as a Peer. After close(),
/// all calls fail at once.
class ClientMemory final : public Peer, public Channel::ReplySink {
public:
    ClientMemory(std::shared_ptr<Channel> channel, std::shared_ptr<Counters> counters,
                 std::shared_ptr<const BusySince> work, std::shared_ptr<const BusySince> park,
                 DmaLimits limits);

    std::errc dma_read(Iova address, std::span<std::byte> out) override;
    std::errc dma_write(Iova address, std::span<const std::byte> data) override;
    std::errc dma_post(Iova address, std::span<const std::byte> data) override;

    /// Sets the maximum of data bytes per message, as agreed in VERSION. Larger transfers are split
    /// into several messages.
    void set_max_transfer(std::uint32_t bytes);
    /// Completes the call that waits for the reply. A reply for which no call waits is only
    /// counted. Called by the thread that reads the channel, with the channel's input lock held.
    void handle_reply(const Message& reply) override;
    /// Call when the client is gone. Calls in progress and all later calls fail with not_connected.
    void close();

private:
    using Time = StallBudget::Time;
    using Lock = std::unique_lock<PiMutex>;

    enum class State : std::uint8_t { Waiting, Done };
    /// A message that waits for its reply; lives on the stack of the waiting thread.
    struct Call {
        std::uint16_t id = 0;
        Command command{};
        std::uint64_t count = 0;     // data bytes
        std::span<std::byte> out;    // empty for a write
        bool blocks_others = false;  // true: the wait is charged to blocking_
        State state = State::Waiting;
        std::errc result{};
        /// True once the channel's queue is full: this call then lets the io thread read.
        bool leaves_reading = false;
    };

    [[nodiscard]] std::errc transfer(Command command, Iova address, std::span<std::byte> out,
                                     std::span<const std::byte> data);
    /// Adds the call to calls_. timed_out if a budget that the call needs is spent; not_connected
    /// after close().
    [[nodiscard]] std::errc begin(Call& call);
    /// Waits for the reply, and charges the budgets. Returns the result of the call.
    [[nodiscard]] std::errc await(Call& call, Lock& lock);
    /// Reads the channel, or sleeps if another thread reads it or if call.leaves_reading is true.
    /// Returns when the call is done or at `deadline`, and may return earlier.
    void wait_until(Time deadline, Call& call, Lock& lock);
    [[nodiscard]] Channel::Reader::Outcome read_until(Time deadline, const Call& call);
    [[nodiscard]] bool is_waiting(const Call& call);
    [[nodiscard]] static std::errc outcome(const Call& call, const Message& reply);
    [[nodiscard]] std::uint16_t free_id();

    const std::shared_ptr<Channel> channel_;
    const std::shared_ptr<Counters> counters_;
    const std::shared_ptr<const BusySince> work_;  // of the io thread
    const std::shared_ptr<const BusySince> park_;  // of the engine
    const DmaLimits limits_;

    std::atomic<std::uint32_t> max_transfer_{kMaxTransfer};
    PiMutex mutex_;  // guards the members below; taken after the channel's input lock
    PiCondition changed_;
    std::vector<Call*> calls_;
    std::uint16_t next_id_ = 0;
    /// True while one of the waiting threads reads the channel.
    bool has_reader_ = false;
    bool is_closed_ = false;
    StallBudget stalls_;    // for waits longer than the grace
    StallBudget blocking_;  // for waits that delay other clients
};

}  // namespace vgpu::softgpu::vfio_user
