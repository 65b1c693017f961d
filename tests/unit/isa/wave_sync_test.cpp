// SPDX-License-Identifier: MIT
//
// Global wave sync: barriers and semaphores between work-groups (ds_gws_*), by the manual's words
// on DS_GWS_INIT, DS_GWS_BARRIER and DS_GWS_SEMA_*.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

namespace enc = softgpu::isa::enc;
using softgpu::isa::GlobalWaveSync;
using softgpu::isa::info;
using softgpu::isa::Op;
using softgpu::isa::ScalarReg;
using softgpu::isa::StopReason;
using softgpu::isa::Workgroup;
using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;

constexpr u32 kEndpgm = 0xbf810000, kValue = 3, kMarkFirst = 0xbe940081, kMarkSecond = 0xbe940082;

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

/// On v3, with the resource in the offset.
Words sync_words(Op op, u32 resource = 0) {
    return {enc::kDs | put(enc::kDsOp, info(op).code) | put(enc::kDsGds, 1) | resource,
            info(op).data_regs == 0 ? 0 : put(enc::kDsAddress, kValue)};
}

/// Groups of one wave that all run the same program, each as long as it can.
class Groups {
public:
    explicit Groups(std::size_t count, const Words& program) : groups_(count) {
        Words words = program;
        words.push_back(kEndpgm);
        gpu_.load_words(words);
        gpu_.set_grid({});
        gpu_.wave_sync = &sync;
        for (Workgroup& group : groups_) {
            gpu_.start(group, {0, 0, 0});
            group.waves[0].state.scalar[static_cast<u32>(ScalarReg::M0)] = 0;
        }
    }
    /// What the first active lane of v3 holds.
    void set_value(u32 value) {
        for (Workgroup& group : groups_) group.waves[0].vgprs[kValue].lane.fill(value);
    }
    Workgroup& operator[](std::size_t i) { return groups_[i]; }
    softgpu::isa::WaveState& wave(std::size_t i) { return groups_[i].waves[0].state; }
    /// Whether the group has come to its end.
    bool run(std::size_t i) {
        result = softgpu::isa::run(groups_[i], gpu_.context());
        return result.reason == StopReason::AllWavesEnded;
    }
    void take_sync_away() { gpu_.wave_sync = nullptr; }

    GlobalWaveSync sync;
    softgpu::isa::RunResult result;

private:
    FlatGpu gpu_{1u << 20};
    std::vector<Workgroup> groups_;
};

Words operator+(Words a, const Words& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

TEST(WaveSync, BarrierHoldsWavesUntilTheLastHasCome) {
    Groups groups(3, sync_words(Op::ds_gws_barrier));
    groups.sync.init(0, 2);
    groups.set_value(2);
    EXPECT_FALSE(groups.run(0));
    EXPECT_TRUE(groups.result.only_sleepers) << "something else may run";
    EXPECT_FALSE(groups.run(1));
    EXPECT_FALSE(groups.run(0)) << "nobody is counted twice";
    EXPECT_TRUE(groups.run(2));
    EXPECT_TRUE(groups.run(1));
    EXPECT_TRUE(groups.run(0));
}

TEST(WaveSync, TheLastWaveSaysHowManyTheNextBarrierIsFor) {
    Groups groups(3, sync_words(Op::ds_gws_barrier) + sync_words(Op::ds_gws_barrier));
    groups.sync.init(0, 2);
    groups.set_value(0);  // from then on each wave is alone
    EXPECT_FALSE(groups.run(0));
    EXPECT_FALSE(groups.run(1));
    EXPECT_TRUE(groups.run(2));
    EXPECT_TRUE(groups.run(0));
    EXPECT_TRUE(groups.run(1));
}

TEST(WaveSync, AsManyBarriersAsAGridLikesHoldAndLetGo) {
    constexpr u32 barriers = 140'000;
    GlobalWaveSync sync;
    sync.init(0, 1);
    for (u32 i = 0; i < barriers; ++i) {
        GlobalWaveSync::Ticket first = 0, second = 0;
        ASSERT_FALSE(sync.arrive(0, 1, first)) << i;
        ASSERT_TRUE(sync.arrive(0, 1, second)) << i;
        ASSERT_TRUE(sync.arrive(0, 1, first)) << i;
    }
}

TEST(WaveSync, InitTakesTheFirstActiveLanesValue) {
    constexpr u32 lane = 9;
    Groups groups(2, sync_words(Op::ds_gws_init, 5));
    groups.set_value(77);
    groups[0].waves[0].vgprs[kValue].lane[lane] = 1;
    groups.wave(0).set_pair(ScalarReg::Exec, ~std::uint64_t{0} << lane);
    EXPECT_TRUE(groups.run(0));
    GlobalWaveSync::Ticket first = 0, second = 0;
    EXPECT_FALSE(groups.sync.arrive(5, 1, first));
    EXPECT_TRUE(groups.sync.arrive(5, 1, second));
    EXPECT_TRUE(groups.sync.arrive(5, 1, first));
}

TEST(WaveSync, ResourceIsTheOffsetPlusM0) {
    Groups groups(1, sync_words(Op::ds_gws_sema_v, 60));
    groups.wave(0).scalar[static_cast<u32>(ScalarReg::M0)] = (10u << 16) | 0xffff;
    EXPECT_TRUE(groups.run(0));
    GlobalWaveSync::Ticket ticket = 0;
    EXPECT_FALSE(groups.sync.acquire(60, ticket));
    ticket = 0;
    EXPECT_TRUE(groups.sync.acquire((60 + 10) % GlobalWaveSync::kResources, ticket));
}

TEST(WaveSync, SemaphoreLetsOneWaveGoOnForEachSignal) {
    Groups groups(3, sync_words(Op::ds_gws_sema_p));
    groups.sync.init(0, 0);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(groups.run(i));
    Groups signals(1, sync_words(Op::ds_gws_sema_v) + sync_words(Op::ds_gws_sema_v));
    signals.sync = groups.sync;
    EXPECT_TRUE(signals.run(0));
    groups.sync = signals.sync;
    EXPECT_TRUE(groups.run(1));
    EXPECT_TRUE(groups.run(0));
    EXPECT_FALSE(groups.run(2));
}

TEST(WaveSync, SignalsAreKeptForWavesThatComeLater) {
    Groups groups(3, sync_words(Op::ds_gws_sema_br, 1) + sync_words(Op::ds_gws_sema_p, 1));
    groups.sync.init(1, 0);
    groups.set_value(2);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(groups.run(i));
    GlobalWaveSync::Ticket ticket = 0;
    for (unsigned left = 3; left > 0; --left) EXPECT_TRUE(groups.sync.acquire(1, ticket));
    EXPECT_FALSE(groups.sync.acquire(1, ticket));
}

TEST(WaveSync, ReleaseAllFreesThoseThatWaitAndNobodyAfterThem) {
    Groups groups(3, sync_words(Op::ds_gws_sema_p));
    groups.sync.init(0, 0);
    EXPECT_FALSE(groups.run(0));
    EXPECT_FALSE(groups.run(1));
    Groups release(1, sync_words(Op::ds_gws_sema_release_all));
    release.sync = groups.sync;
    EXPECT_TRUE(release.run(0));
    groups.sync = release.sync;
    EXPECT_TRUE(groups.run(0));
    EXPECT_TRUE(groups.run(1));
    EXPECT_FALSE(groups.run(2));
}

TEST(WaveSync, WavesThatWaitCanBeSavedAndLoaded) {
    Groups groups(2, sync_words(Op::ds_gws_barrier) + Words{kMarkFirst} +
                         sync_words(Op::ds_gws_barrier) + Words{kMarkSecond});
    groups.sync.init(0, 1);
    groups.set_value(1);
    const auto move = [&](std::size_t i) {
        std::vector<std::byte> stream;
        softgpu::Writer writer(stream);
        groups[i].save(writer);
        groups[i] = {};
        softgpu::Reader reader(stream);
        ASSERT_TRUE(groups[i].load(reader));
    };
    constexpr u32 mark = 20;
    EXPECT_FALSE(groups.run(0));
    move(0);
    EXPECT_FALSE(groups.run(0));
    EXPECT_EQ(groups.wave(0).scalar[mark], 0u);
    EXPECT_FALSE(groups.run(1)) << "goes on, and waits at the second barrier";
    move(1);
    EXPECT_EQ(groups.wave(1).scalar[mark], 1u);
    EXPECT_TRUE(groups.run(0)) << "the last at the second barrier";
    EXPECT_TRUE(groups.run(1));
    EXPECT_EQ(groups.wave(0).scalar[mark], 2u);
    EXPECT_EQ(groups.wave(1).scalar[mark], 2u);
}

TEST(WaveSync, ProcessWithoutItGetsAnIllegalInstruction) {
    for (const Op op : {Op::ds_gws_init, Op::ds_gws_barrier, Op::ds_gws_sema_v, Op::ds_gws_sema_p,
                        Op::ds_gws_sema_br, Op::ds_gws_sema_release_all}) {
        Groups groups(1, sync_words(op));
        groups.take_sync_away();
        EXPECT_FALSE(groups.run(0));
        EXPECT_EQ(groups.result.reason, StopReason::IllegalInstruction) << info(op).name;
    }
}

TEST(WaveSync, ThreadsMeetAtEveryBarrier) {
    constexpr u32 threads = 4, rounds = 500;
    GlobalWaveSync sync;
    sync.init(0, threads - 1);
    std::atomic<u32> arrived{0};
    std::atomic<u32> early{0};
    const auto work = [&] {
        for (u32 round = 1; round <= rounds; ++round) {
            arrived.fetch_add(1);
            GlobalWaveSync::Ticket ticket = 0;
            while (!sync.arrive(0, threads - 1, ticket)) std::this_thread::yield();
            if (arrived.load() < round * threads) early.fetch_add(1);
        }
    };
    {
        std::vector<std::jthread> workers;
        for (u32 i = 0; i < threads; ++i) workers.emplace_back(work);
    }
    EXPECT_EQ(arrived.load(), threads * rounds);
    EXPECT_EQ(early.load(), 0u);
}

}  // namespace
}  // namespace vgpu::test
