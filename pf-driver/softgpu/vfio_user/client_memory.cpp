// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/client_memory.h"

#include <algorithm>
#include <cstring>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::vfio_user {
namespace {

using SteadyTime = std::chrono::steady_clock;

std::vector<std::byte> request(std::uint16_t id, Command command, const DmaAccess& access,
                               std::span<const std::byte> data) {
    const std::size_t size = sizeof(Header) + sizeof(DmaAccess) + data.size();
    std::vector<std::byte> message(size);
    store(std::span(message), 0,
          Header{.id = id,
                 .command = static_cast<std::uint16_t>(command),
                 .size = static_cast<std::uint32_t>(size)});
    store(std::span(message), sizeof(Header), access);
    if (!data.empty())
        std::memcpy(message.data() + sizeof(Header) + sizeof(DmaAccess), data.data(), data.size());
    return message;
}

}  // namespace

ClientMemory::ClientMemory(std::shared_ptr<Channel> channel, std::shared_ptr<const IoThread> io,
                           std::shared_ptr<Counters> counters, DmaLimits limits)
    : channel_(std::move(channel)),
      io_(std::move(io)),
      counters_(std::move(counters)),
      limits_(limits) {}

void ClientMemory::set_max_transfer(std::uint32_t bytes) {
    max_transfer_ = std::min(bytes, kMaxTransfer);
}

std::errc ClientMemory::dma_read(Iova address, std::span<std::byte> out) {
    while (!out.empty()) {
        const std::size_t count = std::min<std::size_t>(out.size(), max_transfer_);
        const std::errc error = transfer(Command::DmaRead, address, out.first(count), {});
        if (error != std::errc{}) return error;
        out = out.subspan(count);
        address = Iova{raw(address) + count};
    }
    return {};
}

std::errc ClientMemory::dma_write(Iova address, std::span<const std::byte> data) {
    while (!data.empty()) {
        const std::size_t count = std::min<std::size_t>(data.size(), max_transfer_);
        const std::errc error = transfer(Command::DmaWrite, address, {}, data.first(count));
        if (error != std::errc{}) return error;
        data = data.subspan(count);
        address = Iova{raw(address) + count};
    }
    return {};
}

std::uint16_t ClientMemory::free_id() {
    const auto is_used = [this](std::uint16_t id) {
        return std::any_of(calls_.begin(), calls_.end(),
                           [id](const Call* call) { return call->id == id; });
    };
    do next_id_++;
    while (is_used(next_id_));
    return next_id_;
}

std::errc ClientMemory::transfer(Command command, Iova address, std::span<std::byte> out,
                                 std::span<const std::byte> data) {
    if (io_->is_current()) return std::errc::resource_deadlock_would_occur;
    const DmaAccess access{.address = raw(address), .count = out.size() + data.size()};
    Call call{.command = command, .count = access.count, .out = out};
    std::unique_lock lock(mutex_);
    if (is_closed_) return std::errc::not_connected;
    call.id = free_id();
    calls_.push_back(&call);
    lock.unlock();

    counters_->dma_messages++;
    const std::errc sent = channel_->send(request(call.id, command, access, data));
    lock.lock();
    const std::errc result = sent == std::errc{} ? await(call, lock) : sent;
    std::erase(calls_, &call);
    if (result != std::errc{}) counters_->dma_failures++;
    return result;
}

std::errc ClientMemory::await(Call& call, std::unique_lock<std::mutex>& lock) {
    const auto deadline = SteadyTime::now() + limits_.answer;
    constexpr std::uint64_t kIdle = 0;  // turns are odd during a device call
    std::uint64_t stalled_turn = kIdle;
    while (call.state == State::Waiting) {
        const auto now = SteadyTime::now();
        if (now >= deadline) return std::errc::timed_out;
        const auto slice = std::min<SteadyTime::time_point>(deadline, now + limits_.stall);
        if (answered_.wait_until(lock, slice) == std::cv_status::no_timeout) continue;
        if (call.state == State::Done) break;
        const std::uint64_t turn = io_->turn();
        const bool is_in_call = turn % 2 != 0;
        if (is_in_call && turn == stalled_turn) return std::errc::resource_deadlock_would_occur;
        stalled_turn = is_in_call ? turn : kIdle;
    }
    return call.result;
}

std::errc ClientMemory::outcome(const Call& call, const Message& reply) {
    const std::size_t expected = call.out.empty() ? 0 : sizeof(DmaAccess) + call.out.size();
    if ((reply.header.flags & kError) != 0)
        return reply.header.error == 0 ? std::errc::io_error
                                       : static_cast<std::errc>(reply.header.error);
    if (reply.header.command != static_cast<std::uint16_t>(call.command))
        return std::errc::protocol_error;
    // Clients differ in what they send behind the header of a write's reply.
    if (reply.body.size() < expected) return std::errc::protocol_error;
    if (expected != 0 && load<DmaAccess>(reply.body).count != call.count)
        return std::errc::protocol_error;
    return {};
}

bool ClientMemory::take_reply(const Message& reply) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const Call* call) {
        return call->id == reply.header.id && call->state == State::Waiting;
    });
    if (found == calls_.end()) return false;
    Call& call = **found;
    call.result = outcome(call, reply);
    if (call.result == std::errc{} && !call.out.empty())
        std::memcpy(call.out.data(), reply.body.data() + sizeof(DmaAccess), call.out.size());
    call.state = State::Done;
    answered_.notify_all();
    return true;
}

void ClientMemory::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    for (Call* call : calls_) {
        if (call->state == State::Done) continue;
        call->result = std::errc::not_connected;
        call->state = State::Done;
    }
    answered_.notify_all();
}

}  // namespace vgpu::softgpu::vfio_user
