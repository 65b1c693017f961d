// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/client_memory.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::vfio_user {
namespace {

std::vector<std::byte> request(std::uint16_t id, Command command, const DmaAccess& access,
                               std::span<const std::byte> data, std::uint32_t flags = 0) {
    const std::size_t size = sizeof(Header) + sizeof(DmaAccess) + data.size();
    std::vector<std::byte> message(size);
    store(std::span(message), 0,
          Header{.id = id,
                 .command = static_cast<std::uint16_t>(command),
                 .size = static_cast<std::uint32_t>(size),
                 .flags = flags});
    store(std::span(message), sizeof(Header), access);
    if (!data.empty())
        std::memcpy(message.data() + sizeof(Header) + sizeof(DmaAccess), data.data(), data.size());
    return message;
}

}  // namespace

ClientMemory::ClientMemory(std::shared_ptr<Channel> channel, std::shared_ptr<Counters> counters,
                           std::shared_ptr<const BusySince> work,
                           std::shared_ptr<const BusySince> park, DmaLimits limits)
    : channel_(std::move(channel)),
      counters_(std::move(counters)),
      work_(std::move(work)),
      park_(std::move(park)),
      limits_(limits),
      stalls_(limits.stalls, StallBudget::Clock::now()),
      blocking_(limits.blocking, StallBudget::Clock::now()) {}

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

std::errc ClientMemory::dma_post(Iova address, std::span<const std::byte> data) {
    assert(data.size() <= kPageBytes);
    std::uint16_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        if (is_closed_) return std::errc::not_connected;
        id = free_id();
    }
    const DmaAccess access{.address = raw(address), .count = data.size()};
    counters_->dma_messages++;
    return channel_->send(request(id, Command::DmaWrite, access, data, kNoReply));
}

/// An id that no waiting call has. One always exists, because softgpu has far fewer threads than
/// there are ids.
std::uint16_t ClientMemory::free_id() {
    const auto is_used = [this](std::uint16_t id) {
        return std::any_of(calls_.begin(), calls_.end(),
                           [id](const Call* call) { return call->id == id; });
    };
    do next_id_++;
    while (is_used(next_id_));
    return next_id_;
}

std::errc ClientMemory::begin(Call& call) {
    if (is_closed_) return std::errc::not_connected;
    const Time now = StallBudget::Clock::now();
    const auto grace = limits_.blocking.grace;
    call.blocks_others = work_->has_lasted(grace, now) || park_->has_lasted(grace, now);
    if (stalls_.is_spent(now) || (call.blocks_others && blocking_.is_spent(now))) {
        counters_->dma_failures++;
        return std::errc::timed_out;
    }
    call.id = free_id();
    calls_.push_back(&call);
    return {};
}

/// Adds the call to calls_ before it sends the request, because another thread may read the reply
/// at once.
std::errc ClientMemory::transfer(Command command, Iova address, std::span<std::byte> out,
                                 std::span<const std::byte> data) {
    const DmaAccess access{.address = raw(address), .count = out.size() + data.size()};
    Call call{.command = command, .count = access.count, .out = out};
    Lock lock(mutex_);
    if (const std::errc refused = begin(call); refused != std::errc{}) return refused;
    lock.unlock();

    counters_->dma_messages++;
    const std::errc sent = channel_->send(request(call.id, command, access, data));
    lock.lock();
    const std::errc result = sent == std::errc{} ? await(call, lock) : sent;
    std::erase(calls_, &call);
    if (result != std::errc{}) counters_->dma_failures++;
    return result;
}

/// The grace is free, because most clients answer in microseconds. The rest of the wait is charged
/// to stalls_. If the wait blocks other clients, the whole wait, including the grace, is also
/// charged to blocking_.
std::errc ClientMemory::await(Call& call, Lock& lock) {
    const Time start = StallBudget::Clock::now();
    const Time end = call.blocks_others ? blocking_.begin(start) : Time::max();
    Time deadline = std::min<Time>(start + limits_.stalls.grace, end);
    bool is_charged = false;
    while (call.state == State::Waiting) {
        const Time now = StallBudget::Clock::now();
        if (now < deadline) {
            wait_until(deadline, call, lock);
        } else if (!is_charged && now < end) {
            deadline = std::min<Time>({start + limits_.answer, stalls_.begin(now), end});
            is_charged = true;
        } else {
            call.result = std::errc::timed_out;
            break;
        }
    }
    if (is_charged) stalls_.end(StallBudget::Clock::now());
    if (call.blocks_others) blocking_.end(StallBudget::Clock::now());
    return call.result;
}

void ClientMemory::wait_until(Time deadline, Call& call, Lock& lock) {
    if (has_reader_ || call.leaves_reading) {
        changed_.wait_until(lock, deadline);
        return;
    }
    has_reader_ = true;
    lock.unlock();
    const auto outcome = read_until(deadline, call);
    if (outcome == Channel::Reader::Outcome::Closed) close();
    lock.lock();
    has_reader_ = false;
    call.leaves_reading = outcome == Channel::Reader::Outcome::Full;
    changed_.notify_all();  // another waiting thread may now read the channel
}

/// Does not hold mutex_ while it reads the channel, because handle_reply() takes mutex_.
Channel::Reader::Outcome ClientMemory::read_until(Time deadline, const Call& call) {
    using Outcome = Channel::Reader::Outcome;
    Channel::Reader reader(*channel_);
    auto outcome = Outcome::Nothing;
    while (StallBudget::Clock::now() < deadline) {
        outcome = reader.read(*this);
        if (outcome == Outcome::Closed || outcome == Outcome::Full) break;
        // Checked only after a read, because another thread may have delivered this call's reply
        // before that read.
        if (!is_waiting(call)) break;
        if (outcome == Outcome::Nothing) reader.wait_until(deadline);
    }
    return outcome;
}

bool ClientMemory::is_waiting(const Call& call) {
    const std::lock_guard lock(mutex_);
    return call.state == State::Waiting;
}

std::errc ClientMemory::outcome(const Call& call, const Message& reply) {
    const std::size_t expected = call.out.empty() ? 0 : sizeof(DmaAccess) + call.out.size();
    if ((reply.header.flags & kError) != 0)
        return reply.header.error == 0 ? std::errc::io_error
                                       : static_cast<std::errc>(reply.header.error);
    if (reply.header.command != static_cast<std::uint16_t>(call.command))
        return std::errc::protocol_error;
    // The reply to a write may have any body: clients differ.
    if (reply.body.size() < expected) return std::errc::protocol_error;
    if (expected != 0 && load<DmaAccess>(reply.body).count != call.count)
        return std::errc::protocol_error;
    return {};
}

/// Holds the mutex while it copies to the caller's buffer, so that the buffer exists: a call that
/// times out needs the mutex to remove itself from calls_.
void ClientMemory::handle_reply(const Message& reply) {
    counters_->messages++;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(calls_.begin(), calls_.end(), [&](const Call* call) {
        return call->id == reply.header.id && call->state == State::Waiting;
    });
    if (found == calls_.end()) {
        counters_->unexpected_replies++;
        return;
    }
    Call& call = **found;
    call.result = outcome(call, reply);
    if (call.result == std::errc{} && !call.out.empty())
        std::memcpy(call.out.data(), reply.body.data() + sizeof(DmaAccess), call.out.size());
    call.state = State::Done;
    changed_.notify_all();
}

void ClientMemory::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    for (Call* call : calls_) {
        if (call->state == State::Done) continue;
        call->result = std::errc::not_connected;
        call->state = State::Done;
    }
    changed_.notify_all();
}

}  // namespace vgpu::softgpu::vfio_user
