// SPDX-License-Identifier: MIT
//
// XeAdmin, XeEnableSteps and XeBackend against the model of xe's files at each level.
#include "daemon/backend/xe/backend.h"

#include "tests/unit/backend/backend_world.h"
#include "tests/unit/backend/fake_xe.h"

#include <gmock/gmock.h>
#include <cerrno>

namespace vgpu::daemon::xe {
namespace {

using namespace daemon::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMiB = 1u << 20;

class Xe : public ::testing::TestWithParam<XeKernel> {
protected:
    void start(XeKernel kernel) {
        bus.load("vfio-pci");
        card = std::make_unique<FakeXe>(bus, kernel);
        connect();
    }
    /// A new vgpud.
    void connect(bool is_observing = false) {
        link = std::make_shared<sriov::SriovLink>(
            files, sriov::SriovConfig{.address = "0000:03:00.0",
                                      .is_observing = is_observing,
                                      .accepts_approximations = true});
        backend = std::make_unique<XeBackend>(link, clock);
        const auto connected = backend->connect();
        ASSERT_TRUE(connected) << connected.error().cause;
    }
    [[nodiscard]] Abilities abilities() { return backend->get_info()->abilities; }
    Result<> provision(std::uint32_t vf, std::uint64_t vram_bytes = 0) {
        return backend->provision(wanted(vf, vram_bytes));
    }
    [[nodiscard]] Timing timing_of(unsigned function) {
        const auto& now = card->function(function);
        return {static_cast<std::uint32_t>(now.quantum_ms),
                static_cast<std::uint32_t>(now.timeout_us)};
    }
    [[nodiscard]] std::vector<std::string> writes_to(std::string_view file) const {
        std::vector<std::string> out;
        for (const std::string& one : files->writes())
            if (one.find(file) != std::string::npos) out.push_back(one);
        return out;
    }

    const std::shared_ptr<FakeSysfs> files = std::make_shared<FakeSysfs>();
    FakeBus bus{*files};
    ManualClock clock;
    std::unique_ptr<FakeXe> card;
    std::shared_ptr<sriov::SriovLink> link;
    std::unique_ptr<XeBackend> backend;
};

// --- levels

TEST_F(Xe, LevelsAreFoundByTheFilesThatAreThere) {
    start(XeKernel::k617);
    EXPECT_FALSE(abilities().can(Change::Weight));
    EXPECT_TRUE(abilities().can(Change::Vfs));
    EXPECT_FALSE(abilities().can(Change::VramBytes));
    start(XeKernel::k619);
    EXPECT_TRUE(abilities().can(Change::Weight));
    EXPECT_EQ(abilities()[Change::Stop].needs, Needs::Nothing) << "as with our PF core";
    EXPECT_FALSE(abilities().can(Change::VramBytes));
    start(XeKernel::k701);
    EXPECT_EQ(abilities()[Change::VramBytes].needs, Needs::VfIdle);
    EXPECT_EQ(abilities()[Change::VramBytes].unit, 2 * kMiB);
    EXPECT_EQ(abilities()[Change::QuantumUs].unit, 1000u);
}

TEST_F(Xe, AQuotaThatIsReadOnlyIsNotOffered) {
    start(XeKernel::k701);
    files->add(card->profile(1, "vram_quota"), "0");
    EXPECT_FALSE(abilities().can(Change::VramBytes));
    EXPECT_TRUE(abilities().can(Change::Weight));
}

TEST_F(Xe, TheUnitOfVramCountsTiles) {
    start(XeKernel::k701);
    files->add(card->pf.path("tile1/gt2/id"), "2");
    EXPECT_EQ(abilities()[Change::VramBytes].unit, 4 * kMiB);
}

// --- VRAM

TEST_F(Xe, AFirstSizeIsWrittenForAllVfsBeforeTheyAreEnabled) {
    start(XeKernel::k702);
    ASSERT_TRUE(provision(2, 512 * kMiB));
    EXPECT_EQ(card->function(1).vram, 0u) << "a VF that nobody has owns nothing";
    EXPECT_EQ(card->function(2).vram, 512 * kMiB);
    EXPECT_EQ(card->pf.count(), 2u);
    const auto all = files->writes();
    const auto quota = std::find(all.begin(), all.end(),
                                 "0000:03:00.0/sriov_admin/vf2/profile/vram_quota=536870912");
    const auto count = std::find(all.begin(), all.end(), "0000:03:00.0/sriov_numvfs=2");
    EXPECT_LT(quota, count);
    EXPECT_LT(count, all.end());
}

TEST_F(Xe, FreeVramIsWhatTheBarHasWithoutTheQuotasOfAllVfs) {
    start(XeKernel::k701);
    const std::uint64_t all = 16 * 1024 * kMiB;
    EXPECT_EQ(backend->get_info()->vram->bytes, all);
    ASSERT_TRUE(provision(1, 512 * kMiB));
    EXPECT_EQ(backend->get_info()->vram->free_bytes, all - 512 * kMiB);
    link->config.vram_bytes = 1024 * kMiB;
    EXPECT_EQ(backend->get_info()->vram->free_bytes, 512 * kMiB);
    files->show_instead(card->pf.path("resource"), "garbage");
    EXPECT_TRUE(backend->get_info()) << "a configured size needs no BAR";
    connect();
    EXPECT_THAT(backend->get_info().error().cause, HasSubstr("/resource reads 'garbage'"));
}

TEST_F(Xe, BehindASmallBarTheVramIsAsLargeAsTheBarCanBe) {
    start(XeKernel::k701);
    files->show_instead(card->pf.path("resource"),
                        "0x00000000a0000000 0x00000000a0ffffff 0x0000000000140204\n0x0 0x0 0x0\n"
                        "0x0000006000000000 0x000000600fffffff 0x000000000014220c");
    EXPECT_EQ(backend->get_info()->vram->bytes, 256 * kMiB);
    files->add(card->pf.path("resource2_resize"), "0000000000007f00");
    connect();
    EXPECT_EQ(backend->get_info()->vram->bytes, 16 * 1024 * kMiB);
}

TEST_F(Xe, WithoutSizesEveryVfGetsAnEqualShareAndNoQuotaIsWritten) {
    start(XeKernel::k701);
    link->config.vfs = 4;
    ASSERT_TRUE(provision(1));
    EXPECT_THAT(writes_to("vram_quota"), IsEmpty());
    EXPECT_EQ(backend->get_vf(1)->vram_bytes, card->function(4).vram);
    EXPECT_GT(card->function(4).vram, 0u);
}

TEST_F(Xe, AVfWithoutVramIsRefusedUntilItGetsASize) {
    start(XeKernel::k701);
    ASSERT_TRUE(provision(2, 512 * kMiB));
    const auto refused = provision(1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::OutOfRange);
    EXPECT_THAT(refused.error().cause, HasSubstr("set a multiple of 2097152 bytes"));
    EXPECT_TRUE(provision(1, 256 * kMiB));
}

TEST_F(Xe, AVfWithoutASizeKeepsItsVramWhenAVfWithASizeIsEnabled) {
    start(XeKernel::k701);
    ASSERT_TRUE(provision(1));
    const std::uint64_t share = card->function(1).vram;
    ASSERT_GT(share, 0u);
    const auto made = provision(2, 512 * kMiB);
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(card->function(1).vram, share);
    EXPECT_EQ(card->function(2).vram, 512 * kMiB);
    ASSERT_TRUE(backend->release(1, 0));
    EXPECT_EQ(card->function(1).vram, 0u);
}

TEST_F(Xe, VfsAreNotDisabledIfTheVramOfOneIsUnknown) {
    start(XeKernel::k701);
    ASSERT_TRUE(provision(1));
    files->show_instead(card->profile(1, "vram_quota"), "0");
    files->forget_writes();
    const auto refused = provision(2, 512 * kMiB);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("vf1 would lose its VRAM"));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(Xe, AnotherSizeIsFollowedByAResetBeforeAnybodyGetsTheVf) {
    start(XeKernel::k701);
    ASSERT_TRUE(provision(1, 512 * kMiB));
    ASSERT_TRUE(backend->release(1, 0));
    EXPECT_EQ(card->function(1).vram, 0u);
    ASSERT_TRUE(backend->confirm_scrub(1, 0));
    ASSERT_TRUE(provision(1, 1024 * kMiB));
    EXPECT_TRUE(card->is_clean(1));
    EXPECT_EQ(backend->get_vf(1)->vram_bytes, 1024 * kMiB);
}

TEST_F(Xe, TooMuchVramIsRefusedWithTheReason) {
    start(XeKernel::k701);
    ASSERT_TRUE(provision(1, 512 * kMiB));
    ASSERT_TRUE(backend->release(1, 0));
    ASSERT_TRUE(backend->confirm_scrub(1, 0));
    const auto refused = provision(1, card->vram_total + 2 * kMiB);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::PfRefused);
    EXPECT_THAT(refused.error().cause, HasSubstr("vf1/profile/vram_quota: No space left on device; "
                                                 "the GPU has less free VRAM than that"));
}

TEST_F(Xe, ASizeOnAKernelWithoutQuotasIsNotOffered) {
    start(XeKernel::k619);
    const auto refused = provision(1, 512 * kMiB);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NotOffered);
    EXPECT_THAT(refused.error().cause, HasSubstr("equal shares"));
}

TEST_F(Xe, ANewVgpudTakesARunningVfOverWithoutAWrite) {
    start(XeKernel::k702);
    ASSERT_TRUE(provision(1, 512 * kMiB));
    ASSERT_TRUE(link->pf->bind(1, AssignmentMode::VfioPci));
    card->pf.open(1);
    files->forget_writes();
    connect();
    EXPECT_EQ(backend->get_vf(1)->state, VGPU_PF_VF_ABSENT);
    ASSERT_TRUE(provision(1, 512 * kMiB));
    EXPECT_TRUE(backend->get_vf(1)->is_attached);
    EXPECT_THAT(files->writes(), IsEmpty());
}

// --- quanta

TEST_P(Xe, EveryFunctionHasAQuantumAndATimeoutAfterEnabling) {
    start(GetParam());
    link->config.vfs = 3;
    const auto made = provision(1);
    ASSERT_TRUE(made) << made.error().cause;
    for (unsigned function = 0; function <= 3; ++function)
        EXPECT_EQ(timing_of(function), (Timing{16, 16'000})) << function;
}

TEST_P(Xe, WeightsBecomeQuantaOfThePfAndTheVfs) {
    start(GetParam());
    for (std::uint32_t vf = 1; vf <= 3; ++vf) ASSERT_TRUE(provision(vf));
    const std::vector<VfShare> shares{{1, 100, 0, 2000}, {2, 200, 0, 2000}, {3, 400, 0, 2000}};
    ASSERT_TRUE(backend->set_shares(shares));
    EXPECT_EQ(timing_of(0).quantum_ms, 1u);
    EXPECT_EQ(timing_of(1), (Timing{16, 2000}));
    EXPECT_EQ(timing_of(2), (Timing{32, 2000}));
    EXPECT_EQ(timing_of(3), (Timing{64, 2000}));
    EXPECT_EQ(backend->quanta().vfs[0].worst_wait_us, 121'000u);
    files->forget_writes();
    ASSERT_TRUE(backend->set_shares(shares));
    EXPECT_THAT(files->writes(), IsEmpty()) << "values in force are not written again";
}

INSTANTIATE_TEST_SUITE_P(Levels, Xe,
                         ::testing::Values(XeKernel::k619, XeKernel::k701, XeKernel::k702));

TEST_F(Xe, AnAbsurdQuantumIsRefusedBeforeAnyWrite) {
    start(XeKernel::k702);
    ASSERT_TRUE(provision(1));
    files->forget_writes();
    EXPECT_EQ(backend->set_shares(std::vector<VfShare>{{1, 100, 1500, 0}}).error().id,
              ErrorId::OutOfRange);
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(Xe, SaysThatTilesDisagree) {
    start(XeKernel::k702);
    ASSERT_TRUE(provision(1));
    files->fail(card->profile(1, "exec_quantum_ms"), EUCLEAN);
    const auto refused = backend->set_shares(std::vector<VfShare>{{1, 100, 0, 0}});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("the tiles of the GPU disagree"));
}

TEST_F(Xe, NoticesThatADriverLimitsAValue) {
    start(XeKernel::k702);
    XeAdmin admin(*files, "0000:03:00.0");
    const auto refused = admin.set_timing(1, {kMaxQuantumMs + 1, 16'000});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("exec_quantum_ms reads 100000 after 100001 was written"));
}

TEST_F(Xe, StrictIsForTheWholeGpu) {
    start(XeKernel::k702);
    XeAdmin admin(*files, "0000:03:00.0");
    card->is_strict = true;
    EXPECT_EQ(admin.is_strict(), true);
    ASSERT_TRUE(admin.end_strict());
    EXPECT_FALSE(card->is_strict);
    EXPECT_EQ(admin.is_strict(), false);
    files->forget_writes();
    ASSERT_TRUE(admin.end_strict());
    EXPECT_THAT(files->writes(), IsEmpty());
    files->show_instead(card->profile(1, "sched_priority"), "fast");
    EXPECT_THAT(admin.is_strict().error().cause, HasSubstr("sched_priority reads 'fast', but"));
}

TEST_F(Xe, AStopEndsByAReset) {
    start(XeKernel::k702);
    ASSERT_TRUE(provision(1));
    ASSERT_TRUE(backend->control(1, 0, VGPU_PF_STOP));
    EXPECT_EQ(card->function(1).stops, 1u);
    EXPECT_EQ(backend->get_vf(1)->state, VGPU_PF_VF_STOPPED);
    ASSERT_TRUE(backend->control(1, 0, VGPU_PF_RESET));
    EXPECT_EQ(card->function(1).stops, 0u);
    EXPECT_EQ(backend->get_vf(1)->state, VGPU_PF_VF_PROVISIONED);
}

TEST_F(Xe, APauseIsNotOffered) {
    start(XeKernel::k702);
    ASSERT_TRUE(provision(1));
    EXPECT_FALSE(abilities().can(Change::Pause));
    EXPECT_EQ(backend->control(1, 0, VGPU_PF_PAUSE).error().id, ErrorId::NotOffered);
}

}  // namespace
}  // namespace vgpu::daemon::xe
