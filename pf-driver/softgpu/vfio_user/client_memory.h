// SPDX-License-Identifier: MIT
//
// ClientMemory: DMA_READ and DMA_WRITE towards one client, from any thread, including the io thread
// inside a device call. One of the threads that wait for replies reads the channel
// (Channel::Reader) and hands every reply to the call with its message id; the other waiting
// threads sleep. So a reply arrives even while the io thread waits for a lock that a waiting thread
// holds.
//
// A transfer fails if the client refuses, answers wrongly, answers too late or disconnects. The
// time for which callers may wait for the client is limited per message and for all messages
// together (StallBudget). When that time is used up, transfers fail at once for a while. The wait
// for a quick answer is not charged, because it delays only the client's own function. Such a wait
// is charged if the io thread has already spent long on its present piece of work (BusySince),
// because all clients wait then.
//
// A client such as QEMU cannot answer while one of its own requests is unanswered. If that request
// needs a lock that the caller of the transfer holds, the transfer ends when the budget is used up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pf-driver/softgpu/vfio_user/busy_since.h"
#include "pf-driver/softgpu/vfio_user/channel.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/stall_budget.h"

namespace vgpu::softgpu::vfio_user {

/// Shared by the session and the device's Peer pointers. After close() all calls fail at once.
class ClientMemory final : public Peer, public Channel::ReplySink {
public:
    ClientMemory(std::shared_ptr<Channel> channel, std::shared_ptr<Counters> counters,
                 std::shared_ptr<const BusySince> work, DmaLimits limits);

    std::errc dma_read(Iova address, std::span<std::byte> out) override;
    std::errc dma_write(Iova address, std::span<const std::byte> data) override;
    std::errc dma_post(Iova address, std::span<const std::byte> data) override;

    /// The limit agreed in VERSION: larger transfers are split into several messages.
    void set_max_transfer(std::uint32_t bytes);
    /// Completes the call that waits for the reply; counts a reply that no call waits for. Called
    /// by any thread that reads the channel, with the channel's input lock held.
    void handle_reply(const Message& reply) override;
    /// The client is gone: every call fails from now on.
    void close();

private:
    using Time = StallBudget::Time;
    using Lock = std::unique_lock<std::mutex>;

    enum class State : std::uint8_t { Waiting, Done };
    /// Lives on the caller's stack while its reply is awaited.
    struct Call {
        std::uint16_t id = 0;
        Command command{};
        std::uint64_t count = 0;
        std::span<std::byte> out;  // empty for a write
        bool blocks_others = false;
        State state = State::Waiting;
        std::errc result{};
        /// True once the queue for the io thread is full: this call then leaves reading to the io
        /// thread.
        bool leaves_reading = false;
    };

    [[nodiscard]] std::errc transfer(Command command, Iova address, std::span<std::byte> out,
                                     std::span<const std::byte> data);
    /// Registers the call. timed_out while a budget that the call needs is spent; not_connected
    /// after close().
    [[nodiscard]] std::errc begin(Call& call);
    [[nodiscard]] std::errc await(Call& call, Lock& lock);
    void wait_until(Time deadline, Call& call, Lock& lock);
    [[nodiscard]] Channel::Reader::Outcome read_until(Time deadline, const Call& call);
    [[nodiscard]] bool is_waiting(const Call& call);
    [[nodiscard]] static std::errc outcome(const Call& call, const Message& reply);
    [[nodiscard]] std::uint16_t free_id();

    const std::shared_ptr<Channel> channel_;
    const std::shared_ptr<Counters> counters_;
    const std::shared_ptr<const BusySince> work_;
    const DmaLimits limits_;

    std::atomic<std::uint32_t> max_transfer_{kMaxTransfer};
    std::mutex mutex_;  // guards the members below; never held while the channel is read
    std::condition_variable changed_;
    std::vector<Call*> calls_;
    std::uint16_t next_id_ = 0;
    /// True if one of the waiting threads reads the channel.
    bool has_reader_ = false;
    bool is_closed_ = false;
    StallBudget stalls_;    // for waits longer than the grace
    StallBudget blocking_;  // for waits that delay other clients
};

}  // namespace vgpu::softgpu::vfio_user
