// SPDX-License-Identifier: MIT
//
// ClientMemory: DMA_READ and DMA_WRITE towards one client. Engine threads call dma_read() and
// dma_write() and sleep until the io thread hands them the reply with their message id. A client
// that refuses, answers nonsense, does not answer in time or goes away makes the transfer fail;
// nothing waits longer than DmaLimits::answer per message.
//
// A client such as QEMU cannot answer while one of its own requests is unanswered. If the caller
// holds a lock that request needs, both would wait: the transfer is given up after one or two
// DmaLimits::stall once the io thread makes no progress.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "pf-driver/softgpu/vfio_user/channel.h"
#include "pf-driver/softgpu/vfio_user/counters.h"
#include "pf-driver/softgpu/vfio_user/device.h"
#include "pf-driver/softgpu/vfio_user/io_thread.h"

namespace vgpu::softgpu::vfio_user {

class ClientMemory final : public Peer {
public:
    ClientMemory(std::shared_ptr<Channel> channel, std::shared_ptr<const IoThread> io,
                 std::shared_ptr<Counters> counters, DmaLimits limits);

    std::errc dma_read(Iova address, std::span<std::byte> out) override;
    std::errc dma_write(Iova address, std::span<const std::byte> data) override;

    // Called on the io thread.
    void set_max_transfer(std::uint32_t bytes);
    /// False if nobody waits for this reply.
    [[nodiscard]] bool take_reply(const Message& reply);
    /// The client has gone: every call fails from now on.
    void close();

private:
    enum class State : std::uint8_t { Waiting, Done };
    struct Call {
        std::uint16_t id = 0;
        Command command{};
        std::uint64_t count = 0;
        std::span<std::byte> out;  // empty for a write
        State state = State::Waiting;
        std::errc result{};
    };

    [[nodiscard]] std::errc transfer(Command command, Iova address, std::span<std::byte> out,
                                     std::span<const std::byte> data);
    [[nodiscard]] std::errc await(Call& call, std::unique_lock<std::mutex>& lock);
    [[nodiscard]] static std::errc outcome(const Call& call, const Message& reply);
    [[nodiscard]] std::uint16_t free_id();

    const std::shared_ptr<Channel> channel_;
    const std::shared_ptr<const IoThread> io_;
    const std::shared_ptr<Counters> counters_;
    const DmaLimits limits_;

    std::atomic<std::uint32_t> max_transfer_{kMaxTransfer};
    std::mutex mutex_;  // guards what follows
    std::condition_variable answered_;
    std::vector<Call*> calls_;
    std::uint16_t next_id_ = 0;
    bool is_closed_ = false;
};

}  // namespace vgpu::softgpu::vfio_user
