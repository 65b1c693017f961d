// SPDX-License-Identifier: MIT
//
// Into whose hands a VF comes and what they find in it: assignment modes through GpuModel against a
// platform that can do some and refuses others; VRAM that is emptied between two owners.
#include "daemon/service/jobs/jobs.h"
#include "tests/unit/daemon/admin_event_texts.h"
#include "tests/unit/daemon/fake_assignment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <algorithm>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::texts_of;
using testing::World;
using std::chrono_literals::operator""s;

const Options kNobody{{"assignment_mode", std::string("none")}};
const Options kForVfio{{"assignment_mode", std::string("vfio-pci")}};

class AssignmentPolicy : public ::testing::Test {
protected:
    [[nodiscard]] VfView view(std::uint32_t number = 1) { return world.gpu().view(number); }
    Result<Target> create(const std::string& name, Options options = {}) {
        options["name"] = name;
        return world.create(options);
    }
    World world;
    const Target vf{.gpu = "gpu0", .vf = 1};
};

using AssignmentModeOfAVf = AssignmentPolicy;

TEST_F(AssignmentModeOfAVf, IsThePlatformsOwnUntilSomebodyDefinesAnother) {
    ASSERT_TRUE(create("train"));
    EXPECT_EQ(view().assignment_mode, AssignmentMode::VfioUser);
    EXPECT_EQ(view().record.spec.assignment_policy.assignment_mode, AssignmentMode::Default);
    world.assignment_mode().now[1] = AssignmentMode::None;
    world.pass(2s);
    EXPECT_EQ(view().assignment_mode, AssignmentMode::None)
        << "what nobody defined is only looked at";
}

TEST_F(AssignmentModeOfAVf, IsMadeBeforeTheVfHasResources) {
    ASSERT_TRUE(create("train", kNobody));
    ASSERT_GE(world.pf().log.size(), 2u);
    EXPECT_EQ(world.pf().log.at(0), "assignment mode 1 none");
    EXPECT_EQ(world.pf().log.at(1), "provision 1");
    EXPECT_EQ(view().assignment_mode, AssignmentMode::None);
}

TEST_F(AssignmentModeOfAVf, WhichThePlatformCannotDoIsRefusedAndChangesNothing) {
    const auto refused = create("train", kForVfio);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::AssignmentRefused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("gpu0/vf1: assignment mode 'vfio-pci': as the test"));
    EXPECT_TRUE(world.pf().vfs.empty());
    EXPECT_TRUE(world.manager->store().gpu("gpu0").vfs.empty());
    ASSERT_TRUE(create("train"));
    const VfRecord before = view().record;
    Options options = kForVfio;
    options["weight"] = std::uint64_t{7};
    EXPECT_EQ(world.set_vf(vf, options).error().id, ErrorId::AssignmentRefused);
    EXPECT_EQ(view().record, before);
    EXPECT_EQ(world.manager->store().gpu("gpu0").vfs.at(1), before);
    EXPECT_EQ(world.set_vf(vf, {{"assignment_mode", std::string("vfio")}}).error().cause,
              "option 'assignment_mode' is 'vfio', not default, none, vfio-user, vfio-pci or host");
}

TEST_F(AssignmentModeOfAVf, ThatCouldNotBeProvisionedIsTakenBack) {
    world.pf().refuse = "provision";
    ASSERT_FALSE(create("train", kNobody));
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::VfioUser);
}

TEST_F(AssignmentModeOfAVf, ThatCannotBeHadNowStaysAsDefined) {
    ASSERT_TRUE(create("train", kNobody));
    world.pf().refuse = "provision";
    world.pf().restart();
    world.assignment_mode().now.clear();
    world.pf().log.clear();
    world.start();
    for (int i = 0; i < 20; ++i) world.pass(1s);
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("assignment mode 1 vfio-user")));
    EXPECT_EQ(std::count(world.pf().log.begin(), world.pf().log.end(), "assignment mode 1 none"),
              1);
    EXPECT_THAT(texts_of(world, EventKind::AssignmentModeSet), ::testing::IsEmpty());
    EXPECT_EQ(view().assignment_mode, AssignmentMode::None);
    ASSERT_TRUE(world.destroy(vf));
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::VfioUser)
        << "its number is as by default again";
}

TEST_F(AssignmentModeOfAVf, ThatWasRefusedIsOffTheRecordWhenTheDiskTakesIt) {
    constexpr int kPointsOfARecord = 5;
    ASSERT_TRUE(create("train"));
    const VfRecord before = view().record;
    int points = 0;
    world.state.on_point = [&] {
        if (++points == kPointsOfARecord) world.state.is_full = true;
    };
    Options options = kForVfio;
    options["weight"] = std::uint64_t{7};
    EXPECT_EQ(world.set_vf(vf, options).error().id, ErrorId::AssignmentRefused);
    world.state.on_point = nullptr;
    ASSERT_EQ(world.manager->store().gpu("gpu0").vfs.at(1).spec.weight, 7u)
        << "it is left on record";
    world.state.is_full = false;
    world.pass(2s);
    EXPECT_EQ(world.manager->store().gpu("gpu0").vfs.at(1), before);
    world.start();
    EXPECT_EQ(view().record, before);
}

TEST_F(AssignmentModeOfAVf, ThatIsClaimedIsItsOwnersToChange) {
    ASSERT_TRUE(create("train"));
    ASSERT_TRUE(world.claim(vf, "a"));
    const auto refused = world.set_vf(vf, kNobody);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::Claimed);
    Options options = kNobody;
    options["owner"] = std::string("b");
    EXPECT_EQ(world.set_vf(vf, options).error().id, ErrorId::Claimed);
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::VfioUser);
    options["owner"] = std::string("a");
    EXPECT_TRUE(world.set_vf(vf, options));
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::None);
    EXPECT_TRUE(world.set_vf(vf, {{"assignment_mode", std::string("default")}, {"force", true}}));
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::VfioUser);
    EXPECT_TRUE(world.set_vf(vf, {{"weight", std::uint64_t{9}}})) << "that is nobody's business";
}

TEST_F(AssignmentModeOfAVf, ThatAClientHasOpenWantsForce) {
    ASSERT_TRUE(create("train"));
    world.pf().vfs.at(1).attached = 1;
    world.pass(2s);
    EXPECT_EQ(world.set_vf(vf, kNobody).error().id, ErrorId::WrongState);
    Options options = kNobody;
    options["force"] = true;
    EXPECT_TRUE(world.set_vf(vf, options));
}

TEST_F(AssignmentModeOfAVf, IsDurableAndHoldsAgainstAPlatformThatBeganAnew) {
    ASSERT_TRUE(create("train", kNobody));
    world.assignment_mode().now.clear();
    world.start();
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::None);
    EXPECT_THAT(texts_of(world, EventKind::AssignmentModeSet),
                ElementsAre("gpu0/vf1 ('train') has assignment mode 'none' again"));
    world.assignment_mode().now[1] = AssignmentMode::VfioUser;
    world.pass(2s);
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::None);
}

TEST_F(AssignmentModeOfAVf, WhichThePlatformWillNotDoAnyMoreIsAConditionThatIsNotifiedOnce) {
    ASSERT_TRUE(create("train", kNobody));
    world.assignment_mode().now.clear();
    world.assignment_mode().busy.insert(1);
    for (int i = 0; i < 3; ++i) world.pass(2s);
    EXPECT_THAT(texts_of(world, EventKind::AssignmentModeFailed),
                ElementsAre("gpu0/vf1: assignment mode 'none': its function is in use"));
    EXPECT_EQ(view().condition, "gpu0/vf1: assignment mode 'none': its function is in use");
    EXPECT_EQ(view().assignment_mode, AssignmentMode::VfioUser);
    EXPECT_TRUE(world.claim(vf, "a")) << "it is in service";
    world.assignment_mode().busy.clear();
    world.pass(2s);
    EXPECT_EQ(view().condition, "");
    EXPECT_EQ(view().assignment_mode, AssignmentMode::None);
}

TEST_F(AssignmentModeOfAVf, EndsWithTheVf) {
    world.pf().scrubs_at_once = true;
    ASSERT_TRUE(create("train", kNobody));
    ASSERT_TRUE(world.destroy(vf));
    world.step();
    EXPECT_FALSE(world.pf().vfs.contains(1));
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::VfioUser);
    ASSERT_TRUE(create("other"));
    EXPECT_EQ(view().assignment_mode, AssignmentMode::VfioUser);
}

// --- by configurations

constexpr const char* kWithheld = R"({
    "profiles": {"p": {"resources": {"vram": "64MiB"}, "security": {"scrub_on_release": true},
                       "assignment_mode": "none"}},
    "configs": {"day": [{"gpu": "gpu0", "vfs": [{"profile": "p", "count": 2, "name": "v{n}"}]}]}
})";

class AssignmentPolicyByConfiguration : public AssignmentPolicy {
protected:
    JobView apply(const std::string& document, const Options& options = {}) {
        const auto id = jobs.apply(document, options);
        EXPECT_TRUE(id) << id.error().cause;
        for (int i = 0; i < 20; ++i) {
            jobs.step();
            world.step();
        }
        return jobs.list().back();
    }
    std::string exported() {
        std::string text;
        jobs.export_document({}, [&text](const Result<std::string>& answer) {
            text = answer ? *answer : answer.error().cause;
        });
        return text;
    }
    Jobs jobs{*world.manager, world.clock};
};

TEST_F(AssignmentPolicyByConfiguration, IsSetWithoutAResizeAndExportedAgain) {
    ASSERT_TRUE(create("v1"));
    ASSERT_TRUE(create("v2"));
    EXPECT_EQ(apply(kWithheld).state, "done");
    EXPECT_EQ(view(1).assignment_mode, AssignmentMode::None);
    EXPECT_TRUE(view(2).record.spec.assignment_policy.scrubs_on_release);
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("release 1")));
    EXPECT_THAT(exported(), HasSubstr("\"assignment_mode\": \"none\""));
    EXPECT_THAT(exported(), HasSubstr("\"scrub_on_release\": true"));
    ASSERT_TRUE(world.set_vf({"gpu0", 2}, {{"assignment_mode", std::string("default")}}));
    EXPECT_EQ(apply(kWithheld).state, "done");
    EXPECT_EQ(world.assignment_mode().of(2), AssignmentMode::None);
}

TEST_F(AssignmentPolicyByConfiguration, OfAVfThatIsClaimedWantsForce) {
    ASSERT_TRUE(create("v1"));
    ASSERT_TRUE(world.claim(vf, "a"));
    const JobView refused = apply(kWithheld);
    EXPECT_EQ(refused.state, "failed");
    EXPECT_THAT(refused.error->cause, HasSubstr("it belongs to 'a'"));
    EXPECT_EQ(apply(kWithheld, {{"force", true}}).state, "done");
}

TEST_F(AssignmentPolicyByConfiguration, WhichOneVfIsRefusedNoVfGets) {
    ASSERT_TRUE(create("v1"));
    ASSERT_TRUE(create("v2"));
    const std::string before = exported();
    world.assignment_mode().busy.insert(2);
    const JobView job = apply(kWithheld);
    EXPECT_EQ(job.state, "failed");
    EXPECT_THAT(job.error->cause,
                HasSubstr("gpu0/vf2: assignment mode 'none': its function is in use"));
    EXPECT_EQ(world.assignment_mode().of(1), AssignmentMode::VfioUser);
    EXPECT_EQ(exported(), before);
}

// --- what the next owner finds

class ScrubBetweenOwners : public AssignmentPolicy {
protected:
    void make(bool scrubs_on_release) {
        ASSERT_TRUE(create("train", {{"scrub_on_release", scrubs_on_release}}));
        world.pf().log.clear();
    }
    [[nodiscard]] long releases() {
        return std::count(world.pf().log.begin(), world.pf().log.end(), "release 1");
    }
    Result<> resize() {
        return world.gpu().resize(1, {.vram_bytes = 128 * testing::FakePf::kMiB}, Force::Yes);
    }
    /// The PF core is killed over the next change it is asked for, before it has done any of it.
    void lose_next_change() {
        world.pf().on_change = [this] { world.pf().is_there = false; };
    }
    void find_again() {
        world.pf().on_change = nullptr;
        world.pf().is_there = true;
        world.pass(10s);
    }
};

TEST_F(ScrubBetweenOwners, OnReleaseComesWithTheEndOfEveryClaim) {
    make(true);
    const auto generation = world.claim(vf, "a");
    ASSERT_TRUE(generation);
    ASSERT_TRUE(world.release(vf, "a", *generation));
    EXPECT_EQ(releases(), 1);
    EXPECT_EQ(world.claim(vf, "b").error().id, ErrorId::WrongState) << "not before it is empty";
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.claim(vf, "b"));
}

TEST_F(ScrubBetweenOwners, OtherwiseComesOnlyIfTheReleaseRequestsIt) {
    make(false);
    const auto generation = world.claim(vf, "a");
    ASSERT_TRUE(world.release(vf, "a", *generation));
    EXPECT_EQ(releases(), 0);
    EXPECT_TRUE(world.claim(vf, "b"));
}

TEST_F(ScrubBetweenOwners, OnReleaseComesBeforeAnExpiredLeaseIsTakenOver) {
    make(true);
    ASSERT_TRUE(world.claim(vf, "a", {{"lease_s", std::uint64_t{60}}}));
    world.pass(61s);
    const auto refused = world.claim(vf, "b");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::WrongState);
    EXPECT_EQ(refused.error().cause,
              "gpu0/vf1: the lease of 'a' (claim 1) is over; the VF is being scrubbed and is "
              "available afterwards");
    EXPECT_EQ(releases(), 1);
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.claim(vf, "b"));
}

TEST_F(ScrubBetweenOwners, OnReleaseKeepsTheVramOfAnOwnerThatClaimsAgain) {
    make(true);
    ASSERT_TRUE(world.claim(vf, "a", {{"lease_s", std::uint64_t{60}}}));
    world.pass(61s);
    EXPECT_TRUE(world.claim(vf, "a"));
    EXPECT_EQ(releases(), 0);
}

TEST_F(ScrubBetweenOwners, OfAVfThatIsDestroyedMeanwhileIsItsLast) {
    make(true);
    const auto generation = world.claim(vf, "a");
    ASSERT_TRUE(world.release(vf, "a", *generation));
    ASSERT_TRUE(world.destroy(vf));
    EXPECT_TRUE(world.manager->store().gpu("gpu0").vfs.at(1).is_releasing) << "durable at once";
    EXPECT_EQ(releases(), 1) << "the scrub under way is enough";
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.pf().vfs.empty());
    EXPECT_TRUE(world.manager->store().gpu("gpu0").vfs.empty());
    world.start();
    EXPECT_TRUE(world.gpu().vfs().empty());
}

TEST_F(ScrubBetweenOwners, OfAVfThatGetsOtherResourcesIsItsOwnersToMakeTheLast) {
    make(false);
    ASSERT_TRUE(world.claim(vf, "a"));
    ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = 128 * testing::FakePf::kMiB}, Force::Yes));
    EXPECT_EQ(world.destroy(vf).error().id, ErrorId::Claimed);
    EXPECT_TRUE(world.destroy(vf, {{"owner", std::string("a")}}));
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.pf().vfs.empty());
}

TEST_F(ScrubBetweenOwners, ThatThePfCoreGaveUpIsBegunAgainAndReported) {
    make(false);
    ASSERT_TRUE(world.destroy(vf));
    world.pf().vfs.at(1).last_error = VGPU_PF_REASON_BAD_STATUS;
    world.pass(2s);
    EXPECT_EQ(releases(), 2);
    EXPECT_THAT(view().condition, HasSubstr("its VRAM could not be scrubbed"));
    EXPECT_THAT(texts_of(world, EventKind::NotScrubbed),
                ElementsAre(HasSubstr("gpu0/vf1 ('train')")));
    world.pf().vfs.at(1).last_error = VGPU_PF_REASON_BAD_STATUS;
    world.pass(2s);
    EXPECT_EQ(releases(), 2) << "not at once";
    world.pass(5s);
    EXPECT_EQ(releases(), 3);
    world.pf().finish_scrub(1);
    world.pass(6s);
    EXPECT_EQ(releases(), 3);
    EXPECT_TRUE(world.pf().vfs.empty());
    EXPECT_TRUE(world.create({}));
}

TEST_F(ScrubBetweenOwners, ThatThePfCoreGaveUpDoesNotKeepADestroyedVf) {
    make(false);
    ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = 128 * testing::FakePf::kMiB}, Force::Yes));
    world.pf().vfs.at(1).last_error = VGPU_PF_REASON_BAD_STATUS;
    world.pass(2s);
    ASSERT_THAT(view().condition, HasSubstr("its VRAM could not be scrubbed"));
    ASSERT_TRUE(world.destroy(vf));
    EXPECT_TRUE(world.manager->store().gpu("gpu0").vfs.at(1).is_releasing);
    world.pf().finish_scrub(1);
    world.pass(6s);
    EXPECT_TRUE(world.pf().vfs.empty());
    EXPECT_TRUE(world.manager->store().gpu("gpu0").vfs.empty());
}

TEST_F(ScrubBetweenOwners, ThatThePfCoreCouldNotCheckIsCheckedAgain) {
    make(false);
    ASSERT_TRUE(world.destroy(vf));
    world.pf().is_scrubbed.insert(1);  // its event was for the former vgpud
    world.pf().refuse = "check_scrubbed";
    world.start();
    world.pass(2s);
    ASSERT_TRUE(world.pf().vfs.contains(1));
    world.pf().refuse = "";
    for (int i = 0; i < 2; ++i) world.pass(2s);
    EXPECT_TRUE(world.pf().vfs.empty());
}

TEST_F(ScrubBetweenOwners, WhoseEndThePfCoreRefusesToTakeIsReportedAndNotForgotten) {
    make(false);
    ASSERT_TRUE(world.destroy(vf));
    world.pf().refuse = "confirm_scrub";
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_THAT(texts_of(world, EventKind::ScrubNotRecorded), ElementsAre(HasSubstr("the test")));
    world.pf().refuse = "";
    world.pass(2s);
    EXPECT_TRUE(world.pf().vfs.empty());
    EXPECT_TRUE(world.create({}));
}

TEST_F(ScrubBetweenOwners, ThatEndsAmongLostEventsIsNoticedAlsoIfItsVfCannotBeReadThen) {
    make(false);
    ASSERT_TRUE(world.destroy(vf));
    world.pass(2s);
    world.pf().ring_entries = 8;
    world.pf().finish_scrub(1);
    for (int i = 0; i < 20; ++i) world.pf().push(VGPU_PF_EVENT_WAKE, 1, 1);
    world.pf().refuse = "get_vf";
    world.pass(2s);
    ASSERT_TRUE(world.pf().vfs.contains(1));
    world.pf().refuse = "";
    for (int i = 0; i < 2; ++i) world.pass(2s);
    EXPECT_TRUE(world.pf().vfs.empty());
}

TEST_F(ScrubBetweenOwners, WhoseLastRecordTheDiskRefusedIsRecordedWhenItTakesIt) {
    make(false);
    ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = 128 * testing::FakePf::kMiB}, Force::Yes));
    world.pf().refuses = [this](const std::string& operation, std::uint32_t) {
        if (operation == "provision") world.state.is_full = true;
        return false;
    };
    world.pf().finish_scrub(1);
    world.pass(2s);
    ASSERT_EQ(view().active.vram_bytes, 128 * testing::FakePf::kMiB);
    EXPECT_EQ(world.claim(vf, "a").error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(world.set_vf(vf, {{"weight", std::uint64_t{7}}}).error().id,
              ErrorId::StateNotWritten);
    world.state.is_full = false;
    world.pass(2s);
    EXPECT_FALSE(world.manager->store().gpu("gpu0").vfs.at(1).next) << "without a request";
    EXPECT_TRUE(world.claim(vf, "a"));
    world.start();
    EXPECT_EQ(view().record.spec.resources.vram_bytes, 128 * testing::FakePf::kMiB);
}

TEST_F(ScrubBetweenOwners, WhoseLastRecordTheDiskRefusedDoesNotKeepADestroyedVf) {
    make(false);
    ASSERT_TRUE(resize());
    world.pf().refuses = [this](const std::string& operation, std::uint32_t) {
        if (operation == "provision") world.state.is_full = true;
        return false;
    };
    world.pf().finish_scrub(1);
    world.pass(2s);
    ASSERT_TRUE(world.manager->store().gpu("gpu0").vfs.at(1).next) << "the last record is due";
    world.state.is_full = false;
    ASSERT_TRUE(world.destroy(vf));
    world.pass(2s);
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.pf().vfs.empty());
    EXPECT_TRUE(world.manager->store().gpu("gpu0").vfs.empty());
}

TEST_F(ScrubBetweenOwners, WhoseRecordIsRefusedAfterARefusedReleaseIsStillOwed) {
    make(true);
    const auto generation = world.claim(vf, "a");
    ASSERT_TRUE(generation);
    world.pf().refuse = "release";
    ASSERT_TRUE(world.release(vf, "a", *generation));
    ASSERT_TRUE(view().record.next);
    EXPECT_FALSE(world.gpu().resize(1, {.vram_bytes = 128 * testing::FakePf::kMiB}, Force::Yes));
    EXPECT_TRUE(view().record.next) << "the scrub is still owed";
    EXPECT_EQ(world.claim(vf, "b").error().id, ErrorId::WrongState);
}

TEST_F(ScrubBetweenOwners, IsOwedAlsoWhereAResizeIsInDoubt) {
    make(true);
    const auto generation = world.claim(vf, "a");
    ASSERT_TRUE(generation);
    lose_next_change();
    EXPECT_EQ(resize().error().id, ErrorId::PfLost);
    ASSERT_TRUE(world.release(vf, "a", *generation));
    find_again();
    EXPECT_EQ(releases(), 1);
    EXPECT_EQ(world.claim(vf, "b").error().id, ErrorId::WrongState);
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.claim(vf, "b"));
    EXPECT_EQ(view().active.vram_bytes, 64 * testing::FakePf::kMiB) << "it was not resized";
}

TEST_F(ScrubBetweenOwners, IsOwedByTheNextVgpudToo) {
    make(true);
    const auto generation = world.claim(vf, "a");
    lose_next_change();
    EXPECT_EQ(resize().error().id, ErrorId::PfLost);
    ASSERT_TRUE(world.release(vf, "a", *generation));
    world.pf().on_change = nullptr;
    world.pf().is_there = true;
    world.start();
    EXPECT_EQ(releases(), 1);
    EXPECT_EQ(world.claim(vf, "b").error().id, ErrorId::WrongState);
}

TEST_F(ScrubBetweenOwners, IsStillOwedAfterAResizeThatThePfCoreWasLostOver) {
    make(true);
    const auto generation = world.claim(vf, "a");
    world.pf().refuse = "release";
    ASSERT_TRUE(world.release(vf, "a", *generation));
    world.pf().refuse = "";
    lose_next_change();
    EXPECT_EQ(resize().error().id, ErrorId::PfLost);
    find_again();
    EXPECT_EQ(releases(), 1);
    EXPECT_EQ(world.claim(vf, "b").error().id, ErrorId::WrongState);
}

TEST_F(ScrubBetweenOwners, IsOwedAlsoWhereADestroyComesToNothing) {
    make(true);
    const auto generation = world.claim(vf, "a");
    lose_next_change();
    EXPECT_EQ(world.destroy(vf, {{"force", true}}).error().id, ErrorId::PfLost);
    ASSERT_TRUE(world.release(vf, "a", *generation));
    int asked = 0;
    world.pf().refuses = [&asked](const std::string& operation, std::uint32_t) {
        return operation == "release" && ++asked == 1;
    };
    find_again();
    EXPECT_FALSE(view().record.is_releasing) << "refused: it stays";
    EXPECT_EQ(releases(), 1);
    EXPECT_EQ(world.claim(vf, "b").error().id, ErrorId::WrongState);
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_TRUE(world.claim(vf, "b"));
}

TEST_F(ScrubBetweenOwners, IsYesOrNo) {
    EXPECT_EQ(create("train", {{"scrub_on_release", std::string("never")}}).error().cause,
              "option 'scrub_on_release' must be a boolean (b), not a value of type 's'");
}

TEST_F(ScrubBetweenOwners, IsDurableAndChangedWithoutDisturbingTheVf) {
    make(false);
    ASSERT_TRUE(world.set_vf(vf, {{"scrub_on_release", true}}));
    EXPECT_EQ(releases(), 0);
    world.start();
    EXPECT_TRUE(view().record.spec.assignment_policy.scrubs_on_release);
}

}  // namespace
}  // namespace vgpu::daemon
