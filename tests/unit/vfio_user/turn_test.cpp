// SPDX-License-Identifier: MIT
//
// What one client can take of the io thread: turns, and resets of its device.
#include <gtest/gtest.h>

#include <latch>

#include "tests/unit/vfio_user/fake_device.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kSmall = FakeDevice::kSmall;

/// Registers that take their time. The first access lasts until it may end, so that what else is
/// sent is there when it does.
class SlowRegisters {
public:
    explicit SlowRegisters(FakeDevice& device) {
        device.during_call = [this] {
            const auto end = steady_clock::now() + microseconds(100);
            if (accesses_++ == 0) {
                is_begun_.count_down();
                may_end_.wait();
            }
            while (steady_clock::now() < end) {
            }
        };
    }
    void wait_for_first() { is_begun_.wait(); }
    void end_first() { may_end_.count_down(); }
    [[nodiscard]] int accesses() const { return accesses_; }

private:
    std::atomic<int> accesses_{0};
    std::latch is_begun_{1};
    std::latch may_end_{1};
};

/// In one piece, for one recvmsg.
Bytes posted_writes(TestClient& client, int count) {
    Bytes all;
    for (int i = 0; i < count; i++)
        all = join(
            all, client.message(Command::RegionWrite,
                                join(as_bytes(RegionAccess{0, kSmall, 4}), as_bytes(i)), kNoReply));
    return all;
}

Bytes writes_of_one_message(std::uint64_t count) {
    Bytes body = as_bytes(WriteMulti{.count = count});
    for (std::uint64_t i = 0; i < count; i++)
        body = join(body, as_bytes(SingleWrite{.region = kSmall, .count = 4, .data = i}));
    return body;
}

TEST(VfioUserTurn, OthersAndWorkComeBetweenTheTurnsOfAClientThatFloods) {
    constexpr int kWrites = 1000;
    Served served;
    SlowRegisters slow(served.device);
    std::atomic<int> before_other{kWrites};
    std::atomic<int> before_work{kWrites};
    served.other.during_call = [&] { before_other = slow.accesses(); };
    TestClient flood = served.connect();
    TestClient other(served.other_path());
    other.negotiate();
    ASSERT_TRUE(flood.send_raw(posted_writes(flood, kWrites)));
    slow.wait_for_first();
    other.send(Command::RegionRead, as_bytes(RegionAccess{0, kSmall, 4}));
    served.server->post([&] { before_work = slow.accesses(); });
    slow.end_first();
    ASSERT_TRUE(other.receive());
    flood.sync();
    EXPECT_LT(before_other, kWrites / 2);
    EXPECT_LT(before_work, kWrites / 2);
    EXPECT_EQ(slow.accesses(), kWrites);
}

TEST(VfioUserTurn, WritesOfOneMessageTakeSeveralTurnsAndGetOneReply) {
    Served served;
    SlowRegisters slow(served.device);
    std::atomic<std::uint32_t> before_other{kMaxWrites};
    served.other.during_call = [&] { before_other = std::uint32_t(slow.accesses()); };
    TestClient client = served.connect();
    TestClient other(served.other_path());
    other.negotiate();
    const auto id = client.send(Command::RegionWriteMulti, writes_of_one_message(kMaxWrites));
    slow.wait_for_first();
    other.send(Command::RegionRead, as_bytes(RegionAccess{0, kSmall, 4}));
    slow.end_first();
    ASSERT_TRUE(other.receive());
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.id, id);
    EXPECT_EQ(reply->as<WriteMulti>().count, kMaxWrites);
    EXPECT_LT(before_other, kMaxWrites / 2);
    const Bytes last = client.read_region(kSmall, 0, 4).body;
    EXPECT_EQ(load<std::uint32_t>(last, sizeof(RegionAccess)), kMaxWrites - 1);
}

TEST(VfioUserTurn, MessagesBehindOneOfManyWritesWaitForItsEnd) {
    Served served;
    SlowRegisters slow(served.device);
    TestClient client = served.connect();
    slow.end_first();
    client.send(Command::RegionWriteMulti, writes_of_one_message(kMaxWrites), kNoReply);
    ASSERT_TRUE(client.send_raw(posted_writes(client, 1)));
    client.send(Command::RegionWriteMulti, writes_of_one_message(5), kNoReply);
    const Bytes last = client.read_region(kSmall, 0, 4).body;
    EXPECT_EQ(load<std::uint32_t>(last, sizeof(RegionAccess)), 4u);
    EXPECT_EQ(slow.accesses(), int{kMaxWrites} + 7);
}

TEST(VfioUserTurn, EndOfTheStreamComesAfterTheTurnsThatAreLeft) {
    constexpr int kWrites = 100;
    Served served;
    SlowRegisters slow(served.device);
    TestClient client = served.connect();
    ASSERT_TRUE(client.send_raw(posted_writes(client, kWrites)));
    slow.wait_for_first();
    client.close();
    slow.end_first();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    EXPECT_EQ(slow.accesses(), kWrites);
}

// ---- resets

constexpr milliseconds kGap{20};
constexpr int kBurst = 2;

ServerOptions few_resets(milliseconds gap = kGap) {
    ServerOptions options = kPatient;
    options.resets = {.burst = kBurst, .gap = gap};
    return options;
}

TEST(VfioUserTurn, ResetsBeyondABurstTakeTheirTime) {
    constexpr int kResets = 10;
    Served served(few_resets());
    TestClient client = served.connect();
    TestClient other(served.other_path());
    other.negotiate();
    const auto start = steady_clock::now();
    for (int i = 0; i < kResets; i++) client.send(Command::DeviceReset, {}, kNoReply);
    other.sync();
    client.sync();
    EXPECT_GE(steady_clock::now() - start, (kResets - kBurst) * kGap);
    EXPECT_EQ(served.device.calls().resets, kResets);
}

TEST(VfioUserTurn, ResetsByTheWritesOfOneMessageCountToo) {
    constexpr int kResets = 10;
    Served served(few_resets());
    served.device.during_call = [&] { served.device.reset_count++; };
    TestClient client = served.connect();
    const auto start = steady_clock::now();
    EXPECT_EQ(client.error_of(Command::RegionWriteMulti, writes_of_one_message(kResets)), 0);
    EXPECT_GE(steady_clock::now() - start, (kResets - 1 - kBurst) * kGap);
}

TEST(VfioUserTurn, EndOfAClientCountsAsAResetOfItsDevice) {
    constexpr int kClients = 6;
    Served served(few_resets());
    const auto start = steady_clock::now();
    for (int i = 1; i <= kClients; i++) {
        TestClient client = served.connect();
        client.close();
        ASSERT_TRUE(served.device.wait_for([i](const auto& calls) { return calls.detached == i; }));
    }
    EXPECT_GE(steady_clock::now() - start, (kClients - 1 - kBurst) * kGap);
}

TEST(VfioUserTurn, ClientThatIsHeldMayLeave) {
    Served served(few_resets(std::chrono::hours(1)));
    TestClient client = served.connect();
    for (int i = 0; i < 10; i++) client.send(Command::DeviceReset, {}, kNoReply);
    client.close();
    ASSERT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
    EXPECT_EQ(served.device.calls().resets, kBurst + 1);
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
