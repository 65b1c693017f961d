// SPDX-License-Identifier: MIT
#include "tests/unit/daemon/gps_oracle.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakePf;
using ::testing::HasSubstr;
using testing::World;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

std::map<std::uint32_t, std::uint64_t> totals_of(const vgpu_pf_run_table& table) {
    std::map<std::uint32_t, std::uint64_t> totals;
    for (std::uint32_t i = 0; i < table.count; ++i)
        totals[table.entries[i].vf] += table.entries[i].quantum_us;
    return totals;
}

bool has_admin_event(World& world, EventKind kind) {
    const auto events = world.manager->take_admin_events();
    return std::any_of(events.begin(), events.end(),
                       [kind](const AdminEvent& event) { return event.kind == kind; });
}

TEST(Gpu, CreateIsDurableBeforeItIsDone) {
    World world;
    const auto made = world.create({{"name", std::string("train")}});
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(*made, (Target{"gpu0", 1}));
    EXPECT_EQ(world.pf().log.front(), "provision 1");
    EXPECT_THAT(world.state.file(), HasSubstr("train"));
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "train");
    EXPECT_EQ(world.gpu().view(1).socket, "/run/v/vf1.sock");
}

TEST(Gpu, TableFollowsTheWeights) {
    World world;
    for (const std::uint64_t weight : {1u, 1u, 2u, 4u})
        ASSERT_TRUE(world.create({{"weight", weight}}));
    world.pass(20ms);
    const auto totals = totals_of(world.pf().table);
    ASSERT_EQ(totals.size(), 4u);
    EXPECT_EQ(totals.at(1), totals.at(2));
    EXPECT_EQ(totals.at(3), 2 * totals.at(1));
    EXPECT_EQ(totals.at(4), 4 * totals.at(1));
    ASSERT_TRUE(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{4}}}));
    world.pass(20ms);
    const auto after = totals_of(world.pf().table);
    EXPECT_EQ(after.at(1), after.at(4));
}

TEST(Gpu, WeightsAndQuantaWrittenInSysfsAreTakenAndKept) {
    World world;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.create({}));
    world.pf().push(VGPU_PF_EVENT_POLICY, 1, VGPU_PF_POLICY_WEIGHT, 300);
    world.pf().push(VGPU_PF_EVENT_POLICY, 0, VGPU_PF_POLICY_EXEC_QUANTUM_MS, 2);
    world.pass(20ms);
    EXPECT_TRUE(has_admin_event(world, EventKind::Policy));
    const auto totals = totals_of(world.pf().table);
    EXPECT_EQ(totals.at(1), 3 * totals.at(2));
    world.start();
    EXPECT_EQ(world.gpu().view(1).record.spec.weight, 300u);
    EXPECT_EQ(world.gpu().view(2).record.spec.quantum_us, 2000u);
}

TEST(Gpu, PausedVfLeavesTheTableAndComesBack) {
    World world;
    ASSERT_TRUE(world.create({}));
    ASSERT_TRUE(world.create({}));
    ASSERT_TRUE(world.control({"gpu0", 1}, VGPU_PF_PAUSE, {}));
    world.pass(20ms);
    EXPECT_FALSE(totals_of(world.pf().table).contains(1));
    ASSERT_TRUE(world.control({"gpu0", 1}, VGPU_PF_RESUME, {}));
    world.pass(20ms);
    EXPECT_TRUE(totals_of(world.pf().table).contains(1));
}

TEST(Gpu, ResumeOfAStoppedVfPutsItBackByAReset) {
    World world;
    ASSERT_TRUE(world.create({}));
    ASSERT_TRUE(world.control({"gpu0", 1}, VGPU_PF_STOP, {}));
    world.pass(20ms);
    EXPECT_TRUE(world.control({"gpu0", 1}, VGPU_PF_RESUME, {}));
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Gpu, AVfInQuarantineComesBackOnlyByTheCommandThatTheRefusalNames) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pf().set_state(1, VGPU_PF_VF_QUARANTINED);
    world.pass(20ms);
    for (const auto action : {VGPU_PF_RESET, VGPU_PF_RESUME}) {
        const auto refused = world.control({"gpu0", 1}, action, {});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::WrongState);
        EXPECT_THAT(refused.error().cause,
                    ::testing::HasSubstr("'vgpuctl resume gpu0/vf1 --clear-quarantine'"));
    }
    EXPECT_TRUE(world.control({"gpu0", 1}, VGPU_PF_CLEAR_QUARANTINE, {}));
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_PROVISIONED);
}

TEST(Gpu, PausingAnAttachedVfWantsForce) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pf().vfs.at(1).attached = 1;
    const auto refused = world.control({"gpu0", 1}, VGPU_PF_PAUSE, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::WrongState);
    EXPECT_TRUE(world.control({"gpu0", 1}, VGPU_PF_PAUSE, {{"force", true}}));
}

TEST(Gpu, DestroyingAnAttachedVfWantsForceAndSaysWhoHasIt) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("train")}}));
    world.pf().vfs.at(1).attached = 1;
    const auto refused = world.destroy({"gpu0", 1});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::WrongState);
    EXPECT_EQ(refused.error().cause,
              "gpu0/vf1 ('train') is attached: a client has it open (/run/v/vf1.sock), and its "
              "driver would lose the VF; shut down the client first, or destroy the VF with option "
              "'force'");
    EXPECT_FALSE(world.state.record().vfs.at(1).is_releasing);
    EXPECT_TRUE(world.destroy({"gpu0", 1}, {{"force", true}}));
    EXPECT_EQ(world.pf().vfs.at(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING));
}

TEST(Gpu, WhoHasAVfOpenIsNamedWhereItIsKnown) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("train")}}));
    world.owners.clients["/run/v/vf1.sock"] = "qemu-system-x86 (pid 71)";
    EXPECT_EQ(world.gpu().view(1).client, "");
    world.pf().vfs.at(1).attached = 1;
    world.pass(2s);
    EXPECT_EQ(world.gpu().view(1).client, "qemu-system-x86 (pid 71)");
    EXPECT_THAT(world.destroy({"gpu0", 1}).error().cause,
                HasSubstr("is attached: qemu-system-x86 (pid 71) has it open (/run/v/vf1.sock)"));
    world.owners.clients["/run/v/vf1.sock"] = "qemu-system-x86 (pid 72)";
    world.pass(2s);
    EXPECT_EQ(world.gpu().view(1).client, "qemu-system-x86 (pid 72)") << "another has it now";
}

TEST(Gpu, ANumberWhoseSocketIsOpenIsTheLastChoice) {
    World world;
    for (std::uint32_t vf = 1; vf <= world.pf().info.total_vfs; ++vf) {
        if (vf == 2) continue;
        vgpu_pf_vf open{};
        open.vf = vf;
        open.attached = 1;
        world.pf().vfs[vf] = open;
    }
    const auto first = world.create({});
    ASSERT_TRUE(first) << first.error().cause;
    EXPECT_EQ(first->vf, 2u);
    const auto second = world.create({});
    ASSERT_TRUE(second) << second.error().cause;
    EXPECT_EQ(second->vf, 1u) << "rather than none";
}

TEST(Gpu, AVfMadeByAPfThatDidNotAnswerIsReleasedWhenItIsBack) {
    World world;
    world.pf().is_provision_answer_lost = true;
    const auto made = world.create({{"name", std::string("train")}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::PfLost);
    world.pf().is_provision_answer_lost = false;
    world.pass(5s);
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
    EXPECT_EQ(world.pf().vfs.at(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING));
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.state.record().vfs.empty());
}

TEST(Gpu, ScrubIsRecordedBeforeThePfMayHandTheVramOut) {
    World world;
    ASSERT_TRUE(world.create({}));
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    world.pf().finish_scrub(1);
    world.state.is_full = true;
    world.pass(20ms);
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("confirm_scrub 1")));
    EXPECT_TRUE(has_admin_event(world, EventKind::ScrubNotRecorded));
    world.state.is_full = false;
    world.pass(2s);
    EXPECT_THAT(world.pf().log, ::testing::Contains("confirm_scrub 1"));
    world.pass(2s);
    EXPECT_FALSE(world.gpu().has_vf(1));
    EXPECT_EQ(world.state.record().scrubs.at(1), 1u);
}

TEST(Gpu, RefusedProvisionLeavesNoRecord) {
    World world;
    world.pf().refuse = "provision";
    const auto made = world.create({});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::PfRefused);
    EXPECT_THAT(made.error().cause, HasSubstr("gpu0/vf1: create refused: as the test wants"));
    EXPECT_TRUE(world.state.record().vfs.empty());
}

/// The disk is full when the PF core refuses `operation`.
void refuse_and_fill(World& world, const std::string& operation) {
    world.pf().refuses = [&world, operation](const std::string& asked, std::uint32_t) {
        if (asked == operation) world.state.is_full = true;
        return asked == operation;
    };
}

TEST(Gpu, RefusedDestroyIsOffTheRecordWhenTheDiskTakesIt) {
    World world;
    ASSERT_TRUE(world.create({}));
    refuse_and_fill(world, "release");
    EXPECT_EQ(world.destroy({"gpu0", 1}).error().id, ErrorId::PfRefused);
    EXPECT_TRUE(has_admin_event(world, EventKind::RecordLeft));
    EXPECT_EQ(world.gpu().inventory()->vfs.size(), 1u);
    world.pf().refuses = nullptr;
    world.state.is_full = false;
    world.pass(2s);
    EXPECT_TRUE(world.claim({"gpu0", 1}, "a"));
    world.pf().log.clear();
    world.start();
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("release 1")));
}

TEST(Gpu, RefusedDestroyIsNotCarriedOutByTheNextAttach) {
    World world;
    ASSERT_TRUE(world.create({}));
    refuse_and_fill(world, "release");
    EXPECT_EQ(world.destroy({"gpu0", 1}).error().id, ErrorId::PfRefused);
    world.pf().refuses = nullptr;
    world.pf().is_there = false;
    world.pass(2s);
    world.pf().is_there = true;
    world.pass(5s);
    world.state.is_full = false;
    world.pass(5s);
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("release 1")));
    EXPECT_FALSE(world.state.record().vfs.at(1).is_releasing);
}

TEST(Gpu, RefusedCreateIsOffTheRecordWhenTheDiskTakesIt) {
    World world;
    ASSERT_TRUE(world.create({}));
    refuse_and_fill(world, "provision");
    EXPECT_EQ(world.create({}).error().id, ErrorId::PfRefused);
    world.pf().refuses = nullptr;
    world.state.is_full = false;
    world.pass(2s);
    EXPECT_EQ(world.state.record().vfs.size(), 1u);
    world.start();
    EXPECT_FALSE(world.pf().vfs.contains(2));
    const auto next = world.create({});
    ASSERT_TRUE(next);
    EXPECT_EQ(next->vf, 2u);
}

TEST(Gpu, CreateThatThePfWasLostOverIsReleasedAlsoIfTheDiskWasFull) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pf().refuses = [&world](const std::string& operation, std::uint32_t) {
        if (operation == "provision") world.state.is_full = true;
        return false;
    };
    world.pf().is_provision_answer_lost = true;
    EXPECT_EQ(world.create({}).error().id, ErrorId::PfLost);
    world.pf().is_provision_answer_lost = false;
    world.pf().refuses = nullptr;
    world.state.is_full = false;
    world.pass(5s);
    EXPECT_EQ(world.pf().vfs.at(2).state, static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING));
    world.pf().finish_scrub(2);
    world.pass(2s);
    EXPECT_EQ(world.state.record().vfs.size(), 1u);
}

TEST(Gpu, FullDiskChangesNothing) {
    World world;
    world.state.is_full = true;
    const auto made = world.create({});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::StateNotWritten);
    EXPECT_TRUE(world.pf().log.empty());
}

TEST(Gpu, OverCapacityNamesResourceShortageAndWhatFits) {
    World world;
    world.pf().info.vram_free_bytes = world.pf().info.vram_largest_free_bytes = 96 * FakePf::kMiB;
    const auto made = world.create({{"vram_bytes", std::uint64_t{128 * FakePf::kMiB}}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::NoVram);
    EXPECT_EQ(made.error().cause,
              "VRAM: 128 MiB wanted, 96 MiB free on gpu0, short by 32 MiB; a VF of up to 96 MiB "
              "would fit");
}

TEST(Gpu, SeventeenthVfIsRefused) {
    World world;
    for (int i = 0; i < 16; ++i)
        ASSERT_TRUE(world.create({{"vram_bytes", std::uint64_t{16 * FakePf::kMiB}}}));
    const auto made = world.create({});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::NoFreeVf);
}

TEST(Gpu, WithoutAWishAVfGetsAFairPart) {
    World world;
    const auto made = world.create_as_is("gpu0", {});
    ASSERT_TRUE(made);
    EXPECT_EQ(world.gpu().view(1).record.spec.resources.vram_bytes, 112 * FakePf::kMiB);
}

TEST(Gpu, KilledDaemonAdoptsEverythingAndLeavesAFairTableAlone) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}, {"weight", std::uint64_t{1}}}));
    ASSERT_TRUE(world.create({{"name", std::string("b")}, {"weight", std::uint64_t{3}}}));
    world.pf().give_work(1);
    world.pf().give_work(2);
    world.pass(20ms);
    const auto uuid = world.gpu().view(2).record.spec.uuid;
    const auto generation = world.pf().table.generation;
    world.pf().log.clear();
    world.start();
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
    EXPECT_EQ(world.gpu().view(2).record.spec.name, "b");
    EXPECT_EQ(world.gpu().view(2).record.spec.uuid, uuid);
    EXPECT_TRUE(world.pf().log.empty());
    world.pass(50ms);
    EXPECT_EQ(world.pf().table.generation, generation);
}

TEST(Gpu, KilledInTheMiddleOfADestroyTheNextDaemonFinishesIt) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pf().refuse = "";
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    world.pf().is_scrubbed.insert(1);  // its event was for the dead daemon
    world.start();
    world.pass(20ms);
    EXPECT_THAT(world.pf().log, ::testing::Contains("confirm_scrub 1"));
    EXPECT_TRUE(world.state.record().vfs.empty());
}

TEST(Gpu, KilledBetweenRecordAndReleaseTheNextDaemonReleases) {
    World world;
    ASSERT_TRUE(world.create({}));
    GpuFile file = *decode_gpu(world.state.file());
    file.record.vfs.at(1).is_releasing = true;
    world.state.file() = encode_gpu(file);
    world.start();
    EXPECT_EQ(world.pf().vfs.at(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING));
}

TEST(Gpu, RestartedPfGetsItsVfsBack) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().is_there = false;
    world.pass(2s);
    EXPECT_EQ(world.gpu().state(), GpuState::PfLost);
    const auto refused = world.create({});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::PfLost);
    EXPECT_THAT(refused.error().cause, HasSubstr("gpu0: "));
    world.pf().restart();
    world.pf().is_there = true;
    world.pass(5s);
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "a");
    EXPECT_TRUE(world.pf().vfs.contains(1));
}

TEST(Gpu, LostDeviceIsNamedAndRefusesChangesUntilItIsBack) {
    World world;
    world.pf().info.device_lost = 1;
    world.pf().push(VGPU_PF_EVENT_DEVICE_LOST);
    world.pass(10ms);
    EXPECT_EQ(world.gpu().state(), GpuState::DeviceLost);
    EXPECT_EQ(world.create({}).error().id, ErrorId::DeviceLost);
    world.pf().info.device_lost = 0;
    world.pf().push(VGPU_PF_EVENT_DEVICE_BACK);
    world.pass(10ms);
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
}

TEST(Gpu, ALookNowIsAtTheDeviceHoweverFreshWhatIsKnown) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pass(2s);
    world.pf().vfs.at(1).has_work = 1;
    world.gpu().refresh(Freshness::Counters);
    EXPECT_FALSE(world.gpu().view(1).active.has_work()) << "fresh enough for a list";
    EXPECT_TRUE(world.gpu().refresh_now(1));
    EXPECT_TRUE(world.gpu().view(1).active.has_work());
}

TEST(Gpu, ALookNowThatLearnsNothingIsAnError) {
    World world;
    ASSERT_TRUE(world.create({}));
    EXPECT_EQ(world.gpu().refresh_now(2).error().id, ErrorId::NoSuchVf);
    world.pf().info.device_lost = 1;
    EXPECT_EQ(world.gpu().refresh_now(1).error().id, ErrorId::DeviceLost);
    world.pf().info.device_lost = 0;
    world.pass(2s);
    EXPECT_TRUE(world.gpu().refresh_now(1));
    world.pf().is_there = false;
    EXPECT_EQ(world.gpu().refresh_now(1).error().id, ErrorId::PfLost) << "found by the look";
    EXPECT_EQ(world.gpu().refresh_now(1).error().id, ErrorId::PfLost) << "known before";
}

TEST(Gpu, UnknownVfInServiceIsAdoptedWithDefaults) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.state.files.clear();
    world.start();
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "gpu0-vf1");
    EXPECT_TRUE(has_admin_event(world, EventKind::Found));
}

TEST(Gpu, CorruptStateStartsReadOnlyAndTouchesNothing) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    const std::string damaged = world.state.file().substr(0, 200);
    world.state.file() = damaged;
    world.pf().log.clear();
    world.start();
    world.pass(5s);
    EXPECT_TRUE(world.gpu().has_vf(1));
    EXPECT_TRUE(world.gpu().view().is_read_only);
    EXPECT_EQ(world.create({}).error().id, ErrorId::StateReadOnly);
    EXPECT_EQ(world.destroy({"gpu0", 1}).error().id, ErrorId::StateReadOnly);
    EXPECT_TRUE(world.pf().log.empty());
    EXPECT_EQ(world.state.file(), damaged);
}

TEST(Gpu, LostEventsAreReconciledFromThePfsOwnCounter) {
    World world;
    world.pf().ring_entries = 8;
    ASSERT_TRUE(world.create({}));
    ASSERT_TRUE(world.create({}));
    world.pass(20ms);
    for (int i = 0; i < 100; ++i) world.pf().run(1 + static_cast<std::uint32_t>(i) % 2, 6'000'000);
    world.step();
    EXPECT_GT(*world.gpu().view().events_lost, 0u);
    EXPECT_EQ(world.gpu().view(1).service_ns, 300'000'000u);
    EXPECT_EQ(world.gpu().view(2).service_ns, 300'000'000u);
    EXPECT_NEAR(world.gpu().view(1).timing->share_total, 0.5, 0.01);
}

/// Two VFs that have worked in turns, of which the second runs out of work.
class IdleUnseen : public ::testing::Test {
protected:
    IdleUnseen() {
        for (std::uint32_t vf = 1; vf <= 2; ++vf) {
            EXPECT_TRUE(world.create({}));
            world.pf().give_work(vf);
        }
        work_in_turns();
        EXPECT_DOUBLE_EQ(world.gpu().view(1).timing->share_ideal, 0.5);
    }
    void work_in_turns() {
        for (std::uint32_t i = 0; i < 10; ++i) {
            world.pf().run(1 + i % 2, 6'000'000);
            world.step();
        }
    }
    /// The other one alone, for 10 s.
    void expect_that_the_second_counts_as_idle() {
        for (int i = 0; i < 100; ++i) {
            world.pf().run(1, 100'000'000);
            world.step();
        }
        EXPECT_EQ(world.gpu().view(2).timing->lag_ns, 0);
        EXPECT_DOUBLE_EQ(world.gpu().view(2).timing->share_ideal, 0.0);
        EXPECT_DOUBLE_EQ(world.gpu().view(1).timing->share_ideal, 1.0);
    }

    World world;
};

TEST_F(IdleUnseen, WhileThePfCoreWasLost) {
    world.pf().vfs.at(2).has_work = 0;
    world.pf().is_there = false;
    world.pass(2s);
    EXPECT_EQ(world.gpu().state(), GpuState::PfLost);
    world.pf().is_there = true;
    world.pass(5s);
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
    expect_that_the_second_counts_as_idle();
}

TEST_F(IdleUnseen, AmongLostEvents) {
    world.pf().ring_entries = 8;
    world.pf().vfs.at(2).has_work = 0;
    world.pf().push(VGPU_PF_EVENT_IDLE, 2, VGPU_PF_IDLE_INACTIVE);
    for (int i = 0; i < 100; ++i) world.pf().run(1, 6'000'000);
    world.step();
    EXPECT_GT(*world.gpu().view().events_lost, 0u);
    expect_that_the_second_counts_as_idle();
}

TEST_F(IdleUnseen, WhileItWasStrict) {
    const Target second{.gpu = "gpu0", .vf = 2};
    ASSERT_TRUE(world.set_vf(second, {{"mode", std::string("strict")}}));
    work_in_turns();
    world.pf().vfs.at(2).has_work = 0;
    world.pf().push(VGPU_PF_EVENT_IDLE, 2, VGPU_PF_IDLE_INACTIVE);
    world.step();
    EXPECT_DOUBLE_EQ(world.gpu().view(1).timing->share_ideal, 0.5) << "its slots are its own";
    ASSERT_TRUE(world.set_vf(second, {{"mode", std::string("work-conserving")}}));
    world.pass(2s);
    expect_that_the_second_counts_as_idle();
}

TEST(Gpu, NothingToDoMeansSleeping) {
    const auto idle = [](World& world) {
        world.pass(20ms);
        world.pass(20ms);
        return world.gpu().wake_at() - world.clock.now();
    };
    World world;
    EXPECT_GE(idle(world), 200ms) << "no VF";
    ASSERT_TRUE(world.create({}));
    EXPECT_GE(idle(world), 200ms) << "one VF";
    world.pf().refuse = "set_run_table";
    ASSERT_TRUE(world.create({}));
    for (int i = 0; i < 100; ++i) world.pass(20ms);
    EXPECT_GE(idle(world), 200ms) << "a PF core that takes no table";
    world.pf().refuse = "";
    world.pf().info.device_lost = 1;
    world.pass(2s);
    EXPECT_GE(idle(world), 200ms) << "no device";
}

TEST(Gpu, RefusedTableIsSaidOnce) {
    World world;
    world.pf().refuse = "set_run_table";
    ASSERT_TRUE(world.create({}));
    world.manager->take_admin_events();
    for (int i = 0; i < 100; ++i) world.pass(20ms);
    EXPECT_FALSE(has_admin_event(world, EventKind::TableRefused));
    world.pf().refuse = "";
    world.pass(2s);
    EXPECT_EQ(totals_of(world.pf().table).size(), 1u);
}

TEST(Gpu, GpuWithoutRoomIsPassedOver) {
    World world({"gpu0", "gpu1"});
    world.pf("gpu0").info.vram_free_bytes = 0;
    world.pass(2s);
    const auto made = world.create_as_is("", {});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->gpu, "gpu1");
}

/// The whole loop: events in, tables out, a PF that runs the table and loses some slices' ends.
TEST(Gpu, SharesAndLagsHoldThroughTheWholeLoop) {
    World world;
    testing::GpsOracle oracle;
    const std::vector<std::uint32_t> weights{1, 1, 2, 4};
    for (std::uint32_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(world.create({{"weight", std::uint64_t{weights[i]}}}));
        oracle.add(i + 1, weights[i]);
    }
    for (std::uint32_t vf = 1; vf <= 4; ++vf) world.pf().give_work(vf);
    world.pass(20ms);
    std::size_t position = 0;
    std::uint64_t generation = world.pf().table.generation;
    for (int i = 0; i < 20'000; ++i) {
        if (std::exchange(generation, world.pf().table.generation) != world.pf().table.generation)
            position = 0;
        const auto& entry = world.pf().table.entries[position++ % world.pf().table.count];
        world.pf().run(entry.vf, std::int64_t{entry.quantum_us} * 1000);
        oracle.serve(entry.vf, std::int64_t{entry.quantum_us} * 1000);
        world.step();
    }
    EXPECT_LE(oracle.worst_lag_ns(), 6e6L + 1);
    for (std::uint32_t vf = 1; vf <= 4; ++vf) {
        EXPECT_LT(oracle.share_error(vf), 1e-3);
        EXPECT_LE(world.gpu().view(vf).timing->worst_lag_quanta, 1.001);
        EXPECT_NEAR(world.gpu().view(vf).timing->share_window, weights[vf - 1] / 8.0, 0.01);
        EXPECT_EQ(world.gpu().view(vf).service_ns, world.pf().vfs.at(vf).service_ns);
    }
}

}  // namespace
}  // namespace vgpu::daemon
