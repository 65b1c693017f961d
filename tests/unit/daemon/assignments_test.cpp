// SPDX-License-Identifier: MIT
//
// VFs for virtual machines: all or none, one after the other, taken back scrubbed, over fakes of
// the PF core and of the sockets.
#include "daemon/service/owners/assignments.h"

#include "daemon/adapters/vm_sockets.h"
#include "tests/support/stack/temp_dir.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using testing::FakePf;
using testing::FakeVmSockets;
using ::testing::HasSubstr;
using testing::World;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

const std::string kUuidA = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const std::string kUuidB = "5dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const std::string kA = "libvirt:" + kUuidA;
const std::string kB = "libvirt:" + kUuidB;

VfSelector named(const std::string& name) {
    return {.by = VfSelector::By::Name, .value = name};
}

class Assigned : public ::testing::Test {
protected:
    using Given = std::vector<AssignedVf>;

    Assigned() {
        for (const char* name : {"one", "two", "three"})
            EXPECT_TRUE(world.create({{"name", std::string(name)}}));
    }

    /// The answer, if there is one already.
    std::shared_ptr<std::optional<Result<Given>>> ask(const std::string& owner,
                                                      const std::vector<VfSelector>& selectors,
                                                      const Options& options = {}) {
        auto answer = std::make_shared<std::optional<Result<Given>>>();
        assignments.assign(owner, selectors, options,
                           [answer](Result<Given> given) { *answer = std::move(given); });
        return answer;
    }
    Result<Given> assign(const std::string& owner, const std::vector<VfSelector>& selectors,
                         const Options& options = {}) {
        const auto answer = ask(owner, selectors, options);
        return answer->has_value() ? **answer : fail(ErrorId::System, "no answer yet");
    }
    static Result<std::uint32_t> unassign(Assignments& from, const std::string& owner) {
        Result<std::uint32_t> taken = fail(ErrorId::System, "no answer");
        from.unassign(owner, {}, [&taken](Result<std::uint32_t> count) { taken = count; });
        return taken;
    }
    Result<std::uint32_t> unassign(const std::string& owner) {
        return unassign(assignments, owner);
    }
    Result<std::uint32_t> adopt(const std::string& owner, const Options& options = {}) {
        Result<std::uint32_t> adopted = fail(ErrorId::System, "no answer");
        assignments.adopt(owner, options,
                          [&adopted](Result<std::uint32_t> count) { adopted = count; });
        return adopted;
    }
    [[nodiscard]] OwnerRecord owner_of(std::uint32_t vf) {
        return world.gpu().view(vf).record.owner;
    }
    void pass(Nanoseconds time) {
        world.pass(time);
        assignments.step();
    }
    void set_open(std::uint32_t vf, bool is_open) {
        world.pf().vfs.at(vf).attached = is_open ? 1 : 0;
        world.pf().push(VGPU_PF_EVENT_ATTACH, vf, is_open ? 1 : 0);
        world.step();
    }

    World world;
    FakeVmSockets sockets;
    Assignments assignments{*world.manager, sockets, world.clock};
};

TEST_F(Assigned, ADomainFindsItsVfsUnderItsUuid) {
    const auto given =
        assign(kA, {named("two"), named("one")}, {{"owner_name", std::string("vm a")}});
    ASSERT_TRUE(given) << given.error().cause;
    ASSERT_EQ(given->size(), 2u);
    EXPECT_EQ(given->at(0).target, (Target{"gpu0", 2}));
    EXPECT_EQ(given->at(0).path, "/run/vm/" + kUuidA + "/0.sock");
    EXPECT_EQ(given->at(1).path, "/run/vm/" + kUuidA + "/1.sock");
    EXPECT_THAT(sockets.links.at("vm/" + kUuidA),
                ElementsAre(VfSockets{"/run/v/vf2.sock", "/run/v/vf2.agent.sock"},
                            VfSockets{"/run/v/vf1.sock", "/run/v/vf1.agent.sock"}));
    EXPECT_EQ(owner_of(2).name, kA);
    EXPECT_EQ(assignments.domain_name_of(kA), "vm a");
    EXPECT_EQ(assignments.domain_name_of(kB), "");
}

TEST(Assignments, VfsOfAGpuWithADamagedStateAreNotGivenAndThoseOfOthersAre) {
    World world({"gpu0", "gpu1"});
    ASSERT_TRUE(world.create({{"name", std::string("one")}}, "gpu0"));
    ASSERT_TRUE(world.create({{"name", std::string("two")}}, "gpu1"));
    world.state.files.at("gpus/gpu0.json.bak") = world.state.file("gpu0");
    world.state.file("gpu0") = "x";
    world.start();
    FakeVmSockets sockets;
    Assignments assignments(*world.manager, sockets, world.clock);
    std::optional<Result<std::vector<AssignedVf>>> answer;
    const auto keep = [&answer](Result<std::vector<AssignedVf>> given) {
        answer = std::move(given);
    };
    assignments.assign(kA, {named("one")}, {}, keep);
    ASSERT_TRUE(answer && !*answer);
    EXPECT_THAT(answer->error().cause,
                HasSubstr("is on gpu0, which cannot be changed: the state file memory/"));
    assignments.assign(kA, {named("two")}, {}, keep);
    EXPECT_TRUE(*answer);
}

TEST_F(Assigned, AskingAgainChangesNothing) {
    const auto first = assign(kA, {named("one")});
    const auto again = assign(kA, {named("one")});
    ASSERT_TRUE(first && again);
    EXPECT_EQ(first->at(0).generation, again->at(0).generation);
    EXPECT_EQ(first->at(0).path, again->at(0).path);
}

TEST_F(Assigned, AllOrNone) {
    ASSERT_TRUE(assign(kB, {named("two")}));
    const auto refused = assign(kA, {named("one"), named("two")});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::Claimed);
    EXPECT_EQ(refused.error().cause, "gpu0/vf2 ('two') belongs to '" + kB + "' (claim 1)");
    EXPECT_EQ(owner_of(1), OwnerRecord{});
    EXPECT_FALSE(sockets.links.contains("vm/" + kUuidA));
}

TEST_F(Assigned, WhoLosesARaceForItsSecondVfGivesTheFirstBack) {
    // nobody who looks has seen this claim yet
    ASSERT_TRUE(world.gpu().claim(2, {.owner = "slurm:1"}));
    const auto loser = ask(kA, {named("one"), named("two")});
    assignments.step();
    ASSERT_TRUE(loser->has_value());
    EXPECT_EQ((*loser)->error().id, ErrorId::Claimed);
    EXPECT_EQ(owner_of(1), OwnerRecord{});
    EXPECT_EQ(owner_of(2).name, "slurm:1");
    EXPECT_TRUE(assign(kB, {named("one")})) << "nothing is reserved any more";
}

TEST_F(Assigned, NothingStaysClaimedIfThePathsCannotBeMade) {
    sockets.is_full = true;
    const auto refused = assign(kA, {named("one")});
    EXPECT_EQ(refused.error().cause, "no space left on device");
    EXPECT_EQ(owner_of(1), OwnerRecord{});
}

TEST_F(Assigned, WhatIsTakenBackIsScrubbedAndComesBackTheSame) {
    const auto given = assign(kA, {named("one")});
    const std::uint32_t generation = world.pf().vfs.at(1).generation;
    const Uuid uuid = world.gpu().view(1).record.spec.uuid;
    world.pf().log.clear();
    EXPECT_EQ(*unassign(kA), 1u);
    EXPECT_FALSE(sockets.links.contains("vm/" + kUuidA));
    EXPECT_EQ(owner_of(1), OwnerRecord{});
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    world.pf().finish_scrub(1);
    pass(1ms);
    EXPECT_THAT(world.pf().log,
                ::testing::IsSupersetOf({std::string("release 1"), std::string("confirm_scrub 1"),
                                         std::string("provision 1")}));
    EXPECT_GT(world.pf().vfs.at(1).generation, generation);
    EXPECT_EQ(world.gpu().view(1).record.spec.uuid, uuid);
    EXPECT_FALSE(world.gpu().view(1).record.next);
    EXPECT_TRUE(assign(kB, {named("one")}));
}

TEST_F(Assigned, TakingBackNothingIsNoMistake) {
    EXPECT_EQ(*unassign(kA), 0u);
    ASSERT_TRUE(assign(kA, {named("one")}));
    EXPECT_EQ(*unassign(kA), 1u);
    EXPECT_EQ(*unassign(kA), 0u);
}

TEST_F(Assigned, TakingBackFromAGpuThatIsNotInServiceIsNoSuccess) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    world.pf().is_there = false;
    world.start();
    Assignments anew{*world.manager, sockets, world.clock};
    const auto taken = unassign(anew, kA);
    EXPECT_EQ(taken.error().id, ErrorId::PfLost);
    EXPECT_THAT(taken.error().cause, HasSubstr("gpu0/vf1 ('one') is claimed by '" + kA + "'"));
    EXPECT_EQ(*unassign(anew, kB), 0u) << "it has none";
    world.pf().is_there = true;
    world.pass(10s);
    EXPECT_EQ(*unassign(anew, kA), 1u);
}

TEST_F(Assigned, ALateReleaseOfADomainDoesNotTouchTheNextOwner) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    EXPECT_EQ(*unassign(kA), 1u);
    world.pf().finish_scrub(1);
    pass(1ms);
    ASSERT_TRUE(assign(kB, {named("one")}));
    EXPECT_EQ(*unassign(kA), 0u);
    EXPECT_EQ(owner_of(1).name, kB);
    EXPECT_NE(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
}

TEST_F(Assigned, AScrubIsWaitedForByItsVfAloneAndNobodyElseWaits) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(unassign(kA));
    const auto again = ask(kA, {named("one")});
    EXPECT_FALSE(again->has_value()) << "the VF is being scrubbed";
    EXPECT_TRUE(assign(kB, {named("two")})) << "another VF has nothing to do with that";
    EXPECT_TRUE(assignments.next_step());
    world.pf().finish_scrub(1);
    pass(1ms);
    ASSERT_TRUE(again->has_value());
    EXPECT_TRUE(**again);
    pass(1ms);
    EXPECT_FALSE(assignments.next_step());
}

TEST_F(Assigned, AWaitHasAnEndAndSaysForWhat) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(unassign(kA));
    const auto waiting = ask(kB, {named("one")}, {{"wait_ms", std::uint64_t{100}}});
    pass(99ms);
    EXPECT_FALSE(waiting->has_value());
    pass(1ms);
    ASSERT_TRUE(waiting->has_value());
    EXPECT_EQ((*waiting)->error().cause, "gpu0/vf1 ('one') is being scrubbed");
    EXPECT_EQ((*waiting)->error().id, ErrorId::WrongState);
}

TEST_F(Assigned, ADomainThatIsReleasedStopsWaiting) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(unassign(kA));
    const auto waiting = ask(kB, {named("one")});
    EXPECT_EQ(*unassign(kB), 0u);
    world.pf().finish_scrub(1);
    pass(1ms);
    ASSERT_TRUE(waiting->has_value());
    EXPECT_EQ((*waiting)->error().id, ErrorId::Cancelled);
    EXPECT_EQ(owner_of(1), OwnerRecord{}) << "no claim is left behind";
}

TEST_F(Assigned, ADomainThatIsReleasedBetweenTwoClaimsGetsNoOtherClaim) {
    ASSERT_TRUE(assign(kA, {named("two")}));
    world.queue_requests();
    const auto cancelled = ask(kA, {named("one"), named("two")});
    for (int i = 0; i < 4; ++i) {  // the main loop is late
        world.clock.advance(10ms);
        world.manager->find_gpu("gpu0")->iterate();
        if (i == 0) assignments.unassign(kA, {}, [](const Result<std::uint32_t>&) {});
        if (i == 2) world.pf().finish_scrub(2);
    }
    for (int i = 0; i < 3; ++i) world.step();
    ASSERT_TRUE(cancelled->has_value());
    EXPECT_EQ((*cancelled)->error().id, ErrorId::Cancelled);
    EXPECT_EQ(owner_of(2), OwnerRecord{});
}

TEST_F(Assigned, AFailedRequestAlsoGivesBackAVfThatTheDomainHadUnderAnEarlierClaim) {
    ASSERT_TRUE(assign(kA, {named("two")}));
    world.queue_requests();
    const auto refused = ask(kA, {named("one"), named("two")});
    world.manager->release({"gpu0", 2}, kA, owner_of(2).generation, {}, [](const Result<>&) {});
    sockets.is_full = true;
    for (int i = 0; i < 4; ++i) world.step();
    ASSERT_TRUE(refused->has_value() && !**refused);
    EXPECT_EQ(owner_of(2), OwnerRecord{});
}

TEST_F(Assigned, AProcessStopsWaitingWhicheverFormOfItsNameIsReleased) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(unassign(kA));
    const auto waiting = ask("pid:77", {named("one")});
    EXPECT_EQ(*unassign("pid:77:5"), 0u);
    world.pf().finish_scrub(1);
    pass(1ms);
    ASSERT_TRUE(waiting->has_value());
    EXPECT_EQ((*waiting)->error().id, ErrorId::Cancelled);
}

TEST_F(Assigned, TheScrubWaitsUntilTheDeviceHasSeenThatTheClientIsGone) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    set_open(1, true);
    ASSERT_TRUE(unassign(kA));
    EXPECT_NE(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_FALSE(world.claim({"gpu0", 1}, "x")) << "not before it is scrubbed";
    set_open(1, false);
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
}

TEST_F(Assigned, AClientThatStaysLosesTheVf) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    set_open(1, true);
    ASSERT_TRUE(unassign(kA));
    pass(GpuModel::kDetachTimeout - 1ms);
    EXPECT_NE(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    pass(1ms);
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    bool is_notified = false;
    for (const AdminEvent& admin_event : world.manager->take_admin_events())
        is_notified =
            is_notified || (admin_event.kind == EventKind::Revoked &&
                            admin_event.text.find("still has it open") != std::string::npos);
    EXPECT_TRUE(is_notified);
}

TEST_F(Assigned, AScrubThatIsOwedIsNotForgottenByTheNextVgpud) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    set_open(1, true);
    ASSERT_TRUE(unassign(kA));
    world.start();
    EXPECT_NE(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_EQ(world.claim({"gpu0", 1}, "x").error().id, ErrorId::WrongState);
    set_open(1, false);
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
    world.pf().finish_scrub(1);
    world.pass(1ms);
    EXPECT_TRUE(world.claim({"gpu0", 1}, "x"));
}

TEST_F(Assigned, AScrubThatThePfCoreRefusesIsTriedAgain) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    world.pf().refuse = "release";
    ASSERT_TRUE(unassign(kA));
    EXPECT_FALSE(world.claim({"gpu0", 1}, "x"));
    world.pf().refuse = "";
    pass(GpuModel::kRefresh);
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
}

TEST_F(Assigned, OnlyTheGrantedUserOpensTheSocketsUntilTheyAreTakenBack) {
    EXPECT_EQ(assignments.grant(kA, 64055, 64055, {}).error().id, ErrorId::NoSuchVf);
    ASSERT_TRUE(assign(kA, {named("one")}));
    EXPECT_TRUE(assignments.grant(kA, 64055, 108, {}));
    EXPECT_EQ(sockets.owners.at("/run/v/vf1.sock"), "64055:108");
    EXPECT_EQ(sockets.owners.at("/run/v/vf1.agent.sock"), "64055:108");
    ASSERT_TRUE(unassign(kA));
    EXPECT_TRUE(sockets.owners.empty());
}

TEST_F(Assigned, AClaimThatIsEndedByHandClosesTheSocketsOfItsVfAlone) {
    ASSERT_TRUE(assign(kA, {named("one"), named("two")}));
    ASSERT_TRUE(assignments.grant(kA, 64055, 108, {}));
    ASSERT_TRUE(world.release({"gpu0", 1}, kA, owner_of(1).generation));
    assignments.step();
    EXPECT_FALSE(sockets.owners.contains("/run/v/vf1.sock"));
    EXPECT_FALSE(sockets.owners.contains("/run/v/vf1.agent.sock"));
    EXPECT_TRUE(sockets.owners.contains("/run/v/vf2.sock"));
    EXPECT_EQ(*adopt(kA), 2u) << "nobody else had it meanwhile";
}

TEST_F(Assigned, AVfThatWasAnothersMeanwhileIsNotAdopted) {
    ASSERT_TRUE(assign(kA, {named("one"), named("two")}));
    ASSERT_TRUE(world.release({"gpu0", 1}, kA, owner_of(1).generation));
    assignments.step();
    ASSERT_TRUE(world.claim({"gpu0", 1}, "slurm:7"));
    assignments.step();
    ASSERT_TRUE(world.release({"gpu0", 1}, "slurm:7", owner_of(1).generation));
    assignments.step();
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre("/run/v/vf2.sock"));
    EXPECT_EQ(*adopt(kA), 1u);
    EXPECT_EQ(owner_of(1), OwnerRecord{});
}

TEST_F(Assigned, AVfMadeInPlaceOfADomainsIsNotAdoptedByIt) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(assignments.grant(kA, 64055, 108, {}));
    assignments.step();
    ASSERT_TRUE(world.destroy({"gpu0", 1}, {{"force", true}}));
    world.pf().finish_scrub(1);
    world.pass(1ms);
    ASSERT_TRUE(world.create({{"name", std::string("other")}}));
    ASSERT_EQ(world.gpu().view(1).record.spec.name, "other");
    assignments.step();
    EXPECT_TRUE(sockets.owners.empty());
    EXPECT_EQ(*adopt(kA), 0u);
}

TEST_F(Assigned, ALeaseTakenOverClosesWhatWasOpenedForItsOwnerAndNotForTheNext) {
    ASSERT_TRUE(world.claim({"gpu0", 1}, "slurm:1", {{"lease_s", std::uint64_t{10}}}));
    ASSERT_TRUE(assignments.grant("slurm:1", 1000, 1000, {}));
    pass(10s);
    EXPECT_EQ(sockets.owners.at("/run/v/vf1.sock"), "1000:1000") << "nobody else selectors it yet";
    ASSERT_TRUE(assign(kA, {named("one")}));
    EXPECT_TRUE(sockets.owners.empty());
    ASSERT_TRUE(assignments.grant(kA, 64055, 108, {}));
    assignments.step();
    EXPECT_EQ(sockets.owners.at("/run/v/vf1.sock"), "64055:108");
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre("/run/v/vf1.sock"));
}

TEST_F(Assigned, WhatAnEarlierVgpudOpenedIsClosedWhenItsClaimEnds) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(assignments.grant(kA, 64055, 108, {}));
    world.start();
    Assignments later(*world.manager, sockets, world.clock);
    later.step();
    EXPECT_EQ(sockets.owners.at("/run/v/vf1.sock"), "64055:108");
    ASSERT_TRUE(world.release({"gpu0", 1}, kA, owner_of(1).generation));
    later.step();
    EXPECT_TRUE(sockets.owners.empty());
}

TEST_F(Assigned, ADomainKeepsItsSocketsWhileItsGpuIsNotInService) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    ASSERT_TRUE(assignments.grant(kA, 64055, 108, {}));
    assignments.step();
    world.pf().is_there = false;
    pass(GpuModel::kRefresh);
    ASSERT_EQ(world.gpu().state(), GpuState::PfLost);
    world.pf().is_there = true;
    pass(GpuModel::kRefresh);
    EXPECT_EQ(sockets.owners.at("/run/v/vf1.sock"), "64055:108");
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre("/run/v/vf1.sock"));
}

TEST_F(Assigned, WhatADomainDoesNotWantAnyMoreIsTakenBack) {
    ASSERT_TRUE(assign(kA, {named("one"), named("two")}));
    ASSERT_TRUE(assign(kA, {named("two")}));
    EXPECT_EQ(owner_of(1), OwnerRecord{});
    EXPECT_EQ(owner_of(2).name, kA);
    EXPECT_EQ(world.pf().vfs.at(1).state, VGPU_PF_VF_SCRUBBING);
}

TEST_F(Assigned, ARunningDomainKeepsItsVfsWhenTheStateWasLost) {
    ASSERT_TRUE(assign(kA, {named("one")}));
    set_open(1, true);
    ASSERT_TRUE(world.release({"gpu0", 1}, kA, owner_of(1).generation));
    EXPECT_EQ(*adopt(kA, {{"owner_name", std::string("vm a")}}), 1u);
    EXPECT_EQ(owner_of(1).name, kA);
    EXPECT_EQ(*adopt(kA), 1u) << "idempotent";
    EXPECT_EQ(*adopt(kB), 0u) << "it has no paths";
    EXPECT_EQ(assignments.domain_name_of(kA), "vm a");
}

TEST_F(Assigned, AVfInQuarantineIsNotGiven) {
    world.pf().set_state(1, VGPU_PF_VF_QUARANTINED);
    world.step();
    const auto refused = assign(kA, {named("one")});
    EXPECT_EQ(refused.error().cause, "gpu0/vf1 ('one') is quarantined");
}

TEST_F(Assigned, ALeaseThatIsOverIsNoClaim) {
    ASSERT_TRUE(world.claim({"gpu0", 1}, "slurm:1", {{"lease_s", std::uint64_t{10}}}));
    EXPECT_FALSE(assign(kA, {named("one")}));
    pass(10s);
    EXPECT_TRUE(assign(kA, {named("one")}));
}

TEST_F(Assigned, MistakesAreNamed) {
    EXPECT_EQ(assign("no owner", {named("one")}).error().id, ErrorId::InvalidOwner);
    EXPECT_EQ(assign(kA, {}).error().id, ErrorId::OutOfRange);
    EXPECT_EQ(assign(kA, std::vector<VfSelector>(257, named("one"))).error().cause,
              "257 VFs requested; 1 to 256 are allowed");
    EXPECT_EQ(assign(kA, {named("one")}, {{"wait_ms", std::uint64_t{10'001}}}).error().id,
              ErrorId::OutOfRange);
    EXPECT_EQ(assign(kA, {named("one")}, {{"tilte", std::string("x")}}).error().id,
              ErrorId::UnknownOption);
    const auto none = assign(kA, {{.by = VfSelector::By::Profile, .value = "small"}});
    EXPECT_EQ(none.error().id, ErrorId::NoMatchingVf);
}

TEST_F(Assigned, ATitleIsPrintableAndShort) {
    assignments.set_domain_name(kA, "a\nb" + std::string(200, 'x'));
    EXPECT_EQ(assignments.domain_name_of(kA), "a?b" + std::string(125, 'x'));
}

TEST_F(Assigned, NamesOfOwnersStayHoweverManyOthersCome) {
    ASSERT_TRUE(assign(kA, {named("one")}, {{"owner_name", std::string("vm a")}}));
    const std::size_t others = 2 * Assignments::kMaxDomainNames;
    for (std::size_t n = 0; n < others; ++n)
        assignments.set_domain_name("slurm:" + std::to_string(n), "job");
    EXPECT_EQ(assignments.domain_name_of(kA), "vm a");
    EXPECT_EQ(assignments.domain_name_of("slurm:0"), "") << "there is an end to what is kept";
    EXPECT_EQ(assignments.domain_name_of("slurm:" + std::to_string(others - 1)), "job");
}

// --- the adapter, over a real directory

class VmSocketFiles : public ::testing::Test {
protected:
    VmSocketFiles() {
        std::ofstream(directory.file("vf1.sock"));
        std::ofstream(directory.file("vf2.sock"));
    }

    [[nodiscard]] VfSockets vf(int number) const {
        return {.vfio_user = directory.file("vf" + std::to_string(number) + ".sock"), .agent = ""};
    }

    test::TempDir directory;
    adapters::VmSockets sockets{directory.path()};
};

TEST_F(VmSocketFiles, PathsLeadToTheSocketsOfTheLastAssignment) {
    ASSERT_TRUE(sockets.link("vm/" + kUuidA, {vf(1), vf(2)}));
    EXPECT_EQ(sockets.path_of("vm/" + kUuidA, 0), directory.file("vm/" + kUuidA + "/0.sock"));
    EXPECT_EQ(std::filesystem::read_symlink(sockets.path_of("vm/" + kUuidA, 0)), vf(1).vfio_user);
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre(vf(1).vfio_user, vf(2).vfio_user));
    ASSERT_TRUE(sockets.link("vm/" + kUuidA, {vf(2)}));
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre(vf(2).vfio_user));
    sockets.unlink("vm/" + kUuidA);
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre());
    EXPECT_TRUE(std::filesystem::exists(vf(2).vfio_user)) << "only the link is gone";
}

TEST_F(VmSocketFiles, AVfWhoseSocketIsGoneIsNotSuccess) {
    const auto linked = sockets.link("vm/" + kUuidA, {vf(1), vf(3)});
    ASSERT_FALSE(linked);
    EXPECT_THAT(linked.error().cause, ::testing::HasSubstr(vf(3).vfio_user + " is missing"));
}

TEST_F(VmSocketFiles, APathThatQemuCannotConnectToIsRefused) {
    const std::string owner = "owner/" + std::string(120 - directory.path().string().size(), 'a');
    const auto linked = sockets.link(owner, {vf(1)});
    ASSERT_FALSE(linked);
    EXPECT_EQ(linked.error().id, ErrorId::OutOfRange);
    EXPECT_THAT(linked.error().cause,
                HasSubstr("/0.sock has 134 bytes, but the path of a socket may"));
}

TEST_F(VmSocketFiles, ThePathsToOneVfGoAndTheOthersStay) {
    VfSockets one = vf(1);
    one.agent = directory.file("vf1.agent.sock");
    ASSERT_TRUE(sockets.link("vm/" + kUuidA, {one, vf(2)}));
    sockets.unlink_vf("vm/" + kUuidA, one);
    EXPECT_THAT(sockets.linked("vm/" + kUuidA), ElementsAre(vf(2).vfio_user));
    const auto agent =
        std::filesystem::path(sockets.path_of("vm/" + kUuidA, 0)).replace_extension(".agent.sock");
    EXPECT_FALSE(std::filesystem::is_symlink(std::filesystem::path(agent)));
    sockets.unlink_vf("vm/" + kUuidB, one);
    EXPECT_THAT(sockets.linked("vm/" + kUuidB), ElementsAre()) << "it has none";
}

TEST_F(VmSocketFiles, BesideThemIsTheImageThatKeepsTheVmFromBeingSaved) {
    ASSERT_TRUE(sockets.link("vm/" + kUuidA, {vf(1)}));
    ASSERT_TRUE(sockets.link("vm/" + kUuidA, {vf(2)})) << "again";
    const std::string path = sockets.migration_blocker_path("vm/" + kUuidA);
    std::ifstream file(path, std::ios::binary);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(image.size(), 1024u);
    EXPECT_EQ(image.substr(64, 4), "\x7f\x10\xda\xbe") << "the signature of VDI";
    EXPECT_EQ(image.substr(512, 4), "\xff\xff\xff\xff") << "no block";
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0644});
    sockets.unlink("vm/" + kUuidA);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(VmSocketFiles, ASocketIsGivenAndTakenBack) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    const auto uid_of = [](const std::string& path) {
        struct stat facts {};
        EXPECT_EQ(::lstat(path.c_str(), &facts), 0);
        return facts.st_uid;
    };
    ASSERT_TRUE(sockets.grant(vf(1), 65534, 65534));
    EXPECT_EQ(uid_of(vf(1).vfio_user), 65534u);
    sockets.revoke(vf(1));
    EXPECT_EQ(uid_of(vf(1).vfio_user), 0u);
}

TEST_F(VmSocketFiles, TheAgentsSocketIsTakenBackAlsoIfTheVfsIsGone) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    VfSockets one = vf(1);
    one.agent = vf(2).vfio_user;
    ASSERT_TRUE(sockets.grant(one, 65534, 65534));
    std::filesystem::remove(one.vfio_user);
    sockets.revoke(one);
    struct stat facts {};
    ASSERT_EQ(::lstat(one.agent.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, 0u);
}

TEST_F(VmSocketFiles, ASocketThatIsNotThereIsNamed) {
    const auto failed = sockets.grant(vf(7), 65534, 65534);
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().cause, HasSubstr("vf7.sock to uid 65534, gid 65534: No such file"));
}

}  // namespace
}  // namespace vgpu::daemon
