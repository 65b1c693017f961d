// SPDX-License-Identifier: MIT
//
// Claims and the ends of those who have them: a persistent claim outlives the stops of its domain;
// a claim from before a boot, whose domain does not run, ends by itself.
#include "daemon/service/owners/assignments.h"
#include "daemon/service/owners/domains.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/world.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using testing::FakeVmSockets;
using ::testing::HasSubstr;
using testing::World;
using std::chrono_literals::operator""s;

const std::string kUuid = "6dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const std::string kDomain = "libvirt:" + kUuid;

class Domain : public ::testing::Test {
protected:
    Domain() {
        for (const char* name : {"one", "two"})
            EXPECT_TRUE(world.create({{"name", std::string(name)}}));
        begin();
    }
    /// The parts of a vgpud beside World.
    void begin() {
        assignments = std::make_unique<Assignments>(*world.manager, sockets, world.clock);
        domains = std::make_unique<Domains>(*assignments);
    }
    void restart() {
        domains.reset();
        assignments.reset();
        world.start();
        begin();
        step();
    }
    void reboot() {
        world.pf().restart();
        world.clock.reboot();
        world.clock.advance(30s);
        restart();
    }
    void step() {
        world.step();
        assignments->step();
        world.step();
    }
    /// Without waiting for anything.
    Result<std::vector<AssignedVf>> start(const std::string& owner = kDomain) {
        Result<std::vector<AssignedVf>> given = fail(ErrorId::System, "no answer");
        assignments->assign(
            owner, {{.by = VfSelector::By::Name, .value = "one"}}, {{"wait_ms", std::uint64_t{0}}},
            [&given](Result<std::vector<AssignedVf>> vfs) { given = std::move(vfs); });
        return given;
    }
    void stop() {
        assignments->unassign(kDomain, {}, [](const Result<std::uint32_t>&) {});
        step();
    }
    void finish_scrub() {
        world.pf().finish_scrub(1);
        world.pass(2s);
        step();
    }
    void libvirt_says(bool is_active) {
        domains->take(fmt::format(
            R"({{"domains": [{{"uuid": "{}", "name": "vm1", "active": {}}}]}})", kUuid, is_active));
        step();
    }
    [[nodiscard]] OwnerRecord owner() { return world.gpu().view(1).record.owner; }

    World world;
    FakeVmSockets sockets;
    std::unique_ptr<Assignments> assignments;
    std::unique_ptr<Domains> domains;
    const Target vf{"gpu0", 1};
};

// --- persistent claims

TEST_F(Domain, HasItsPersistentClaimAfterEachStop) {
    const auto claimed = world.claim(vf, kDomain, {{"persistent", true}});
    ASSERT_TRUE(claimed);
    for (int i = 0; i < 3; ++i) {
        const auto given = start();
        ASSERT_TRUE(given) << given.error().cause;
        EXPECT_EQ(given->at(0).target, vf);
        EXPECT_EQ(given->at(0).generation, *claimed);
        const std::uint32_t life = world.pf().vfs.at(1).generation;
        stop();
        EXPECT_EQ(owner().name, kDomain) << "its place is not taken";
        EXPECT_EQ(start("libvirt:7dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10").error().id,
                  ErrorId::WrongState);
        finish_scrub();
        EXPECT_NE(world.pf().vfs.at(1).generation, life) << "but it is empty";
        EXPECT_EQ(start("libvirt:7dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10").error().id,
                  ErrorId::Claimed);
    }
}

TEST_F(Domain, LosesItsPersistentClaimOnlyByAnExplicitRelease) {
    const auto claimed = world.claim(vf, kDomain, {{"persistent", true}});
    ASSERT_TRUE(claimed);
    ASSERT_TRUE(world.claim(vf, kDomain)) << "as the hook does, without a word of it";
    EXPECT_TRUE(owner().is_persistent);
    world.owners.domains.clear();
    for (int i = 0; i < 800; ++i) world.pass(10s);
    EXPECT_EQ(world.gpu().view(1).orphan, "") << "it is off, not forgotten";
    restart();
    EXPECT_TRUE(owner().is_persistent) << "durable";
    ASSERT_TRUE(world.release(vf, kDomain, *claimed));
    EXPECT_EQ(owner(), OwnerRecord{});
}

/// Between the stop and the end of the scrub.
TEST_F(Domain, ItsPersistentClaimAndTheScrubOutliveVgpud) {
    ASSERT_TRUE(world.claim(vf, kDomain, {{"persistent", true}}));
    world.pf().refuse = "release";
    stop();
    ASSERT_TRUE(world.gpu().view(1).record.next);
    world.pf().refuse = "";
    restart();
    EXPECT_EQ(start().error().id, ErrorId::WrongState) << "it waits until the VF is empty";
    finish_scrub();
    EXPECT_EQ(owner().name, kDomain);
    EXPECT_TRUE(start());
}

TEST_F(Domain, WithoutAPersistentClaimLosesItsVfAtEachStop) {
    ASSERT_TRUE(start());
    stop();
    EXPECT_EQ(owner(), OwnerRecord{});
}

/// A process that has ended does not come back.
TEST(PersistentClaims, OfAProcessAreOrphansWhenItHasEnded) {
    const OwnerRecord process{
        .name = "pid:7:70", .generation = 1, .since = UnixTime{1}, .is_persistent = true};
    EXPECT_NE(orphan_cause(process, {.now = UnixTime{1000}, .exists = false}), "");
    OwnerRecord job = process;
    job.name = "slurm:7";
    EXPECT_EQ(orphan_cause(job, {.now = UnixTime{1000}, .unattached_for = std::chrono::hours(9)}),
              "");
}

// --- after a boot

TEST_F(Domain, ThatDidNotStartWithTheHostHasNoClaimAnyMore) {
    ASSERT_TRUE(start());
    reboot();
    EXPECT_EQ(owner().name, kDomain) << "nobody has said yet that it is off";
    libvirt_says(false);
    EXPECT_EQ(owner(), OwnerRecord{});
    EXPECT_EQ(world.pf().vfs.at(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING));
    bool is_notified = false;
    for (const AdminEvent& admin_event : world.manager->take_admin_events())
        is_notified =
            is_notified || (admin_event.kind == EventKind::ClaimEnded && admin_event.vf == 1);
    EXPECT_TRUE(is_notified);
}

TEST_F(Domain, ThatStartedWithTheHostKeepsItsVf) {
    ASSERT_TRUE(start());
    reboot();
    libvirt_says(true);
    EXPECT_EQ(owner().name, kDomain);
}

/// libvirt calls its hook before it says that the domain is active.
TEST_F(Domain, ThatIsJustBeingStartedKeepsItsVf) {
    ASSERT_TRUE(start());
    reboot();
    ASSERT_TRUE(start());
    libvirt_says(false);
    libvirt_says(false);
    EXPECT_EQ(owner().name, kDomain);
}

TEST_F(Domain, WithAPersistentClaimKeepsItOverABoot) {
    ASSERT_TRUE(world.claim(vf, kDomain, {{"persistent", true}}));
    reboot();
    libvirt_says(false);
    EXPECT_EQ(owner().name, kDomain);
}

/// A claim of this boot ends with its domain, by the hook; nothing else may end it.
TEST_F(Domain, ThatIsOffInTheSameBootKeepsItsClaim) {
    ASSERT_TRUE(start());
    libvirt_says(false);
    restart();
    libvirt_says(false);
    EXPECT_EQ(owner().name, kDomain);
}

TEST_F(Domain, WithoutAWordOfLibvirtLeavesAnOrphanThatARefusalNames) {
    ASSERT_TRUE(start());
    world.owners.domains.clear();
    reboot();
    for (int i = 0; i < 10; ++i) world.pass(10s);
    step();
    ASSERT_NE(world.gpu().view(1).orphan, "");
    const auto refused = start("libvirt:7dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("claims that look forgotten: gpu0/vf1 ('vgpuctl release --orphans' ends "
                          "them)"));
}

}  // namespace
}  // namespace vgpu::daemon
