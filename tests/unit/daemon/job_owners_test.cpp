// SPDX-License-Identifier: MIT
//
// Owners that are lives of jobs of a scheduler of many hosts: their form, their claims and their
// sockets, over fakes of the PF core and of the sockets.
#include "daemon/service/owners/assignments.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <optional>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakeVmSockets;
using testing::World;
using std::chrono_literals::operator""h;

const std::string kFirst = "slurm:lab:17.0";
const std::string kSecond = "slurm:lab:17.1";

class JobOwners : public ::testing::Test {
protected:
    using Given = std::vector<AssignedVf>;

    JobOwners() {
        for (const char* name : {"one", "two"})
            EXPECT_TRUE(world.create({{"name", std::string(name)}}));
    }
    Result<Given> assign(const std::string& owner, const std::string& name,
                         const Options& options = {}) {
        Result<Given> answer = fail(ErrorId::System, "no answer yet");
        assignments.assign(owner, {{.by = VfSelector::By::Name, .value = name}}, options,
                           [&answer](Result<Given> given) { answer = std::move(given); });
        return answer;
    }
    Result<std::uint32_t> unassign(const std::string& owner) {
        Result<std::uint32_t> taken = fail(ErrorId::System, "no answer");
        assignments.unassign(owner, {}, [&taken](Result<std::uint32_t> count) { taken = count; });
        return taken;
    }
    [[nodiscard]] const VfView view(std::uint32_t vf) { return world.gpu().view(vf); }
    void set_open(std::uint32_t vf, bool is_open) {
        world.pf().vfs.at(vf).attached = is_open ? 1 : 0;
        world.pf().push(VGPU_PF_EVENT_ATTACH, vf, is_open ? 1 : 0);
        world.step();
    }

    World world;
    FakeVmSockets sockets;
    Assignments assignments{*world.manager, sockets, world.clock};
};

TEST(JobOwner, HasAnEngineAClusterAnIdAndALife) {
    const OwnerForm form = form_of("slurm:my-lab_2:17_3.4");
    const auto* owner = std::get_if<EngineOwner>(&form);
    ASSERT_NE(owner, nullptr);
    EXPECT_EQ(owner->engine, "slurm");
    EXPECT_EQ(owner->cluster, "my-lab_2");
    EXPECT_EQ(owner->id, "17_3");
    EXPECT_EQ(owner->life, 4u);
}

TEST(JobOwner, OtherFormsAreOtherOwners) {
    const std::string long_name = "slurm:" + std::string(kMaxEngineOwner, 'a') + ":17.0";
    for (const std::string owner :
         {"slurm:lab:17", "slurm:lab:17.", "slurm:lab:17.x", "slurm:lab:17.4294967296",
          "slurm:17.0", ":lab:17.0", "slurm::17.0", "slurm:lab:.0", "Slurm:lab:17.0",
          "slurm:lab:a/b.0", "slurm:lab/..:17.0", "slurm:lab:17:3.0", "slurm:l.b:17", "pid:12:34",
          "slurm", ""})
        EXPECT_TRUE(std::holds_alternative<OtherOwner>(form_of(owner)) || owner == "pid:12:34")
            << owner;
    EXPECT_TRUE(std::holds_alternative<OtherOwner>(form_of(long_name)));
    EXPECT_TRUE(std::holds_alternative<ProcessId>(form_of("pid:12:34")));
}

TEST_F(JobOwners, OneCallGivesSocketsAtTheOwnersPlaceToItsUser) {
    const auto given =
        assign(kFirst, "two", {{"uid", std::uint64_t{1000}}, {"gid", std::uint64_t{100}}});
    ASSERT_TRUE(given) << given.error().cause;
    EXPECT_EQ(given->at(0).path, "/run/owner/slurm:lab:17.0/0.sock");
    EXPECT_THAT(sockets.linked("owner/" + kFirst), ElementsAre("/run/v/vf2.sock"));
    EXPECT_EQ(sockets.owners.at("/run/v/vf2.sock"), "1000:100");
    EXPECT_EQ(sockets.owners.at("/run/v/vf2.agent.sock"), "1000:100");
}

TEST_F(JobOwners, AUserWithoutAGroupIsRefusedBeforeAnythingIsClaimed) {
    const auto given = assign(kFirst, "one", {{"uid", std::uint64_t{1000}}});
    ASSERT_FALSE(given);
    EXPECT_EQ(given.error().cause, "'uid' and 'gid' are given together or not at all");
    EXPECT_EQ(view(1).record.owner, OwnerRecord{});
}

TEST_F(JobOwners, AskingAgainSucceedsWhileTheJobHasItsVfOpen) {
    const auto first = assign(kFirst, "one");
    set_open(1, true);
    const auto again = assign(kFirst, "one");
    ASSERT_TRUE(first && again) << again.error().cause;
    EXPECT_EQ(first->at(0).generation, again->at(0).generation);
    EXPECT_EQ(again->at(0).path, first->at(0).path);
}

TEST_F(JobOwners, ALateEndOfAnEarlierLifeEndsNothing) {
    ASSERT_TRUE(assign(kSecond, "one"));
    set_open(1, true);
    EXPECT_EQ(*unassign(kFirst), 0u);
    EXPECT_EQ(view(1).record.owner.name, kSecond);
    EXPECT_FALSE(view(1).record.next) << "no scrub is owed";
    EXPECT_EQ(sockets.linked("owner/" + kSecond).size(), 1u);
}

TEST_F(JobOwners, TheEndOfALifeTakesItsPathsAndScrubs) {
    ASSERT_TRUE(assign(kFirst, "one", {{"uid", std::uint64_t{1000}}, {"gid", std::uint64_t{100}}}));
    EXPECT_EQ(*unassign(kFirst), 1u);
    EXPECT_TRUE(sockets.linked("owner/" + kFirst).empty());
    EXPECT_FALSE(sockets.owners.contains("/run/v/vf1.sock"));
    EXPECT_EQ(view(1).record.owner, OwnerRecord{});
}

TEST_F(JobOwners, AClaimIsNoOrphanHoweverOldItIs) {
    ASSERT_TRUE(assign(kFirst, "one"));
    ASSERT_TRUE(assign("somebody", "two"));
    world.pass(24h);
    EXPECT_EQ(view(1).orphan, "");
    EXPECT_NE(view(2).orphan, "");
}

}  // namespace
}  // namespace vgpu::daemon
