// SPDX-License-Identifier: MIT
//
// Threads that wait for a client's reply: with locks the io thread wants, on the io thread itself,
// several at once, and for clients that are slow, silent, busy sending or gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <optional>

#include "tests/unit/vfio_user/fake_device.h"
#include "tests/unit/vfio_user/message_dma.h"

namespace vgpu::softgpu::vfio_user::test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr std::uint32_t kSmall = FakeDevice::kSmall;
constexpr std::uint32_t kMemory = FakeDevice::kMemory;
constexpr auto kRead = std::uint16_t(Command::DmaRead);

Bytes access_of(std::uint64_t offset, std::uint32_t region, std::uint32_t count) {
    return as_bytes(RegionAccess{offset, region, count});
}

Bytes posted_write(TestClient& client, std::uint64_t offset, std::uint32_t value) {
    return client.message(Command::RegionWrite, join(access_of(offset, kSmall, 4), as_bytes(value)),
                          kNoReply);
}

Bytes assignment(TestClient& client, std::uint32_t start, std::uint32_t count) {
    const IrqSet set{
        .flags = kIrqDataEventfd | kIrqActionTrigger, .index = 2, .start = start, .count = count};
    return client.message(Command::DeviceSetIrqs, as_bytes(set), kNoReply);
}

std::uint32_t word(TestClient& client, std::uint64_t offset) {
    return load<std::uint32_t>(client.read_region(kSmall, offset, 4).body, sizeof(RegionAccess));
}

/// The lock of a VF: a worker holds it during a transfer, a served request wants it.
class VfLock {
public:
    explicit VfLock(Served& served) {
        served.device.during_call = [this] {
            if (!is_awaited_.try_wait()) is_awaited_.count_down();
            const std::lock_guard lock(mutex_);
        };
    }
    /// What `work` returns that is done with the lock held; it is held when this returns.
    template <typename Work> auto with_lock(Work work) {
        auto result = std::async(std::launch::async, [this, work = std::move(work)] {
            const std::lock_guard lock(mutex_);
            is_held_.count_down();
            return work();
        });
        is_held_.wait();
        return result;
    }
    /// A dma_read() with the lock held; returns when the lock is held.
    std::future<std::errc> read_with_lock(std::shared_ptr<Peer> peer, std::span<std::byte> out) {
        return with_lock([peer = std::move(peer), out] { return peer->dma_read(Iova{0}, out); });
    }
    void wait_until_io_thread_wants_it() { is_awaited_.wait(); }

private:
    std::mutex mutex_;
    std::latch is_held_{1};
    std::latch is_awaited_{1};
};

/// Makes the device read client memory inside the next call, on the io thread.
void read_in_next_call(Served& served, std::span<std::byte> out, std::promise<std::errc>& result) {
    served.device.during_call = [&served, out, &result, is_done = false]() mutable {
        if (!std::exchange(is_done, true))
            result.set_value(served.device.peer()->dma_read(Iova{0x1000}, out));
    };
}

TEST(VfioUserWaiting, ReplyArrivesThoughTheIoThreadWaitsForTheCallersLock) {
    Served served;
    VfLock vf(served);
    TestClient client = served.connect();
    Bytes out(8);
    auto result = vf.read_with_lock(served.device.peer(), out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    const auto id = client.send(Command::RegionRead, access_of(0, kSmall, 4));
    vf.wait_until_io_thread_wants_it();
    answer_read(client, *request, numbers(8));
    EXPECT_EQ(result.get(), std::errc{});
    EXPECT_EQ(out, numbers(8));
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.id, id);
    EXPECT_FALSE(reply->is_error());
}

TEST(VfioUserWaiting, RequestOfAnotherClientMayWantTheCallersLockToo) {
    Served served;
    VfLock vf(served);
    served.other.during_call = served.device.during_call;
    TestClient client = served.connect();
    TestClient pf(served.other_path());
    pf.negotiate();
    Bytes out(8);
    auto result = vf.read_with_lock(served.device.peer(), out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    pf.send(Command::RegionRead, access_of(0, kSmall, 4));
    vf.wait_until_io_thread_wants_it();
    answer_read(client, *request, numbers(8));
    EXPECT_EQ(result.get(), std::errc{});
    EXPECT_TRUE(pf.receive());
}

TEST(VfioUserWaiting, ReplyMayArriveInOnePieceWithARequestThatWantsTheLock) {
    Served served;
    TestClient client = served.connect();
    for (int round = 0; round < 100; round++) {  // either thread may be the first to read
        VfLock vf(served);
        Bytes out(8);
        auto result = vf.read_with_lock(served.device.peer(), out);
        const auto request = client.receive();
        ASSERT_TRUE(request);
        const Header reply{.id = request->header.id,
                           .command = kRead,
                           .size = sizeof(Header) + sizeof(DmaAccess) + 8,
                           .flags = kTypeReply};
        const Bytes body = join(as_bytes(request->as<DmaAccess>()), numbers(8));
        ASSERT_TRUE(
            client.send_raw(join(client.message(Command::RegionRead, access_of(0, kSmall, 4)),
                                 join(join(as_bytes(reply), body), posted_write(client, 0, 1)))));
        ASSERT_EQ(result.get(), std::errc{});
        ASSERT_TRUE(client.receive());
        client.sync();
    }
    EXPECT_EQ(served.counters().unexpected_replies, 0u);
}

TEST(VfioUserWaiting, IoThreadReachesClientMemoryInsideADeviceCall) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    std::promise<std::errc> result;
    read_in_next_call(served, out, result);
    const auto id = client.send(Command::RegionRead, access_of(0, kSmall, 4));
    const auto request = client.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->header.command, kRead);
    answer_read(client, *request, numbers(8));
    EXPECT_EQ(result.get_future().get(), std::errc{});
    EXPECT_EQ(out, numbers(8));
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.id, id);
}

TEST(VfioUserWaiting, IoThreadReachesClientMemoryInPostedWork) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    std::promise<std::errc> result;
    served.server->post(
        [&] { result.set_value(served.device.peer()->dma_read(Iova{0x1000}, out)); });
    const auto request = client.receive();
    ASSERT_TRUE(request);
    answer_read(client, *request, numbers(8));
    EXPECT_EQ(result.get_future().get(), std::errc{});
    client.sync();
}

TEST(VfioUserWaiting, RequestsThatArriveMeanwhileKeepTheirOrderAndDescriptors) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    std::promise<std::errc> result;
    read_in_next_call(served, out, result);
    client.send(Command::RegionRead, access_of(0, kSmall, 4));
    const auto request = client.receive();
    ASSERT_TRUE(request);

    const OwnedFd fd = new_eventfd();
    const int one[] = {fd.get()};
    const int two[] = {fd.get(), fd.get()};
    ASSERT_TRUE(client.send_raw(posted_write(client, 0, 1)));
    ASSERT_TRUE(client.send_raw(assignment(client, 0, 2), two));
    ASSERT_TRUE(client.send_raw(posted_write(client, 0, 2)));
    ASSERT_TRUE(client.send_raw(assignment(client, 2, 1)));
    answer_read(client, *request, numbers(8));
    ASSERT_TRUE(client.send_raw(assignment(client, 3, 1), one));
    ASSERT_TRUE(client.send_raw(posted_write(client, 0, 3)));
    EXPECT_EQ(result.get_future().get(), std::errc{});
    const auto reply = client.receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(load<std::uint32_t>(reply->body, sizeof(RegionAccess)), 0u) << "the first request";
    EXPECT_EQ(word(client, 0), 3u);
    EXPECT_THAT(served.device.calls().irqs,
                ElementsAre("trigger 2 0+2 fds 1 1", "trigger 2 2+1 fds 0", "trigger 2 3+1 fds 1"));
}

TEST(VfioUserWaiting, RequestBeingServedIsNotDisturbedByWhatIsRead) {
    Served served;
    TestClient client = served.connect();
    Bytes out(1u << 20);
    std::promise<std::errc> result;
    read_in_next_call(served, out, result);
    const Bytes data = numbers(1u << 20);
    client.send(Command::RegionWrite,
                join(access_of(0, kMemory, static_cast<std::uint32_t>(data.size())), data));
    const auto request = client.receive();
    ASSERT_TRUE(request);
    client.post_write(kMemory, 1u << 20, Bytes(1u << 20, std::byte{0xee}));
    answer_read(client, *request, Bytes(out.size(), std::byte{0xdd}));
    EXPECT_EQ(result.get_future().get(), std::errc{});
    ASSERT_TRUE(client.receive());
    const Bytes got = client.read_region(kMemory, 0, 1u << 20).body;
    EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin() + sizeof(RegionAccess)));
}

TEST(VfioUserWaiting, DescriptorsOfTheRequestBeingServedStay) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    std::promise<std::errc> result;
    read_in_next_call(served, out, result);
    const OwnedFd fd = new_eventfd();
    const int two[] = {fd.get(), fd.get()};
    ASSERT_TRUE(client.send_raw(assignment(client, 0, 2), two));
    const auto request = client.receive();
    ASSERT_TRUE(request);
    ASSERT_TRUE(client.send_raw(assignment(client, 3, 1), std::span(two).first(1)));
    answer_read(client, *request, numbers(8));
    client.sync();
    EXPECT_THAT(served.device.calls().irqs,
                ElementsAre("trigger 2 0+2 fds 1 1", "trigger 2 3+1 fds 1"));
}

TEST(VfioUserWaiting, TwoWaitersGetTheirRepliesWithTheIoThreadBlocked) {
    Served served;
    VfLock vf(served);
    TestClient client = served.connect();
    Bytes low(8);
    Bytes high(8);
    auto first = vf.read_with_lock(served.device.peer(), low);
    const auto one = client.receive();
    auto second = read_later(served.device.peer(), 0x2000, high);
    const auto two = client.receive();
    ASSERT_TRUE(one && two);
    client.send(Command::RegionRead, access_of(0, kSmall, 4));
    vf.wait_until_io_thread_wants_it();
    answer_read(client, *two, Bytes(8, std::byte{2}));
    EXPECT_EQ(second.get(), std::errc{});
    answer_read(client, *one, Bytes(8, std::byte{1}));
    EXPECT_EQ(first.get(), std::errc{});
    EXPECT_EQ(low, Bytes(8, std::byte{1}));
    EXPECT_EQ(high, Bytes(8, std::byte{2}));
    EXPECT_TRUE(client.receive());
}

TEST(VfioUserWaiting, WhenTheReadingThreadHasItsReplyAnotherReadsOn) {
    ServerOptions options = kPatient;
    options.dma_limits.stalls.grace = milliseconds(0);  // no thread looks again by itself
    Served served(options);
    std::latch is_served(1);
    std::latch may_go_on(1);
    served.device.during_call = [&] {
        is_served.count_down();
        may_go_on.wait();
    };
    TestClient client = served.connect();
    client.send(Command::RegionRead, access_of(0, kSmall, 4));
    is_served.wait();
    for (int round = 0; round < 100; round++) {  // either may be the reading one
        Bytes low(8);
        Bytes high(8);
        auto first = read_later(served.device.peer(), 0, low);
        auto one = client.receive();
        auto second = read_later(served.device.peer(), 0, high);
        auto two = client.receive();
        ASSERT_TRUE(one && two);
        if (round % 2 != 0) {
            std::swap(first, second);
            std::swap(one, two);
        }
        answer_read(client, *one, numbers(8));
        EXPECT_EQ(first.get(), std::errc{});
        answer_read(client, *two, numbers(8));
        EXPECT_EQ(second.get(), std::errc{});
    }
    may_go_on.count_down();
    EXPECT_TRUE(client.receive());
}

TEST(VfioUserWaiting, IoThreadAndAWorkerMayWaitAtTheSameTime) {
    Served served;
    TestClient client = served.connect();
    for (int round = 0; round < 50; round++) {
        Bytes inner(8);
        Bytes outer(8);
        std::promise<std::errc> result;
        read_in_next_call(served, inner, result);
        auto worker = read_later(served.device.peer(), 0x2000, outer);
        auto first = client.receive();
        client.send(Command::RegionRead, access_of(0, kSmall, 4));
        auto second = client.receive();
        ASSERT_TRUE(first && second);
        if (round % 2 != 0) std::swap(first, second);
        answer_read(client, *first, as_bytes(first->as<DmaAccess>().address));
        answer_read(client, *second, as_bytes(second->as<DmaAccess>().address));
        EXPECT_EQ(result.get_future().get(), std::errc{});
        EXPECT_EQ(worker.get(), std::errc{});
        EXPECT_EQ(inner, as_bytes(std::uint64_t{0x1000}));
        EXPECT_EQ(outer, as_bytes(std::uint64_t{0x2000}));
        ASSERT_TRUE(client.receive());
    }
}

TEST(VfioUserWaiting, ClientThatAnswersNothingBeforeItsOwnRequestIsAnsweredGetsItAnswered) {
    Served served(ServerOptions{.dma_limits = {.answer = milliseconds(50)}});
    VfLock vf(served);
    TestClient client = served.connect();
    Bytes out(8);
    auto result = vf.read_with_lock(served.device.peer(), out);
    ASSERT_TRUE(client.receive());
    const auto id = client.send(Command::RegionRead, access_of(0, kSmall, 4));
    const auto reply = client.receive();  // as QEMU: before the answer to the device
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.id, id);
    EXPECT_EQ(result.get(), std::errc::timed_out);
}

TEST(VfioUserWaiting, SilentClientHoldsUpTheDeviceForItsBudgetOnly) {
    const StallBudget::Spec stalls{.capacity = milliseconds(30), .refill_percent = 0};
    Served served(ServerOptions{.dma_limits = {.stalls = stalls}});
    TestClient client = served.connect();
    const auto peer = served.device.peer();
    Bytes out(8);
    EXPECT_EQ(peer->dma_read(Iova{0}, out), std::errc::timed_out);
    EXPECT_EQ(served.counters().dma_messages, 1u);
    for (int i = 0; i < 1000; i++) {
        EXPECT_EQ(peer->dma_read(Iova{0}, out), std::errc::timed_out);
        EXPECT_EQ(peer->dma_write(Iova{0}, out), std::errc::timed_out);
    }
    EXPECT_EQ(served.counters().dma_messages, 1u) << "later ones fail at once";
    EXPECT_EQ(served.counters().dma_failures, 2001u);
    EXPECT_TRUE(client.receive());
    client.sync();
}

TEST(VfioUserWaiting, SilentClientMayAnswerAgainWhenItsBudgetHasRefilled) {
    const StallBudget::Spec stalls{.capacity = milliseconds(30), .refill_percent = 100};
    Served served(ServerOptions{.dma_limits = {.stalls = stalls}});
    TestClient client = served.connect();
    Bytes out(8);
    auto result = std::async(std::launch::async, [&, peer = served.device.peer()] {
        std::errc error{};
        do error = peer->dma_read(Iova{0}, out);
        while (error == std::errc::timed_out);
        return error;
    });
    ASSERT_TRUE(client.receive());  // not answered
    do {
        const auto request = client.receive();
        ASSERT_TRUE(request);
        answer_read(client, *request, numbers(8));
    } while (result.wait_for(milliseconds(1000)) == std::future_status::timeout);
    EXPECT_EQ(result.get(), std::errc{});
    EXPECT_EQ(out, numbers(8));
}

TEST(VfioUserWaiting, BudgetOfOneClientIsNotAnothers) {
    const StallBudget::Spec stalls{.capacity = milliseconds(5), .refill_percent = 0};
    Served served(ServerOptions{.dma_limits = {.stalls = stalls}});
    TestClient silent = served.connect();
    TestClient good(served.other_path());
    good.negotiate();
    Bytes out(8);
    EXPECT_EQ(served.device.peer()->dma_read(Iova{0}, out), std::errc::timed_out);
    auto result = read_later(served.other.peer(), 0, out);
    EXPECT_TRUE(good.receive()) << "is still asked";
    good.close();
    EXPECT_NE(result.get(), std::errc{});
}

// ---- many short waits

/// Every answer comes within the grace, and all of the budget of hold-ups is what there is.
ServerOptions short_hold_ups() {
    return {.dma_limits = {
                .answer = std::chrono::seconds(10),
                .stalls = {.grace = std::chrono::seconds(10), .capacity = std::chrono::seconds(10)},
                .blocking = {.grace = milliseconds(0),
                             .capacity = milliseconds(30),
                             .reserve = milliseconds(30),
                             .refill_percent = 0}}};
}

/// As many as are answered, up to `most`.
int count_reads(const std::shared_ptr<Peer>& peer, int max) {
    Bytes out(8);
    for (int i = 0; i < max; i++)
        if (peer->dma_read(Iova{0x1000}, out) != std::errc{}) return i;
    return max;
}

/// False: it was no read of the device's.
bool answer_after_a_while(TestClient& client, const std::future<int>& reads) {
    const auto request = client.receive();
    if (!request || request->header.command != kRead) return false;
    (void)reads.wait_for(milliseconds(1));
    answer_read(client, *request, numbers(8));
    return true;
}

/// Until the reply to the client's own request comes.
int answer_until_reply(TestClient& client, std::future<int>& reads) {
    while (answer_after_a_while(client, reads)) {
    }
    return reads.get();
}

constexpr int kMaxReads = 300;  // a millisecond each, ten times the budget

TEST(VfioUserWaiting, ManyShortWaitsInOneRequestEndWithTheirBudget) {
    Served served(short_hold_ups());
    TestClient client = served.connect();
    std::promise<int> made;
    auto reads = made.get_future();
    served.device.during_call = [&] {
        made.set_value(count_reads(served.device.peer(), kMaxReads));
    };
    client.send(Command::RegionWrite, join(access_of(0, kSmall, 4), as_bytes(std::uint32_t{1})));
    EXPECT_LT(answer_until_reply(client, reads), kMaxReads / 2);
    EXPECT_EQ(served.counters().dma_failures, 1u);
}

TEST(VfioUserWaiting, ManyShortWaitsWithALockThatTheIoThreadWantsEndWithTheirBudget) {
    Served served(short_hold_ups());
    VfLock vf(served);
    TestClient client = served.connect();
    auto reads = vf.with_lock([&vf, peer = served.device.peer()] {
        vf.wait_until_io_thread_wants_it();
        return count_reads(peer, kMaxReads);
    });
    client.send(Command::RegionWrite, join(access_of(0, kSmall, 4), as_bytes(std::uint32_t{1})));
    EXPECT_LT(answer_until_reply(client, reads), kMaxReads / 2);
}

TEST(VfioUserWaiting, ManyShortWaitsDuringAParkEndWithTheirBudget) {
    Served served(short_hold_ups());
    TestClient client = served.connect();
    served.park->begin(BusySince::Clock::now());
    auto reads = std::async(std::launch::async, [&served] {
        const int made = count_reads(served.device.peer(), kMaxReads);
        served.server->hang_up(served.device);
        return made;
    });
    EXPECT_LT(answer_until_reply(client, reads), kMaxReads / 2);
}

TEST(VfioUserWaiting, ManyShortWaitsAreFreeWhileTheIoThreadHasNothingToDo) {
    constexpr int kReads = 90;
    Served served(short_hold_ups());
    TestClient client = served.connect();
    auto reads = std::async(std::launch::async,
                            [peer = served.device.peer()] { return count_reads(peer, kReads); });
    for (int i = 0; i < kReads; i++) ASSERT_TRUE(answer_after_a_while(client, reads));
    EXPECT_EQ(reads.get(), kReads);
}

TEST(VfioUserWaiting, FloodOfRequestsEndsWithTheWaitAndIsServedInOrder) {
    Served served(ServerOptions{.dma_limits = {.answer = milliseconds(100)}});
    VfLock vf(served);
    TestClient client = served.connect();
    Bytes out(8);
    auto result = vf.read_with_lock(served.device.peer(), out);
    ASSERT_TRUE(client.receive());
    constexpr std::uint8_t kWrites = 16;  // of 1 MiB: more than is queued
    for (std::uint8_t i = 1; i <= kWrites; i++)
        client.post_write(kMemory, 0, Bytes(1u << 20, std::byte{i}));
    EXPECT_EQ(result.get(), std::errc::timed_out);
    const Bytes got = client.read_region(kMemory, 0, 4).body;
    EXPECT_EQ(load<std::uint32_t>(got, sizeof(RegionAccess)), 0x10101010u);
}

TEST(VfioUserWaiting, FloodDoesNotKeepAReplyAwayWhileTheIoThreadServes) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    auto result = read_later(served.device.peer(), 0, out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    for (int i = 0; i < 16; i++) client.post_write(kMemory, 0, Bytes(1u << 20));
    answer_read(client, *request, numbers(8));
    EXPECT_EQ(result.get(), std::errc{});
    client.sync();
}

TEST(VfioUserWaiting, FloodOfRepliesEndsWithTheWait) {
    Served served(ServerOptions{.dma_limits = {.answer = milliseconds(50)}});
    TestClient client = served.connect();
    Bytes out(8);
    auto result = read_later(served.device.peer(), 0, out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    Header wrong = request->header;
    wrong.id = static_cast<std::uint16_t>(wrong.id + 1);
    do client.reply(wrong, Bytes(24));
    while (result.wait_for(milliseconds(0)) == std::future_status::timeout);
    EXPECT_EQ(result.get(), std::errc::timed_out);
    client.sync();
}

TEST(VfioUserWaiting, ClientMayVanishWhileTheIoThreadWaitsForTheCallersLock) {
    Served served;
    VfLock vf(served);
    TestClient client = served.connect();
    Bytes out(8);
    auto result = vf.read_with_lock(served.device.peer(), out);
    const auto request = client.receive();
    ASSERT_TRUE(request);
    client.send(Command::RegionRead, access_of(0, kSmall, 4));
    vf.wait_until_io_thread_wants_it();
    ASSERT_TRUE(client.send_raw(std::span(request->body).first(9)));  // of some message
    client.close();
    EXPECT_EQ(result.get(), std::errc::not_connected);
    EXPECT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
}

TEST(VfioUserWaiting, ClientMayVanishWhileTheIoThreadWaitsForItsReply) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    std::promise<std::errc> result;
    read_in_next_call(served, out, result);
    client.send(Command::RegionRead, access_of(0, kSmall, 4));
    ASSERT_TRUE(client.receive());
    client.close();
    EXPECT_EQ(result.get_future().get(), std::errc::not_connected);
    EXPECT_TRUE(served.device.wait_for([](const auto& calls) { return calls.detached == 1; }));
}

TEST(VfioUserWaiting, BrokenStreamFailsTheTransferAndClosesTheClient) {
    Served served;
    TestClient client = served.connect();
    Bytes out(8);
    std::promise<std::errc> result;
    read_in_next_call(served, out, result);
    client.send(Command::RegionRead, access_of(0, kSmall, 4));
    ASSERT_TRUE(client.receive());
    ASSERT_TRUE(client.send_raw(as_bytes(Header{.id = 9, .command = 9, .size = 1})));
    EXPECT_EQ(result.get_future().get(), std::errc::not_connected);
    ASSERT_TRUE(client.receive());  // to the region read
    const auto refusal = client.receive();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->header.error, std::uint32_t{EMSGSIZE});
    EXPECT_TRUE(client.is_closed_by_server());
    EXPECT_EQ(served.counters().malformed, 1u);
}

TEST(VfioUserWaiting, EndOfTheServerEndsEveryWait) {
    std::optional<Served> served(std::in_place);
    TestClient client = served->connect();
    Bytes out(8);
    Bytes more(8);
    auto first = read_later(served->device.peer(), 0, out);
    auto second = read_later(served->device.peer(), 0, more);
    ASSERT_TRUE(client.receive());
    ASSERT_TRUE(client.receive());
    served.reset();
    EXPECT_EQ(first.get(), std::errc::not_connected);
    EXPECT_EQ(second.get(), std::errc::not_connected);
}

TEST(VfioUserWaiting, ClosedSessionIsSeenByTheClientThoughThePeerIsKept) {
    Served served;
    TestClient client = served.connect();
    const auto peer = served.device.peer();
    ASSERT_TRUE(client.send_raw(as_bytes(Header{.size = 1})));
    ASSERT_TRUE(client.receive());
    EXPECT_TRUE(client.is_closed_by_server());
}

}  // namespace
}  // namespace vgpu::softgpu::vfio_user::test
