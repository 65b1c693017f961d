// SPDX-License-Identifier: MIT
//
// Streams that end before their time: what becomes of the memory that the device writes to, and of
// the VF.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"
#include "tests/unit/core/platform_watch.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kSave = 1000;  // token

/// A SAVE of VF1 whose operation the device has begun and takes `bulk_ns` for.
struct SaveUnderWay {
    explicit SaveUnderWay(std::uint64_t bulk_ns) {
        rig.make_busy(1);
        rig.make_busy(2);
        rig.control(1, VGPU_PF_PAUSE);
        rig.gpu.bulk_ns = bulk_ns;
        begin();
        rig.gpu.run_for(kMs);
    }
    int begin() { return vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_SAVE, &save, kSave); }
    [[nodiscard]] bool is_device_busy() const {
        std::uint32_t status = 0;
        rig.pf->os->ops->mmio_read(rig.pf->os, REG_VGPU_OP_STATUS, &status);
        return status == VGPU_OP_BUSY;
    }
    void run_until_done(std::uint64_t longest_ns) {
        const std::uint64_t end = rig.gpu.now() + longest_ns;
        while (!rig.gpu.is_done(kSave) && rig.gpu.now() < end) rig.gpu.run_for(kMs);
        ASSERT_TRUE(rig.gpu.is_done(kSave));
    }

    Rig rig;
    PlatformWatch watch{rig.gpu};
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
};

TEST(StreamMemory, IsKeptThroughADeviceResetUntilTheDeviceIsDoneWithIt) {
    SaveUnderWay test(1500 * kMs);
    Rig& rig = test.rig;
    rig.gpu.vf(2).flr_never_ends = true;
    rig.gpu.device_reset_ns = kSecond;
    test.watch.on_free = [&] { EXPECT_FALSE(test.is_device_busy()); };
    rig.control(2, VGPU_PF_RESET);
    test.run_until_done(2 * kSecond);
    ASSERT_EQ(rig.gpu.device_resets, 1u);
    EXPECT_EQ(rig.gpu.done[kSave].first, -EIO);
    ASSERT_TRUE(test.is_device_busy());
    EXPECT_EQ(test.watch.pieces(), 1u);
    while (test.is_device_busy()) rig.gpu.run_for(kMs);
    rig.gpu.run_for(20 * kMs);
    EXPECT_EQ(test.watch.pieces(), 0u) << "before the reset is over";
    test.watch.on_free = nullptr;
}

TEST(StreamMemory, IsKeptAfterATimeoutUntilTheDeviceIsDoneWithIt) {
    SaveUnderWay test(15 * kSecond);
    Rig& rig = test.rig;
    test.watch.on_free = [&] { EXPECT_FALSE(test.is_device_busy()); };
    test.run_until_done(12 * kSecond);
    EXPECT_EQ(rig.gpu.done[kSave].first, -ETIMEDOUT);
    EXPECT_EQ(test.watch.pieces(), 1u);
    rig.gpu.run_for(5 * kSecond);
    EXPECT_EQ(test.watch.pieces(), 0u);
}

TEST(StreamMemory, OfAStreamThatWaitsForTheDeviceIsItsOwn) {
    SaveUnderWay test(15 * kSecond);
    Rig& rig = test.rig;
    test.run_until_done(12 * kSecond);
    rig.gpu.done.clear();
    ASSERT_EQ(test.begin(), -EINPROGRESS);
    EXPECT_EQ(test.watch.pieces(), 2u);
    rig.gpu.bulk_ns = 20 * kUs;
    test.run_until_done(6 * kSecond);
    EXPECT_EQ(rig.gpu.done[kSave].first, 0);
    EXPECT_EQ(test.watch.pieces(), 0u);
}

/// One access fails, with nothing else wrong with the device.
TEST(StreamMemory, IsItsOwnWhileTheDeviceDoesNotSayWhetherItIsDone) {
    SaveUnderWay test(kSecond);
    Rig& rig = test.rig;
    test.watch.on_free = [&] { EXPECT_FALSE(test.is_device_busy()); };
    rig.gpu.lose_interrupts = true;
    rig.control(2, VGPU_PF_STOP);
    for (int i = 0; i < 20 && !rig.gpu.is_done(kSave); ++i) {
        rig.gpu.fail_after = 0;
        rig.gpu.run_for(6 * kMs);
    }
    rig.gpu.fail_after.reset();
    EXPECT_FALSE(rig.gpu.is_done(kSave)) << "an answer that does not come is no failure";
    EXPECT_EQ(test.watch.pieces(), 1u);
    rig.gpu.run_for(100 * kSecond);
    ASSERT_TRUE(rig.gpu.is_done(kSave));
    EXPECT_EQ(rig.gpu.done[kSave].first, 0);
    EXPECT_EQ(test.watch.pieces(), 0u);
}

/// The platform has seen to it that a device it detaches, parks or leaves does not reach our
/// memory.
TEST(StreamMemory, IsFreeWhenTheDeviceIsLetGo) {
    for (const auto let_go : {vgpu_pf_surprise_remove, vgpu_pf_suspend, vgpu_pf_shutdown}) {
        SaveUnderWay test(15 * kSecond);
        let_go(test.rig.pf.get());
        EXPECT_EQ(test.rig.gpu.done[kSave].first, -ENODEV);
        EXPECT_EQ(test.watch.pieces(), 0u);
    }
    for (const auto let_go : {vgpu_pf_surprise_remove, vgpu_pf_suspend, vgpu_pf_shutdown}) {
        SaveUnderWay test(15 * kSecond);
        test.run_until_done(12 * kSecond);
        EXPECT_EQ(test.watch.pieces(), 1u);
        let_go(test.rig.pf.get());
        EXPECT_EQ(test.watch.pieces(), 0u);
    }
}

TEST(StreamMemory, OfADumpIsItsTextOnly) {
    for (const std::uint32_t cus : {8u, 64u}) {
        Rig rig({.cu_count = cus});
        PlatformWatch watch(rig.gpu);
        vgpu_pf_stream dump{sizeof(dump), 0, 0, 0, 0};
        ASSERT_EQ(rig.request(VGPU_PF_OP_DUMP, dump), 0);
        EXPECT_GT(dump.bytes, 0u);
        EXPECT_LE(dump.bytes, watch.largest_bytes());
        EXPECT_EQ(watch.largest_bytes(), 64u << 10) << cus;
        EXPECT_EQ(watch.pieces(), 0u);
    }
}

TEST(StreamMemory, OfASaveHasRoomForAllCus) {
    Rig rig({.cu_count = 64});
    rig.provision(1, 16);
    rig.control(1, VGPU_PF_PAUSE);
    PlatformWatch watch(rig.gpu);
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    ASSERT_EQ(rig.request(VGPU_PF_OP_SAVE, save), 0);
    EXPECT_EQ(watch.largest_bytes(), VGPU_STREAM_BUFFER_BASE + 64 * VGPU_STREAM_BUFFER_OF_CU);
}

// --- the head of a stream

/// What a SAVE of a VF of 16 MiB writes.
std::vector<std::uint8_t> saved_stream(bool has_driver) {
    Rig rig;
    rig.provision(1, 16);
    if (has_driver) rig.load_driver(1);
    rig.control(1, VGPU_PF_PAUSE);
    vgpu_pf_stream save{sizeof(save), 1, 0, 0, 0};
    EXPECT_EQ(rig.request(VGPU_PF_OP_SAVE, save), 0);
    return rig.gpu.stream_out;
}

int restore(Rig& rig, const std::vector<std::uint8_t>& stream, std::size_t bytes) {
    const auto end = stream.begin() + static_cast<std::ptrdiff_t>(bytes);
    rig.gpu.stream_in.assign({stream.begin(), end});
    vgpu_pf_stream request{sizeof(request), 1, 0, 0, 0};
    return rig.request(VGPU_PF_OP_RESTORE, request);
}

constexpr std::size_t kHeadBytes = 64;
constexpr std::size_t kStateBytes = 24 + 4096;  // with its section's head

TEST(Restore, RequiresTheDeviceStateFirstAndOnce) {
    const std::vector<std::uint8_t> good = saved_stream(false);
    const auto state = good.begin() + kHeadBytes, rest = state + kStateBytes;
    std::vector<std::uint8_t> none(good.begin(), state), two(good.begin(), rest);
    none.insert(none.end(), rest, good.end());
    two.insert(two.end(), state, good.end());
    for (const auto& stream : {none, two}) {
        Rig rig;
        rig.provision(1, 16);
        rig.control(1, VGPU_PF_PAUSE);
        EXPECT_EQ(restore(rig, stream, stream.size()), -EBADMSG);
        EXPECT_THAT(rig.message(),
                    testing::HasSubstr("device state is not the first section, or comes twice"));
    }
}

struct DriverCase {
    bool was_loaded, is_in_stream;
};

class DriverOfAStream : public testing::TestWithParam<DriverCase> {
protected:
    void SetUp() override {
        rig.provision(1, 16);
        if (GetParam().was_loaded) rig.load_driver(1);
        rig.control(1, VGPU_PF_PAUSE);
    }
    vgpu_pf_vf_state state_after_resume() {
        EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
        return rig.vf(1).state;
    }
    static vgpu_pf_vf_state resumed(bool is_loaded) {
        return is_loaded ? VGPU_PF_VF_READY : VGPU_PF_VF_PROVISIONED;
    }

    const std::vector<std::uint8_t> stream = saved_stream(GetParam().is_in_stream);
    Rig rig;
};

TEST_P(DriverOfAStream, IsTheVfsOnceItIsRestored) {
    ASSERT_EQ(restore(rig, stream, stream.size()), 0);
    EXPECT_EQ(state_after_resume(), resumed(GetParam().is_in_stream));
}

TEST_P(DriverOfAStream, HasNotTheFullAccessOfTheOneBefore) {
    ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    rig.gpu.guest_sends(1, MAILBOX_REQ_GPU_INIT_ACCESS);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    ASSERT_EQ(rig.get_vf(1).in_full_access, 1u);
    ASSERT_EQ(restore(rig, stream, stream.size()), 0);
    EXPECT_EQ(rig.get_vf(1).in_full_access, 0u);
    EXPECT_EQ(HW_GET(VGPU_GATES, REGWR_EN, rig.gpu.bank(1, REG_VGPU_VF0_GATES)), 0u);
}

TEST_P(DriverOfAStream, IsNotTheVfsIfItEndsBeforeItChangesAnything) {
    for (const std::size_t bytes : {kHeadBytes, kHeadBytes + 10, kHeadBytes + kStateBytes - 1})
        EXPECT_EQ(restore(rig, stream, bytes), -EBADMSG);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(state_after_resume(), resumed(GetParam().was_loaded));
}

TEST_P(DriverOfAStream, IsNotTheVfsIfItEndsHalfWay) {
    EXPECT_EQ(restore(rig, stream, kHeadBytes + kStateBytes), -EBADMSG);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_FALSE(rig.vf(1).control.driver_loaded);
}

/// Its FLR takes the state that was restored, and with it the driver; the rest does not follow.
TEST_P(DriverOfAStream, IsGoneIfTheFunctionIsResetHalfWay) {
    rig.gpu.attach_client(1, true);
    rig.gpu.run_for(kMs);
    rig.gpu.stream_in.assign(stream);
    rig.gpu.bulk_ns = 10 * kMs;
    vgpu_pf_stream request{sizeof(request), 1, 0, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_RESTORE, &request, kSave), -EINPROGRESS);
    rig.gpu.run_for(15 * kMs);
    rig.gpu.guest_resets_function(1);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.gpu.done[kSave].first, -ECANCELED);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST_P(DriverOfAStream, RunsNotBeforeItIsRestored) {
    rig.gpu.stream_in.assign(stream);
    rig.gpu.bulk_ns = 10 * kMs;
    vgpu_pf_stream request{sizeof(request), 1, 0, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_RESTORE, &request, kSave), -EINPROGRESS);
    rig.gpu.run_for(15 * kMs);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), -EBUSY);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.gpu.done[kSave].first, 0);
    EXPECT_EQ(state_after_resume(), resumed(GetParam().is_in_stream));
}

INSTANTIATE_TEST_SUITE_P(Every, DriverOfAStream,
                         testing::Values(DriverCase{false, true}, DriverCase{true, false},
                                         DriverCase{true, true}, DriverCase{false, false}));

// --- a VF that leaves its pause

/// A RESTORE of VF1 that has loaded the state, in the middle of the VRAM.
struct RestoreUnderWay {
    RestoreUnderWay() {
        rig.provision(1, 16);
        rig.load_driver(1);
        rig.control(1, VGPU_PF_PAUSE);
        begin(10 * kMs);
        rig.gpu.run_for(15 * kMs);
    }
    void begin(std::uint64_t bulk_ns) {
        const std::vector<std::uint8_t> stream = saved_stream(true);
        rig.gpu.stream_in.assign(stream);
        rig.gpu.bulk_ns = bulk_ns;
        ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_RESTORE, &request, kSave),
                  -EINPROGRESS);
    }

    Rig rig;
    vgpu_pf_stream request{sizeof(request), 1, 0, 0, 0};
};

TEST(HalfRestoredVf, IsStoppedThoughItHasBeenResumed) {
    RestoreUnderWay test;
    Rig& rig = test.rig;
    rig.post(1, VGPU_VF_EVENT_RESUME, VGPU_PF_REASON_NONE);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.gpu.done[kSave].first, -ECANCELED);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
}

TEST(HalfRestoredVf, IsNotStoppedIfItHasBeenReset) {
    RestoreUnderWay test;
    Rig& rig = test.rig;
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(2 * kSecond);
    ASSERT_EQ(rig.gpu.done[kSave].first, -ECANCELED);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PROVISIONED);
}

/// The reader is slow, and the VF has run when it goes on.
TEST(SaveOfAPausedVf, EndsWithItsPauseThoughAnotherOneFollows) {
    Rig rig;
    rig.provision(1, 16);
    rig.load_driver(1);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    rig.gpu.stream_room = 100;
    vgpu_pf_stream request{sizeof(request), 1, 0, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_SAVE, &request, kSave), -EINPROGRESS);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
    rig.gpu.stream_room.reset();
    vgpu_pf_stream_ready(rig.pf.get());
    rig.gpu.run_for(kSecond);
    ASSERT_TRUE(rig.gpu.is_done(kSave));
    EXPECT_EQ(rig.gpu.done[kSave].first, -ECANCELED);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
}

/// By its VMM, or the VMM closes it.
TEST(SaveOfAPausedVf, EndsWithAnErrorIfTheFunctionIsResetMeanwhile) {
    for (const bool is_closed : {false, true}) {
        Rig rig;
        rig.provision(1, 16);
        rig.load_driver(1);
        rig.gpu.attach_client(1, true);
        ASSERT_EQ(rig.control(1, VGPU_PF_PAUSE), 0);
        rig.gpu.stream_room = 100;
        vgpu_pf_stream request{sizeof(request), 1, 0, 0, 0};
        ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_SAVE, &request, kSave),
                  -EINPROGRESS);
        rig.gpu.run_for(kSecond);
        if (is_closed)
            rig.gpu.attach_client(1, false);
        else
            rig.gpu.guest_resets_function(1);
        rig.gpu.run_for(kMs);
        rig.gpu.stream_room.reset();
        vgpu_pf_stream_ready(rig.pf.get());
        rig.gpu.run_for(kSecond);
        ASSERT_TRUE(rig.gpu.is_done(kSave));
        EXPECT_EQ(rig.gpu.done[kSave].first, -ECANCELED);
        EXPECT_THAT(rig.gpu.done[kSave].second, testing::HasSubstr("was resumed or reset"));
        EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    }
}

TEST(HalfRestoredVf, IsStoppedForTheCoreThatComesAfter) {
    RestoreUnderWay test;
    Rig& rig = test.rig;
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    rig.restart_core();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_STOPPED);
    EXPECT_NE(rig.control(1, VGPU_PF_RESUME), 0);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESET), 0);
}

TEST(HalfRestoredVf, IsPausedAgainWhenTheRestHasCome) {
    RestoreUnderWay test;
    Rig& rig = test.rig;
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.gpu.done[kSave].first, 0);
    rig.restart_core();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
}

/// Its window passes after a minute, and the RESTORE takes one and a half.
TEST(HalfRestoredVf, IsNotResumedByTheGuardThatPausedIt) {
    RestoreUnderWay test;
    Rig& rig = test.rig;
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.gpu.done[kSave].first, 0);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESUME), 0);
    rig.gpu.done.clear();
    rig.provoke_pause(1);
    ASSERT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    test.begin(5 * kSecond);
    rig.gpu.run_for(70 * kSecond);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_PAUSED);
    EXPECT_FALSE(rig.gpu.is_done(kSave));
    rig.gpu.run_for(60 * kSecond);
    ASSERT_TRUE(rig.gpu.is_done(kSave));
    EXPECT_EQ(rig.gpu.done[kSave].first, 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
}

}  // namespace
}  // namespace vgpu::test
