// SPDX-License-Identifier: MIT
//
// Who reads a channel: the io thread, or a Reader in its place. One thread plays all the parts.
#include "pf-driver/softgpu/vfio_user/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "tests/unit/vfio_user/test_client.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Outcome = Channel::Reader::Outcome;
using Interest = Channel::Interest;

Bytes message(std::uint16_t id, const Bytes& body = {}, std::uint32_t flags = kTypeRequest) {
    const auto size = static_cast<std::uint32_t>(sizeof(Header) + body.size());
    return join(as_bytes(Header{.id = id, .size = size, .flags = flags}), body);
}

Bytes reply(std::uint16_t id) {
    return message(id, {}, kTypeReply);
}

steady_clock::time_point soon() {
    return steady_clock::now() + milliseconds(10000);
}

/// A channel, the client's end of it, and what the channel told its loop.
class VfioUserChannel : public ::testing::Test, public Channel::ReplySink {
protected:
    VfioUserChannel() : VfioUserChannel(new_pair()) {}

    void client_sends(const Bytes& bytes, int fd = -1) {
        ASSERT_EQ(vfio_user::send(client.get(), bytes, fd).bytes, bytes.size());
    }
    void handle_reply(const Message& message) override { replies.push_back(message.header.id); }
    std::vector<std::uint16_t> serve_all() {
        std::vector<std::uint16_t> ids;
        while (const auto message = channel.next(*this)) ids.push_back(message->header.id);
        return ids;
    }

    OwnedFd client;
    Channel channel;
    std::vector<std::uint16_t> replies;
    std::vector<Interest> interests;
    int calls = 0;

private:
    using Pair = std::array<OwnedFd, 2>;
    static Pair new_pair() {
        int fds[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        return {OwnedFd(fds[0]), OwnedFd(fds[1])};
    }
    explicit VfioUserChannel(Pair pair) : client(std::move(pair[0])), channel(std::move(pair[1])) {
        channel.set_loop({.watch = [this](Interest interest) { interests.push_back(interest); },
                          .serve = [this] { calls++; }});
    }
};

TEST_F(VfioUserChannel, IoThreadGetsNothingFromTheSocketWhileSomebodyReads) {
    client_sends(message(1));
    {
        const Channel::Reader reader(channel);
        EXPECT_EQ(channel.fill(), Channel::Input::Nothing);
        EXPECT_THAT(serve_all(), IsEmpty());
    }
    EXPECT_THAT(interests, ElementsAre(Interest::Nothing, Interest::Input));
    EXPECT_EQ(channel.fill(), Channel::Input::Data);
    EXPECT_THAT(serve_all(), ElementsAre(1));
}

TEST_F(VfioUserChannel, RepliesAreDeliveredBeforeTheRequestsBehindThemAreServed) {
    client_sends(join(join(reply(1), message(2)), join(reply(3), message(4))));
    ASSERT_EQ(channel.fill(), Channel::Input::Data);
    ASSERT_TRUE(channel.next(*this));
    EXPECT_THAT(replies, ElementsAre(1));
    EXPECT_THAT(serve_all(), ElementsAre(4));
    EXPECT_THAT(replies, ElementsAre(1, 3));
}

TEST_F(VfioUserChannel, RepliesAreGivenToTheReaderAndRequestsToTheIoThread) {
    client_sends(join(join(message(1), reply(2)), join(message(3), reply(4))));
    Channel::Reader reader(channel);
    EXPECT_EQ(reader.read(*this), Outcome::Data);
    EXPECT_EQ(reader.read(*this), Outcome::Nothing);
    EXPECT_THAT(replies, ElementsAre(2, 4));
    EXPECT_EQ(calls, 1);
    EXPECT_THAT(serve_all(), ElementsAre(1, 3));
}

TEST_F(VfioUserChannel, WhatTheIoThreadHasReceivedButNotServedIsReadFirst) {
    client_sends(join(join(message(1), reply(2)), message(3)));
    ASSERT_EQ(channel.fill(), Channel::Input::Data);
    ASSERT_TRUE(channel.next(*this));
    client_sends(message(4));
    Channel::Reader reader(channel);
    EXPECT_EQ(reader.read(*this), Outcome::Data);
    EXPECT_THAT(replies, ElementsAre(2));
    EXPECT_THAT(serve_all(), ElementsAre(3, 4));
}

TEST_F(VfioUserChannel, MessageBeingServedStaysAsItIs) {
    const Bytes body(10000, std::byte{0x5a});
    const Bytes cut = message(2, Bytes(40000, std::byte{2}));
    const auto half = cut.begin() + 10000;
    client_sends(join(message(1, body), {cut.begin(), half}));
    ASSERT_EQ(channel.fill(), Channel::Input::Data);
    const auto served = channel.next(*this);
    ASSERT_TRUE(served);

    Channel::Reader reader(channel);
    EXPECT_EQ(reader.read(*this), Outcome::Nothing);
    client_sends({half, cut.end()});
    for (std::uint16_t id = 3; id < 10; id++) {
        client_sends(message(id, Bytes(60000, std::byte{0xee})));
        while (reader.read(*this) == Outcome::Data) {
        }
    }
    EXPECT_TRUE(std::ranges::equal(served->body, body));
    const auto next = channel.next(*this);
    ASSERT_TRUE(next);
    EXPECT_TRUE(std::ranges::equal(next->body, Bytes(40000, std::byte{2})));
    EXPECT_THAT(serve_all(), ElementsAre(3, 4, 5, 6, 7, 8, 9));
}

TEST_F(VfioUserChannel, DescriptorsOfTheMessageBeingServedStay) {
    const OwnedFd own = new_eventfd();
    const OwnedFd foreign = new_eventfd();
    client_sends(message(1), own.get());
    ASSERT_EQ(channel.fill(), Channel::Input::Data);
    const auto served = channel.next(*this);
    ASSERT_TRUE(served);
    client_sends(message(2), foreign.get());
    Channel::Reader reader(channel);
    EXPECT_EQ(reader.read(*this), Outcome::Data);
    ASSERT_EQ(served->fds->count(), 1u);
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(served->fds->all()[0].get(), &one, sizeof(one)), ssize_t{sizeof(one)});
    EXPECT_EQ(signals(own.get()), 1u);
    EXPECT_EQ(signals(foreign.get()), 0u);
}

TEST_F(VfioUserChannel, DescriptorsStayWithTheirMessageInTheQueue) {
    const OwnedFd fd = new_eventfd();
    client_sends(message(1));
    client_sends(message(2), fd.get());
    client_sends(reply(3), fd.get());
    client_sends(message(4));
    client_sends(message(5), fd.get());
    Channel::Reader reader(channel);
    while (reader.read(*this) == Outcome::Data) {
    }
    std::vector<std::size_t> counts;
    while (const auto message = channel.next(*this)) counts.push_back(message->fds->count());
    EXPECT_THAT(counts, ElementsAre(0, 1, 0, 1));
}

TEST_F(VfioUserChannel, MessagesOfTwoReadersStayInOrder) {
    client_sends(message(1));
    for (std::uint16_t id = 2; id < 5; id++) {
        Channel::Reader reader(channel);
        EXPECT_EQ(reader.read(*this), Outcome::Data);
        client_sends(message(id));
    }
    ASSERT_EQ(channel.fill(), Channel::Input::Data);
    EXPECT_THAT(serve_all(), ElementsAre(1, 2, 3, 4));
}

TEST_F(VfioUserChannel, QueueIsBounded) {
    Channel::Reader reader(channel);
    const Bytes body(60000);
    std::uint16_t sent = 0;
    for (auto outcome = Outcome::Data; outcome != Outcome::Full && sent < 1000; sent++) {
        client_sends(message(sent, body));
        outcome = reader.read(*this);
    }
    EXPECT_GE(sent * body.size(), 4u << 20);
    EXPECT_LE(sent * body.size(), 5u << 20);
    client_sends(reply(9999));
    EXPECT_EQ(reader.read(*this), Outcome::Full);
    ASSERT_TRUE(channel.next(*this));
    EXPECT_EQ(reader.read(*this), Outcome::Data) << "room again";
    EXPECT_THAT(replies, ElementsAre(9999));
    EXPECT_EQ(serve_all().size(), sent - 1u);
}

TEST_F(VfioUserChannel, QueuedDescriptorsAreBounded) {
    const OwnedFd fd = new_eventfd();
    const std::size_t before = open_fds();
    Channel::Reader reader(channel);
    Outcome outcome = Outcome::Data;
    for (std::uint16_t id = 0; id < 1000 && outcome != Outcome::Full; id++) {
        client_sends(message(id), fd.get());
        outcome = reader.read(*this);
    }
    EXPECT_EQ(outcome, Outcome::Full);
    EXPECT_EQ(open_fds() - before, 4 * kMaxFds);
    EXPECT_EQ(serve_all().size(), 4 * kMaxFds);
    EXPECT_EQ(open_fds(), before);
}

TEST_F(VfioUserChannel, IoThreadGoesOnWithWhatAFullQueueLeftBehind) {
    const Bytes body(60000);
    Bytes small;
    for (std::uint16_t id = 100; id < 1100; id++) small = join(small, message(id));
    {
        Channel::Reader reader(channel);
        for (std::uint16_t id = 0; id < 70; id++) {
            client_sends(message(id, body));
            ASSERT_EQ(reader.read(*this), id < 69 ? Outcome::Data : Outcome::Full) << id;
        }
        client_sends(small);
        ASSERT_TRUE(channel.next(*this));  // room for one
        EXPECT_EQ(reader.read(*this), Outcome::Full);
    }
    EXPECT_EQ(channel.fill(), Channel::Input::Data) << "in the buffer, not in the socket";
    const auto ids = serve_all();
    EXPECT_EQ(ids.size(), 69u + 1000u);
    EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST_F(VfioUserChannel, BrokenStreamEndsReadingAndIsLeftToTheIoThread) {
    Channel::Reader reader(channel);
    client_sends(join(message(1), as_bytes(Header{.id = 2, .size = 3})));
    EXPECT_EQ(reader.read(*this), Outcome::Data);
    calls = 0;
    EXPECT_EQ(reader.read(*this), Outcome::Closed);
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(channel.is_broken()) << "a message before it has to be served first";
    EXPECT_THAT(serve_all(), ElementsAre(1));
    EXPECT_TRUE(channel.is_broken());
    EXPECT_EQ(channel.broken_header().id, 2);
}

TEST_F(VfioUserChannel, EndOfTheStreamIsFoundByTheIoThreadToo) {
    client_sends(message(1));
    client.reset();
    {
        Channel::Reader reader(channel);
        EXPECT_EQ(reader.read(*this), Outcome::Data);
        EXPECT_EQ(reader.read(*this), Outcome::Closed);
    }
    EXPECT_EQ(channel.fill(), Channel::Input::Closed);
    EXPECT_THAT(serve_all(), ElementsAre(1));
}

TEST_F(VfioUserChannel, ReaderWakesUpWhenTheChannelIsShutDown) {
    Channel::Reader reader(channel);
    channel.shut_down();
    reader.wait_until(soon());
    EXPECT_EQ(reader.read(*this), Outcome::Closed);
}

TEST_F(VfioUserChannel, ReaderSendsTheBacklogAndCallsTheIoThreadBack) {
    const Bytes large = message(1, Bytes(1u << 20));
    ASSERT_EQ(channel.send(large), std::errc{});
    ASSERT_TRUE(channel.has_backlog());
    Channel::Reader reader(channel);
    EXPECT_THAT(interests, ElementsAre(Interest::Output, Interest::Output));
    Bytes taken(large.size());
    ReceivedFds fds;
    for (std::size_t bytes = 0; bytes < large.size();) {
        const auto got = receive(client.get(), std::span(taken).subspan(bytes), fds);
        bytes += got.bytes;
        if (got.error != std::errc{}) reader.wait_until(soon());
    }
    EXPECT_FALSE(channel.has_backlog());
    EXPECT_EQ(taken, large);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(interests.back(), Interest::Nothing);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
