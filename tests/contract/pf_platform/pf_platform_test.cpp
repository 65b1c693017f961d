// SPDX-License-Identifier: MIT
//
// The contract of the PF uapi, the same for every platform.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tests/contract/pf_platform/pf_platform.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;
constexpr const char* kNoMessages = "this platform takes ioctls: there are no messages to frame";

class PfPlatformContract : public testing::TestWithParam<PfPlatformKind> {
protected:
    std::unique_ptr<PfPlatform> platform = PfPlatform::create(GetParam());
    std::unique_ptr<UapiClient> client = platform->connect();

    int provision(std::uint32_t vf, std::uint64_t bytes = 32 * kMiB) {
        vgpu_pf_provision request{};
        request.size = sizeof(request);
        request.vf = vf;
        request.vram_bytes = bytes;
        request.uuid[15] = static_cast<std::uint8_t>(0xa0 + vf);
        return client->request(VGPU_PF_OP_PROVISION, request);
    }
    vgpu_pf_vf get_vf(std::uint32_t vf) {
        vgpu_pf_vf out{};
        out.size = sizeof(out);
        out.vf = vf;
        EXPECT_EQ(client->request(VGPU_PF_OP_GET_VF, out), 0) << client->message();
        return out;
    }
    vgpu_pf_info get_info() {
        vgpu_pf_info out{};
        EXPECT_EQ(client->request(VGPU_PF_OP_GET_INFO, out), 0) << client->message();
        return out;
    }
    int control(std::uint32_t vf, std::uint32_t action, std::uint32_t generation = 0) {
        vgpu_pf_control request{sizeof(request), vf, generation,
                                static_cast<std::uint32_t>(action)};
        return client->request(VGPU_PF_OP_CONTROL, request);
    }
    int on_vf(std::uint32_t op, std::uint32_t vf, std::uint32_t generation = 0) {
        vgpu_pf_vf_ref request{sizeof(request), vf, generation, 0};
        return client->request(op, request);
    }
    /// Asks until the VF is in `state`; each question lets the platform make progress.
    bool reaches(std::uint32_t vf, vgpu_pf_vf_state state) {
        for (int i = 0; i < 20000; ++i)
            if (get_vf(vf).state == static_cast<std::uint32_t>(state)) return true;
        return false;
    }
    int release_fully(std::uint32_t vf) {
        if (const int error = on_vf(VGPU_PF_OP_RELEASE, vf)) return error;
        for (int i = 0; i < 20000; ++i) {
            const int error = on_vf(VGPU_PF_OP_SCRUB_DURABLE, vf);
            if (error != -EBUSY) return error;
        }
        return -ETIMEDOUT;
    }
};

TEST_P(PfPlatformContract, InfoDescribesTheDevice) {
    const vgpu_pf_info info = get_info();
    EXPECT_EQ(info.size, sizeof(info));
    EXPECT_EQ(info.uapi_version, VGPU_PF_UAPI_VERSION);
    EXPECT_EQ(info.total_vfs, 4u);
    EXPECT_EQ(info.vram_bytes, 512 * kMiB);
    EXPECT_EQ(info.vram_pf_bytes, 16 * kMiB);
    EXPECT_EQ(info.vram_free_bytes, 496 * kMiB);
    EXPECT_EQ(info.vram_unit_bytes, 16 * kMiB);
    EXPECT_EQ(info.vram_aperture_bytes, 256 * kMiB);
    EXPECT_EQ(info.cu_count, 8u);
    EXPECT_EQ(info.device_lost, 0u);
    EXPECT_EQ(info.lease_held, 0u);
    EXPECT_NE(info.boot_id, 0u);
    EXPECT_STREQ(info.name, "gpu0");
}

TEST_P(PfPlatformContract, AVfLivesFromProvisionToDurableScrub) {
    EXPECT_EQ(get_vf(1).state, VGPU_PF_VF_ABSENT);
    ASSERT_EQ(provision(1, 48 * kMiB), 0) << client->message();
    const vgpu_pf_vf vf = get_vf(1);
    EXPECT_EQ(vf.state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(vf.generation, 1u);
    EXPECT_EQ(vf.vram_bytes, 48 * kMiB);
    EXPECT_EQ(vf.cu_mask, 0xffu);
    EXPECT_EQ(vf.uuid[15], 0xa1);
    EXPECT_EQ(get_info().vram_free_bytes, 448 * kMiB);
    ASSERT_EQ(release_fully(1), 0) << client->message();
    EXPECT_EQ(get_vf(1).state, VGPU_PF_VF_ABSENT);
    EXPECT_EQ(get_info().vram_free_bytes, 496 * kMiB);
    ASSERT_EQ(provision(1), 0);
    EXPECT_EQ(get_vf(1).generation, 2u);
}

TEST_P(PfPlatformContract, AnyAbsentVfIsFoundAndItsNumberReturned) {
    vgpu_pf_provision request{};
    request.vram_bytes = 16 * kMiB;
    ASSERT_EQ(client->request(VGPU_PF_OP_PROVISION, request), 0) << client->message();
    EXPECT_EQ(request.vf, 1u);
    EXPECT_EQ(request.generation, 1u);
}

TEST_P(PfPlatformContract, ReleasedVramIsZero) {
    ASSERT_EQ(provision(1), 0);
    ASSERT_EQ(on_vf(VGPU_PF_OP_RELEASE, 1), 0);
    int error = -EBUSY;
    for (int i = 0; i < 1000 && error; ++i) error = on_vf(VGPU_PF_OP_VERIFY_ZERO, 1);
    EXPECT_EQ(error, 0) << client->message();
}

TEST_P(PfPlatformContract, ErrorsSayWhatWhereAndWhatHelps) {
    EXPECT_EQ(provision(1, 5 * kMiB), -EINVAL);
    EXPECT_THAT(client->message(), HasSubstr("VF1: VRAM of 5242880 bytes is not a multiple"));
    EXPECT_EQ(provision(9), -ENOENT);
    EXPECT_THAT(client->message(), HasSubstr("there is no VF9"));
    EXPECT_EQ(control(1, VGPU_PF_PAUSE), -EINVAL);
    EXPECT_THAT(client->message(), HasSubstr("PAUSE is not possible while ABSENT"));
    ASSERT_EQ(provision(1), 0);
    EXPECT_EQ(client->message(), "") << "no message without an error";
    EXPECT_EQ(provision(1), -EBUSY);
    EXPECT_EQ(control(1, VGPU_PF_PAUSE, 5), -ESTALE);
    EXPECT_EQ(control(1, 77), -EINVAL);
}

TEST_P(PfPlatformContract, PauseResumeStopResetChangeTheState) {
    ASSERT_EQ(provision(2), 0);
    ASSERT_EQ(control(2, VGPU_PF_PAUSE), 0);
    EXPECT_EQ(get_vf(2).state, VGPU_PF_VF_PAUSED);
    ASSERT_EQ(control(2, VGPU_PF_RESUME), 0);
    EXPECT_EQ(get_vf(2).state, VGPU_PF_VF_PROVISIONED);
    ASSERT_EQ(control(2, VGPU_PF_STOP), 0);
    EXPECT_EQ(get_vf(2).state, VGPU_PF_VF_STOPPED);
    ASSERT_EQ(control(2, VGPU_PF_RESET), 0);
    EXPECT_TRUE(reaches(2, VGPU_PF_VF_PROVISIONED));
    EXPECT_EQ(get_vf(2).flrs, 1u);
}

TEST_P(PfPlatformContract, TheRunTableIsGenerationChecked) {
    vgpu_pf_run_table table{};
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.generation, 0u);
    EXPECT_EQ(table.count, 4u) << "until somebody sets one, all VFs are equal";
    table = {};
    table.generation = 1;
    table.count = 2;
    table.entries[0] = {1, 2000};
    table.entries[1] = {2, 3000};
    EXPECT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, table), 0) << client->message();
    EXPECT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, table), -ESTALE);
    vgpu_pf_run_table back{};
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_RUN_TABLE, back), 0);
    EXPECT_EQ(back.generation, 1u);
    EXPECT_EQ(back.entries[1].quantum_us, 3000u);
}

TEST_P(PfPlatformContract, TheRunTableCarriesContracts) {
    vgpu_pf_run_table table{};
    table.generation = 1;
    table.count = 2;
    table.entries[0] = {1, 2000};
    table.entries[1] = {2, 3000};
    table.contracts[0].budget_ns = 1'000'000;
    table.contracts[0].period_ns = 10'000'000;
    table.contracts[0].ahead = 4;
    table.contracts[1].rate_ppm = 250'000;
    table.contracts[1].burst_ns = 5'000'000;
    table.contracts[1].priority_class = 1;
    table.contracts[1].flags = VGPU_PF_CONTRACT_STRICT;
    ASSERT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, table), 0) << client->message();
    vgpu_pf_run_table back{};
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_RUN_TABLE, back), 0);
    EXPECT_EQ(std::memcmp(back.contracts, table.contracts, sizeof(back.contracts)), 0);
    table.generation = 2;
    table.contracts[0].budget_ns = 11'000'000;
    EXPECT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, table), -EINVAL);
    EXPECT_THAT(client->message(), HasSubstr("VF1 has a budget of 11000000 ns"));
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_RUN_TABLE, back), 0);
    EXPECT_EQ(back.generation, 1u) << "a table that is refused changes nothing";
}

TEST_P(PfPlatformContract, AClientThatKnowsNoContractsSetsTablesWithoutThem) {
    struct Before {
        std::uint8_t bytes[offsetof(vgpu_pf_run_table, contracts)];
    };
    auto table = std::make_unique<vgpu_pf_run_table>();
    table->generation = 1;
    table->count = 1;
    table->entries[0] = {1, 2000};
    table->contracts[0].rate_ppm = 250'000;
    table->contracts[0].burst_ns = 5'000'000;
    ASSERT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, *table), 0) << client->message();
    table->generation = 2;
    table->size = sizeof(Before);
    auto before = std::make_unique<Before>();
    std::memcpy(before.get(), table.get(), sizeof(Before));
    ASSERT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, *before), 0) << client->message();
    auto back = std::make_unique<vgpu_pf_run_table>();
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_RUN_TABLE, *back), 0);
    EXPECT_EQ(back->generation, 2u);
    EXPECT_EQ(back->contracts[0].rate_ppm, 0u);
}

TEST_P(PfPlatformContract, TheLeaseHasOneHolderAndGoesWithItsClient) {
    auto other = platform->connect();
    vgpu_pf_lease lease{sizeof(lease), 1};
    ASSERT_EQ(client->request(VGPU_PF_OP_LEASE, lease), 0);
    EXPECT_EQ(get_info().lease_held, 1u);
    EXPECT_EQ(other->request(VGPU_PF_OP_LEASE, lease), -EBUSY);
    vgpu_pf_run_table table{};
    table.generation = 1;
    table.count = 1;
    table.entries[0] = {1, 2000};
    EXPECT_EQ(other->request(VGPU_PF_OP_SET_RUN_TABLE, table), -EBUSY);
    EXPECT_THAT(other->message(), HasSubstr("lease"));
    client.reset();
    int error = -EBUSY;
    for (int i = 0; i < 1000 && error; ++i) error = other->request(VGPU_PF_OP_LEASE, lease);
    EXPECT_EQ(error, 0);
    lease.acquire = 0;
    EXPECT_EQ(other->request(VGPU_PF_OP_LEASE, lease), 0);
    client = platform->connect();
    EXPECT_EQ(get_info().lease_held, 0u);
}

TEST_P(PfPlatformContract, EventsAppearInTheSharedRingWhichReadersCannotWrite) {
    vgpu_pf_event_ring_info info{};
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_EVENT_RING, info), 0);
    ASSERT_EQ(client->last().fds.size(), 2u);
    const UniqueFd ring = std::move(client->last().fds[0]);
    const UniqueFd wake = std::move(client->last().fds[1]);
    EXPECT_EQ(mmap(nullptr, info.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.get(), 0),
              MAP_FAILED);
    void* start = mmap(nullptr, info.bytes, PROT_READ, MAP_SHARED, ring.get(), 0);
    ASSERT_NE(start, MAP_FAILED);
    const Mapping mapping(start, info.bytes);
    const auto* head = static_cast<const vgpu_pf_event_ring_head*>(start);
    EXPECT_EQ(head->entries, info.entries);
    EXPECT_EQ(head->entry_bytes, sizeof(vgpu_pf_event));
    EXPECT_EQ(head->boot_id, get_info().boot_id);
    const std::uint64_t before = head->next_seq;
    ASSERT_EQ(provision(3), 0);
    pollfd wait{wake.get(), POLLIN, 0};
    EXPECT_EQ(poll(&wait, 1, 10000), 1);
    ASSERT_GT(head->next_seq, before);
    const auto* events = static_cast<const vgpu_pf_event*>(
        static_cast<const void*>(static_cast<const char*>(start) + info.events_offset));
    const vgpu_pf_event& event = events[(head->next_seq - 2) % info.entries];
    EXPECT_EQ(event.seq, head->next_seq - 1);
    EXPECT_EQ(event.type, VGPU_PF_EVENT_STATE);
    EXPECT_EQ(event.vf, 3u);
    EXPECT_EQ(event.arg, VGPU_PF_VF_PROVISIONED);
}

TEST_P(PfPlatformContract, OlderAndNewerStructsAreUnderstood) {
    const std::uint8_t longer[sizeof(vgpu_pf_info) + 64] = {};
    UapiReply reply = client->call(VGPU_PF_OP_GET_INFO, longer);
    EXPECT_EQ(reply.head.error, 0);
    EXPECT_EQ(reply.body.size(), sizeof(vgpu_pf_info));
    std::uint8_t excess[sizeof(vgpu_pf_info) + 64] = {};
    excess[sizeof(vgpu_pf_info) + 3] = 1;
    EXPECT_EQ(client->call(VGPU_PF_OP_GET_INFO, excess).head.error, -E2BIG);
    const std::uint8_t shorter[16] = {};
    reply = client->call(VGPU_PF_OP_GET_INFO, shorter);
    EXPECT_EQ(reply.head.error, 0);
    EXPECT_EQ(reply.body.size(), 16u);
    EXPECT_EQ(client->call(VGPU_PF_OP_GET_INFO, {}).head.error, 0);
}

TEST_P(PfPlatformContract, WhatIsReservedMustBeZero) {
    ASSERT_EQ(provision(1), 0) << client->message();
    for (const std::uint32_t op :
         {VGPU_PF_OP_RELEASE, VGPU_PF_OP_SCRUB_DURABLE, VGPU_PF_OP_VERIFY_ZERO}) {
        vgpu_pf_vf_ref ref{sizeof(ref), 1, 0, 1};
        EXPECT_EQ(client->request(op, ref), -EINVAL) << op;
        EXPECT_THAT(client->message(), HasSubstr("reserved"));
    }
    EXPECT_EQ(get_vf(1).state, VGPU_PF_VF_PROVISIONED);
    vgpu_pf_provision more{};
    more.vf = 2;
    more.vram_bytes = 16 * kMiB;
    more.reserved = 1;
    EXPECT_EQ(client->request(VGPU_PF_OP_PROVISION, more), -EINVAL);
    EXPECT_THAT(client->message(), HasSubstr("reserved"));
}

TEST_P(PfPlatformContract, ADumpIsOfTheWholePf) {
    ASSERT_EQ(provision(1), 0) << client->message();
    const UniqueFd file(memfd_create("dump", MFD_CLOEXEC));
    vgpu_pf_stream of_a_vf{sizeof(of_a_vf), 1, 0, 0, 0};
    EXPECT_EQ(client->request(VGPU_PF_OP_DUMP, of_a_vf, file.get()), -EINVAL);
    vgpu_pf_stream of_a_generation{sizeof(of_a_generation), 0, 1, 0, 0};
    EXPECT_EQ(client->request(VGPU_PF_OP_DUMP, of_a_generation, file.get()), -EINVAL);
    EXPECT_THAT(client->message(), HasSubstr("vf and generation"));
    vgpu_pf_stream dump{sizeof(dump), 0, 0, 0, 0};
    EXPECT_EQ(client->request(VGPU_PF_OP_DUMP, dump, file.get()), 0) << client->message();
}

/// It tells in an answer how much of the struct the platform knows.
TEST_P(PfPlatformContract, WhatARequestSaysInItsSizeIsNotLookedAt) {
    for (const std::uint32_t size : {0u, 1u, 0xffffffffu}) {
        vgpu_pf_vf vf{};
        vf.size = size;
        vf.vf = 1;
        ASSERT_EQ(client->request(VGPU_PF_OP_GET_VF, vf), 0) << client->message();
        EXPECT_EQ(vf.size, sizeof(vf));
        vgpu_pf_lease lease{size, 0};
        EXPECT_EQ(client->request(VGPU_PF_OP_LEASE, lease), 0) << client->message();
    }
}

TEST_P(PfPlatformContract, AnOperationThatDoesNotExistIsRefused) {
    constexpr std::uint32_t kNoOperation = 200;
    const std::uint8_t body[8] = {};
    EXPECT_EQ(client->call(kNoOperation, body).head.error, -EOPNOTSUPP);
    EXPECT_EQ(get_info().total_vfs, 4u);
}

TEST_P(PfPlatformContract, RepliesCarryCookieAndOperation) {
    const auto socket = platform->connect_socket();
    if (!socket) GTEST_SKIP() << kNoMessages;
    const std::uint8_t body[sizeof(vgpu_pf_info)] = {};
    const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, VGPU_PF_OP_GET_INFO,
                               sizeof(body), 0x1122334455667788ull};
    std::vector<std::uint8_t> message(sizeof(head) + sizeof(body));
    std::memcpy(message.data(), &head, sizeof(head));
    socket->send_raw(message);
    const UapiReply reply = socket->receive();
    EXPECT_EQ(reply.head.magic, VGPU_PF_UAPI_MAGIC);
    EXPECT_EQ(reply.head.cookie, 0x1122334455667788ull);
    EXPECT_EQ(reply.head.op, VGPU_PF_OP_GET_INFO);
}

TEST_P(PfPlatformContract, MalformedMessagesAreAnsweredAndTheClientGoesOn) {
    const auto socket = platform->connect_socket();
    if (!socket) GTEST_SKIP() << kNoMessages;
    const auto error_of = [&](vgpu_pf_request head, std::size_t bytes) {
        std::vector<std::uint8_t> message(std::max(bytes, sizeof(head)));
        std::memcpy(message.data(), &head, sizeof(head));
        message.resize(bytes);
        socket->send_raw(message);
        return socket->receive().head.error;
    };
    const vgpu_pf_request good{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, VGPU_PF_OP_GET_INFO, 8, 1};
    EXPECT_EQ(error_of(good, 10), -EBADMSG);
    EXPECT_EQ(error_of(good, sizeof(good)), -EBADMSG);
    EXPECT_EQ(error_of(good, 40000), -EBADMSG);
    vgpu_pf_request bad = good;
    bad.magic = 0;
    EXPECT_EQ(error_of(bad, sizeof(bad) + 8), -EBADMSG);
    bad = good;
    bad.version = 9;
    EXPECT_EQ(error_of(bad, sizeof(bad) + 8), -EBADMSG);
    bad = good;
    bad.op = 4711;
    EXPECT_EQ(error_of(bad, sizeof(bad) + 8), -EOPNOTSUPP);
    EXPECT_EQ(error_of(good, sizeof(good) + 8), 0);
}

TEST_P(PfPlatformContract, DescriptorsThatNobodyAskedForAreClosed) {
    const auto socket = platform->connect_socket();
    if (!socket) GTEST_SKIP() << kNoMessages;
    const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, VGPU_PF_OP_GET_INFO, 8, 1};
    std::vector<std::uint8_t> message(sizeof(head) + 8);
    std::memcpy(message.data(), &head, sizeof(head));
    const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const std::array fds{null.get(), null.get(), null.get(), null.get()};
    socket->send_raw(message);
    EXPECT_EQ(socket->receive().head.error, 0);
    const std::size_t before = platform->open_descriptors();
    for (std::size_t count = 1; count <= fds.size(); ++count)
        for (int i = 0; i < 50; ++i) {
            socket->send_raw(message, std::span(fds).first(count));
            EXPECT_EQ(socket->receive().head.error, count == 1 ? 0 : -EBADMSG) << count;
        }
    EXPECT_EQ(platform->open_descriptors(), before);
}

TEST_P(PfPlatformContract, AClientThatCannotBeAnsweredIsDroppedAndNobodyElseNotices) {
    const auto deaf = platform->connect_socket();
    if (!deaf) GTEST_SKIP() << kNoMessages;
    for (const std::uint32_t vf : {1u, 2u}) ASSERT_EQ(provision(vf), 0) << client->message();
    deaf->hear_nothing();
    for (const std::uint32_t vf : {1u, 2u}) {
        vgpu_pf_control reset{sizeof(reset), vf, 0, VGPU_PF_RESET};
        const void* generic = &reset;
        deaf->start(VGPU_PF_OP_CONTROL, {static_cast<const std::uint8_t*>(generic), sizeof(reset)});
    }
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_EQ(control(vf, VGPU_PF_RESET), 0) << client->message();
        EXPECT_TRUE(reaches(vf, VGPU_PF_VF_PROVISIONED));
    }
}

TEST_P(PfPlatformContract, StrangersMayLookButNotTouch) {
    if (!platform->can_play_strangers()) GTEST_SKIP() << "needs a second user";
    auto stranger = platform->connect(false);
    vgpu_pf_info info{};
    EXPECT_EQ(stranger->request(VGPU_PF_OP_GET_INFO, info), 0);
    vgpu_pf_provision request{};
    request.vf = 1;
    request.vram_bytes = 16 * kMiB;
    EXPECT_EQ(stranger->request(VGPU_PF_OP_PROVISION, request), -EPERM);
    vgpu_pf_lease lease{sizeof(lease), 1};
    EXPECT_EQ(stranger->request(VGPU_PF_OP_LEASE, lease), -EPERM);
    EXPECT_EQ(get_vf(1).state, VGPU_PF_VF_ABSENT);
}

TEST_P(PfPlatformContract, SaveAndRestoreGoThroughAnFd) {
    ASSERT_EQ(provision(1, 16 * kMiB), 0);
    ASSERT_EQ(control(1, VGPU_PF_PAUSE), 0);
    const UniqueFd file(memfd_create("stream", MFD_CLOEXEC));
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(client->request(VGPU_PF_OP_SAVE, save, file.get()), 0) << client->message();
    EXPECT_EQ(static_cast<off_t>(save.bytes), lseek(file.get(), 0, SEEK_END));
    lseek(file.get(), 0, SEEK_SET);
    vgpu_pf_stream restore{sizeof(restore), 1, 0, 0, 0};
    EXPECT_EQ(client->request(VGPU_PF_OP_RESTORE, restore, file.get()), 0) << client->message();
    EXPECT_EQ(restore.bytes, save.bytes);
    EXPECT_THAT(client->request(VGPU_PF_OP_SAVE, save), testing::AnyOf(-EINVAL, -EBADF))
        << "without an fd: none came with the message, or its number is no fd";
}

TEST_P(PfPlatformContract, APipeThatNobodyReadsBlocksNobody) {
    ASSERT_EQ(provision(1, 16 * kMiB), 0);
    ASSERT_EQ(control(1, VGPU_PF_PAUSE), 0);
    int ends[2];
    ASSERT_EQ(pipe2(ends, 0), 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    fcntl(writer.get(), F_SETPIPE_SZ, 4096);
    auto saver = platform->connect();
    const vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    std::uint8_t body[sizeof(save)];
    std::memcpy(body, &save, sizeof(save));
    saver->start(VGPU_PF_OP_SAVE, body, writer.get());
    writer.reset();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(get_info().total_vfs, 4u);
    std::vector<std::uint8_t> sink(65536);
    std::size_t total = 0;
    fcntl(reader.get(), F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 20000; ++i) {
        const ssize_t got = read(reader.get(), sink.data(), sink.size());
        if (got == 0) break;
        if (got > 0) total += static_cast<std::size_t>(got);
        (void)get_info();
    }
    const UapiReply reply = saver->await();
    EXPECT_EQ(reply.head.error, 0) << reply.head.message;
    EXPECT_GT(total, 4096u);
}

TEST_P(PfPlatformContract, ADumpIsText) {
    ASSERT_EQ(provision(1), 0);
    const UniqueFd file(memfd_create("dump", MFD_CLOEXEC));
    vgpu_pf_stream dump{sizeof(dump), 0, 0, 0, 0};
    ASSERT_EQ(client->request(VGPU_PF_OP_DUMP, dump, file.get()), 0) << client->message();
    std::string text(dump.bytes, ' ');
    ASSERT_EQ(pread(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    EXPECT_THAT(text, HasSubstr("VF1: PROVISIONED, generation 1"));
}

TEST_P(PfPlatformContract, VfsInServiceSurviveTheDeathOfTheCore) {
    ASSERT_EQ(provision(1, 48 * kMiB), 0);
    ASSERT_EQ(provision(2), 0);
    ASSERT_EQ(control(2, VGPU_PF_PAUSE), 0);
    vgpu_pf_run_table table{};
    table.generation = 1;
    table.count = 1;
    table.entries[0] = {1, 2345};
    table.contracts[0].rate_ppm = 345'000;
    table.contracts[0].burst_ns = 3'450'000;
    ASSERT_EQ(client->request(VGPU_PF_OP_SET_RUN_TABLE, table), 0) << client->message();
    const std::uint64_t boot = get_info().boot_id;
    platform->restart();
    client = platform->connect();
    EXPECT_NE(get_info().boot_id, boot);
    const vgpu_pf_vf one = get_vf(1);
    EXPECT_EQ(one.state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(one.generation, 1u);
    EXPECT_EQ(one.vram_bytes, 48 * kMiB);
    EXPECT_EQ(one.uuid[15], 0xa1);
    EXPECT_EQ(get_vf(2).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(get_info().vram_free_bytes, (496 - 48 - 32) * kMiB);
    vgpu_pf_run_table back{};
    ASSERT_EQ(client->request(VGPU_PF_OP_GET_RUN_TABLE, back), 0);
    EXPECT_EQ(back.generation, 1u);
    EXPECT_EQ(back.entries[0].quantum_us, 2345u);
    EXPECT_EQ(back.contracts[0].rate_ppm, 345'000u);
    EXPECT_EQ(back.contracts[0].burst_ns, 3'450'000u);
}

INSTANTIATE_TEST_SUITE_P(Platforms, PfPlatformContract, testing::ValuesIn(PfPlatform::kinds()),
                         [](const auto& test) { return name(test.param); });

}  // namespace
}  // namespace vgpu::test
