// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <future>

#include "tests/unit/vfio_user/fake_device.h"
#include "tests/unit/vfio_user/message_dma.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::milliseconds;

TEST(VfioUserClientMemory, IsReadByMessage) {
    Served served;
    TestClient client = served.connect();
    Bytes out(100);
    auto result = read_later(served.device.peer(), 0x12345678, out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->header.command, std::uint16_t(Command::DmaRead));
    EXPECT_EQ(request->header.flags, kTypeRequest);
    EXPECT_EQ(request->body, as_bytes(DmaAccess{.address = 0x12345678, .count = 100}));
    answer_read(client, *request, numbers(100));
    EXPECT_EQ(result.get(), std::errc{});
    EXPECT_EQ(out, numbers(100));
}

TEST(VfioUserClientMemory, IsWrittenByMessage) {
    Served served;
    TestClient client = served.connect();
    auto result = std::async(std::launch::async, [peer = served.device.peer()] {
        return peer->dma_write(Iova{0x4000}, numbers(64));
    });
    const auto request = client.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->header.command, std::uint16_t(Command::DmaWrite));
    EXPECT_EQ(request->body,
              join(as_bytes(DmaAccess{.address = 0x4000, .count = 64}), numbers(64)));
    client.reply(request->header, {});  // QEMU sends no payload, others echo the head
    EXPECT_EQ(result.get(), std::errc{});
}

TEST(VfioUserClientMemory, PostedWriteWaitsForNoReplyAndSurvivesOne) {
    Served served;
    TestClient client = served.connect();
    const auto peer = served.device.peer();
    const std::uint32_t data = 0x4041;
    EXPECT_EQ(peer->dma_post(Iova{0xfee00000}, bytes_of(data)), std::errc{});
    const auto request = client.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->header.command, std::uint16_t(Command::DmaWrite));
    EXPECT_EQ(request->header.flags, kTypeRequest | kNoReply);
    EXPECT_EQ(request->body,
              join(as_bytes(DmaAccess{.address = 0xfee00000, .count = 4}), as_bytes(data)));
    client.reply(request->header, {}, EINVAL);  // QEMU reports errors whatever it was asked
    client.sync();
    client.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    EXPECT_EQ(peer->dma_post(Iova{0}, bytes_of(data)), std::errc::not_connected);
}

TEST(VfioUserClientMemory, TransfersAreCutToWhatTheClientTakes) {
    Served served;
    TestClient client(served.path());
    client.negotiate(R"({"capabilities":{"max_data_xfer_size":4096}})");
    Bytes out(10000);
    auto result = read_later(served.device.peer(), 0, out);
    const Bytes all = numbers(out.size());
    for (std::size_t done = 0; done < out.size();) {
        const auto request = client.receive();
        ASSERT_TRUE(request);
        const auto access = request->as<DmaAccess>();
        EXPECT_EQ(access.address, done);
        ASSERT_LE(access.count, 4096u);
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(done);
        answer_read(client, *request, {first, first + static_cast<std::ptrdiff_t>(access.count)});
        done += access.count;
    }
    EXPECT_EQ(result.get(), std::errc{});
    EXPECT_EQ(out, all);
}

TEST(VfioUserClientMemory, RepliesFindTheirCallsInAnyOrder) {
    Served served;
    TestClient client = served.connect();
    Bytes low(8);
    Bytes high(8);
    auto first = read_later(served.device.peer(), 0x1000, low);
    const auto one = client.receive();
    auto second = read_later(served.device.peer(), 0x2000, high);
    const auto two = client.receive();
    ASSERT_TRUE(one && two);
    answer_read(client, *two, Bytes(8, std::byte{2}));
    answer_read(client, *one, Bytes(8, std::byte{1}));
    EXPECT_EQ(first.get(), std::errc{});
    EXPECT_EQ(second.get(), std::errc{});
    EXPECT_EQ(low, Bytes(8, std::byte{1}));
    EXPECT_EQ(high, Bytes(8, std::byte{2}));
}

TEST(VfioUserClientMemory, ErrorsOfTheClientReachTheCaller) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    auto result = read_later(served.device.peer(), 0, out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    client.reply(request->header, {}, EFAULT);
    EXPECT_EQ(result.get(), std::errc::bad_address);
    EXPECT_EQ(served.counters().dma_failures, 1u);
}

TEST(VfioUserClientMemory, NonsenseIsAFailureNotData) {
    Served served;
    TestClient client = served.connect();
    const auto try_reply = [&](const std::function<void(const Incoming&)>& reply) {
        Bytes out(8, std::byte{0xaa});
        auto result = read_later(served.device.peer(), 0, out);
        const auto request = client.receive();
        if (!request) return std::errc{};
        reply(*request);
        const std::errc error = result.get();
        EXPECT_EQ(out, Bytes(8, std::byte{0xaa}));
        return error;
    };
    EXPECT_EQ(try_reply([&](const Incoming& r) { client.reply(r.header, {}); }),
              std::errc::protocol_error);
    EXPECT_EQ(try_reply([&](const Incoming& r) { answer_read(client, r, Bytes(7)); }),
              std::errc::protocol_error);
    EXPECT_EQ(try_reply([&](const Incoming& r) {
                  client.reply(r.header, join(as_bytes(DmaAccess{.count = 4}), Bytes(8)));
              }),
              std::errc::protocol_error);
    EXPECT_EQ(try_reply([&](const Incoming& r) {
                  Header other = r.header;
                  other.command = std::uint16_t(Command::DmaWrite);
                  client.reply(other, join(r.body, Bytes(8)));
              }),
              std::errc::protocol_error);
}

TEST(VfioUserClientMemory, ReplyNobodyWaitsForIsCounted) {
    Served served;
    TestClient client = served.connect();
    client.reply(Header{.id = 77, .command = std::uint16_t(Command::DmaRead)}, Bytes(24));
    client.sync();
    EXPECT_EQ(served.counters().unexpected_replies, 1u);
}

TEST(VfioUserClientMemory, ASilentClientCostsNoMoreThanTheLimit) {
    Served served(ServerOptions{.dma_limits = {.answer = milliseconds(50)}});
    TestClient client = served.connect();
    Bytes out(8);
    EXPECT_EQ(served.device.peer()->dma_read(Iova{0}, out), std::errc::timed_out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    answer_read(client, *request, numbers(8));  // too late
    client.sync();
    EXPECT_EQ(out, Bytes(8));
    EXPECT_EQ(served.counters().unexpected_replies, 1u);
}

TEST(VfioUserClientMemory, FailsWhenTheClientDies) {
    Served served;
    TestClient client = served.connect();
    const auto peer = served.device.peer();
    Bytes out(8);
    auto result = read_later(peer, 0, out);
    ASSERT_TRUE(client.receive());
    client.close();
    EXPECT_EQ(result.get(), std::errc::not_connected);
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    EXPECT_EQ(peer->dma_write(Iova{0}, out), std::errc::not_connected);
}

TEST(VfioUserClientMemory, PeerMayOutliveTheServer) {
    std::shared_ptr<Peer> peer;
    {
        Served served;
        TestClient client = served.connect();
        peer = served.device.peer();
    }
    Bytes out(8);
    EXPECT_EQ(peer->dma_read(Iova{0}, out), std::errc::not_connected);
}

TEST(VfioUserClientMemory, ManyThreadsShareOneClient) {
    Served served;
    TestClient client = served.connect();
    constexpr int kThreads = 4;
    constexpr int kReads = 50;
    std::vector<std::future<int>> workers;
    for (int t = 0; t < kThreads; t++)
        workers.push_back(std::async(std::launch::async, [peer = served.device.peer(), t] {
            int good = 0;
            for (int i = 0; i < kReads; i++) {
                const std::uint64_t address = std::uint64_t(t) << 32 | std::uint64_t(i);
                std::uint64_t value = 0;
                if (peer->dma_read(Iova{address}, bytes_of(value)) != std::errc{}) break;
                good += value == address ? 1 : 0;
            }
            return good;
        }));
    for (int i = 0; i < kThreads * kReads; i++) {
        const auto request = client.receive();
        ASSERT_TRUE(request);
        answer_read(client, *request, as_bytes(request->as<DmaAccess>().address));
    }
    for (auto& worker : workers) EXPECT_EQ(worker.get(), kReads);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
