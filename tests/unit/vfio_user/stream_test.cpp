// SPDX-License-Identifier: MIT
//
// The byte stream under the messages: pieces, batches, descriptors, broken and silent clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kSmall = FakeDevice::kSmall;

Bytes assign_vectors(TestClient& client, std::uint32_t start, std::uint32_t count) {
    return client.message(Command::DeviceSetIrqs,
                          as_bytes(IrqSet{.flags = kIrqDataEventfd | kIrqActionTrigger,
                                          .index = 2,
                                          .start = start,
                                          .count = count}),
                          kNoReply);
}

Bytes write_of(TestClient& client, std::uint64_t offset, std::uint32_t value) {
    return client.message(Command::RegionWrite,
                          join(as_bytes(RegionAccess{offset, kSmall, 4}), as_bytes(value)),
                          kNoReply);
}

std::uint32_t word(TestClient& client, std::uint64_t offset) {
    return load<std::uint32_t>(client.read_region(kSmall, offset, 4).body, sizeof(RegionAccess));
}

TEST(VfioUserStream, MessagesMayArriveByteByByte) {
    Served served;
    TestClient client = served.connect();
    const Bytes message = write_of(client, 0, 0xdeadbeef);
    for (const std::byte& one : message) ASSERT_TRUE(client.send_raw({&one, 1}));
    EXPECT_EQ(word(client, 0), 0xdeadbeefu);
}

TEST(VfioUserStream, ManyMessagesMayArriveAtOnceAndEndInTheMiddle) {
    Served served;
    TestClient client = served.connect();
    Bytes batch;
    for (std::uint32_t i = 0; i < 5000; i++) batch = join(batch, write_of(client, i % 64 * 4, i));
    const std::size_t cut = batch.size() - 21;
    ASSERT_TRUE(client.send_raw(std::span(batch).first(cut)));
    ASSERT_TRUE(client.send_raw(std::span(batch).subspan(cut)));
    EXPECT_EQ(word(client, 4999 % 64 * 4), 4999u);
}

TEST(VfioUserStream, DescriptorsBelongToTheMessageTheyCameWith) {
    Served served;
    TestClient client = served.connect();
    const OwnedFd fd = new_eventfd();
    const int one[] = {fd.get()};
    const int two[] = {fd.get(), fd.get()};
    // Sent without waiting: the server may find all of it in its buffer at once.
    ASSERT_TRUE(client.send_raw(write_of(client, 0, 1)));
    ASSERT_TRUE(client.send_raw(assign_vectors(client, 0, 2), two));
    ASSERT_TRUE(client.send_raw(write_of(client, 0, 2)));
    ASSERT_TRUE(client.send_raw(assign_vectors(client, 2, 1)));
    ASSERT_TRUE(client.send_raw(assign_vectors(client, 3, 1), one));
    ASSERT_TRUE(client.send_raw(assign_vectors(client, 1, 1), one));
    client.sync();
    EXPECT_THAT(served.device.calls().irqs,
                ElementsAre("trigger 2 0+2 fds 1 1", "trigger 2 2+1 fds 0", "trigger 2 3+1 fds 1",
                            "trigger 2 1+1 fds 1"));
}

TEST(VfioUserStream, DescriptorsMayComeWithAPieceOfTheMessage) {
    Served served;
    TestClient client = served.connect();
    const OwnedFd fd = new_eventfd();
    const int one[] = {fd.get()};
    const Bytes message = assign_vectors(client, 0, 1);
    ASSERT_TRUE(client.send_raw(std::span(message).first(7), one));
    ASSERT_TRUE(client.send_raw(std::span(message).subspan(7)));
    client.sync();
    EXPECT_THAT(served.device.calls().irqs, ElementsAre("trigger 2 0+1 fds 1"));
}

TEST(VfioUserStream, NoDescriptorIsKeptThatNobodyWanted) {
    Served served;
    TestClient client = served.connect();
    client.sync();
    const OwnedFd fd = new_eventfd();
    const std::vector<int> many(40, fd.get());
    const int one[] = {fd.get()};
    const std::size_t before = open_fds();
    EXPECT_EQ(client.error_of(Command::DeviceGetInfo, as_bytes(DeviceInfo{}), one), EINVAL);
    EXPECT_EQ(client.error_of(Command::DeviceGetInfo, as_bytes(DeviceInfo{}), many), EINVAL);
    EXPECT_EQ(client.error_of(Command{99}, {}, one), ENOTSUP);
    EXPECT_EQ(client.error_of(Command::DmaMap, Bytes(8), one), EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaMap, as_bytes(DmaMap{.flags = 3, .size = 1}), one),
              EINVAL);
    EXPECT_EQ(client.error_of(Command::DmaMap, as_bytes(DmaMap{.flags = 3, .size = 4096}), one), 0);
    EXPECT_EQ(
        client.error_of(Command::DeviceSetIrqs, as_bytes(IrqSet{.index = 2, .count = 1}), one),
        EINVAL);
    client.reply(Header{.id = 1}, {});
    ASSERT_TRUE(client.send_raw(client.message(Command::RegionWrite, Bytes(3), kNoReply), one));
    client.sync();
    EXPECT_EQ(open_fds(), before);
}

TEST(VfioUserStream, AClosedConnectionKeepsNoDescriptor) {
    Served served;
    const OwnedFd fd = new_eventfd();
    const int one[] = {fd.get()};
    const std::size_t before = open_fds();
    TestClient client = served.connect();
    const Bytes message = assign_vectors(client, 0, 1);
    ASSERT_TRUE(client.send_raw(std::span(message).first(20), one));
    client.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    std::promise<void> turn;  // the session is gone after the turn that detached it
    served.server->post([&] { turn.set_value(); });
    turn.get_future().wait();
    EXPECT_EQ(open_fds(), before);
}

TEST(VfioUserStream, ImpossibleSizesCostTheConnectionOnly) {
    Served served;
    TestClient bystander(served.other_path());
    bystander.negotiate();
    std::uint64_t closed = 0;
    for (const std::uint32_t size : {0u, 15u, std::uint32_t{kMaxMessage} + 1, ~0u}) {
        TestClient client = served.connect();
        const Header header{.id = 9, .command = 9, .size = size};
        ASSERT_TRUE(client.send_raw(as_bytes(header)));
        const auto reply = client.receive();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->header.id, 9u);
        EXPECT_EQ(reply->header.error, std::uint32_t{EMSGSIZE});
        EXPECT_TRUE(client.is_closed_by_server());
        const int wanted = static_cast<int>(++closed);
        ASSERT_TRUE(served.device.wait_for(
            [wanted](const auto& calls) { return calls.detached == wanted; }));
        bystander.sync();
    }
    EXPECT_EQ(served.counters().malformed, closed);
}

TEST(VfioUserStream, MessageThatIsNeitherRequestNorReplyEndsTheConnection) {
    Served served;
    TestClient client = served.connect();
    ASSERT_TRUE(client.send_raw(client.message(Command::DeviceGetInfo, Bytes(16), 2)));
    EXPECT_TRUE(client.is_closed_by_server());
    EXPECT_EQ(served.counters().malformed, 1u);
}

TEST(VfioUserStream, ClientThatDoesNotReadStopsOnlyItself) {
    Served served;
    TestClient lazy = served.connect();
    TestClient other(served.other_path());
    other.negotiate();
    constexpr int kReads = 40;
    for (int i = 0; i < kReads; i++)
        lazy.send(Command::RegionRead, as_bytes(RegionAccess{0, FakeDevice::kMemory, 1u << 20}));
    for (int i = 0; i < 100; i++) other.sync();
    for (int i = 0; i < kReads; i++) {
        const auto reply = lazy.receive();
        ASSERT_TRUE(reply);
        EXPECT_EQ(reply->body.size(), sizeof(RegionAccess) + (1u << 20));
    }
    lazy.sync();
}

TEST(VfioUserStream, ClientMayLeaveWithRepliesUnread) {
    Served served;
    TestClient client = served.connect();
    for (int i = 0; i < 10; i++)
        client.send(Command::RegionRead, as_bytes(RegionAccess{0, FakeDevice::kMemory, 1u << 20}));
    client.close();
    EXPECT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
}

TEST(VfioUserStream, ClientMayLeaveInTheMiddleOfAMessage) {
    Served served;
    TestClient client = served.connect();
    const Bytes message = write_of(client, 0, 1);
    ASSERT_TRUE(client.send_raw(std::span(message).first(17)));
    ::shutdown(client.fd(), SHUT_WR);
    EXPECT_TRUE(client.is_closed_by_server());
    EXPECT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
