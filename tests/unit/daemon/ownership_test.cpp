// SPDX-License-Identifier: MIT
//
// Who a VF belongs to: the rules as pure functions, then through GpuModel: durable, shown, guarded.
#include "daemon/service/vf/ownership.h"

#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::HasSubstr;
using testing::World;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

const std::string kDomain = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";

OwnerRecord claimed_by(const std::string& name, std::uint64_t generation,
                       UnixTime expires = UnixTime{0}) {
    return {.name = name,
            .generation = generation,
            .lease_s = expires == UnixTime{0} ? 0u : 60u,
            .since = UnixTime{1000},
            .expires = expires};
}

TEST(Ownership, NamesAreOneToAHundredAndTwentyEightPrintableLetters) {
    for (const std::string good : {"a", "libvirt:x", "slurm:12.0", "user@host", "a/b+c=d#e"})
        EXPECT_TRUE(check_owner_name(good)) << good;
    EXPECT_TRUE(check_owner_name(std::string(128, 'x')));
    for (const std::string bad : {"", " ", "a b", "a\n", "it's", "a\"b", "a\\b", "\xc3\xa4"}) {
        EXPECT_FALSE(check_owner_name(bad)) << bad;
        EXPECT_EQ(check_owner_name(bad).error().id, ErrorId::InvalidOwner);
    }
    EXPECT_FALSE(check_owner_name(std::string(129, 'x')));
    EXPECT_EQ(check_owner_name("a\nb").error().cause,
              "'a?b' (3 bytes) is not a valid name for an owner");
}

TEST(Ownership, FormsThatCanBeLookedUpAreKnown) {
    const auto process = form_of("pid:12:3456");
    ASSERT_TRUE(std::holds_alternative<ProcessId>(process));
    EXPECT_EQ(std::get<ProcessId>(process), (ProcessId{.pid = 12, .start_time = 3456}));
    EXPECT_EQ(std::get<ProcessId>(form_of("pid:12")).start_time, 0u);
    for (const std::string& domain : {kDomain, "domain:" + kDomain, "libvirt:" + kDomain})
        EXPECT_EQ(std::get<DomainOwner>(form_of(domain)).uuid, kDomain);
    for (const std::string other : {"pid:", "pid:x", "pid:0", "pid:-1", "pid:1:", "pid:1:x",
                                    "pid:99999999999", "slurm:1", "libvirt:x", ""})
        EXPECT_TRUE(std::holds_alternative<OtherOwner>(form_of(other))) << other;
}

TEST(Ownership, AnOrphanIsOneWhoseLeaseIsOverWhoIsGoneOrNeverCame) {
    const OrphanFacts fine{.now = UnixTime{5000}};
    EXPECT_EQ(orphan_cause({}, {.now = UnixTime{5000}, .exists = false}), "") << "nobody's";
    EXPECT_EQ(orphan_cause(claimed_by("a", 3), fine), "");
    EXPECT_EQ(orphan_cause(claimed_by("a", 3, UnixTime{5000}), fine),
              "the lease of 'a' (claim 3) is over");
    EXPECT_EQ(orphan_cause(claimed_by("a", 3, UnixTime{5001}), fine), "");
    EXPECT_EQ(orphan_cause(claimed_by("a", 3), {.now = UnixTime{5000}, .exists = false}),
              "'a' (claim 3) no longer exists");
    EXPECT_EQ(orphan_cause(claimed_by("a", 3), {.now = UnixTime{1059}, .exists = false}), "")
        << "it may still be on its way";
    OrphanFacts long_unattached{.now = UnixTime{5000}, .unattached_for = kLongUnattached};
    EXPECT_EQ(orphan_cause(claimed_by("a", 3), long_unattached),
              "'a' (claim 3) has not opened the VF in the last 1 h");
    EXPECT_EQ(orphan_cause(claimed_by("a", 3, UnixTime{9000}), long_unattached), "")
        << "its lease says how long it may take";
    long_unattached.exists = true;
    EXPECT_EQ(orphan_cause(claimed_by("a", 3), long_unattached), "");
}

class Owners : public ::testing::Test {
protected:
    Owners() { EXPECT_TRUE(world.create({{"name", std::string("train")}})); }

    [[nodiscard]] VfView view() { return world.gpu().view(1); }
    [[nodiscard]] std::vector<std::string> orphan_admin_events() {
        std::vector<std::string> texts;
        for (const AdminEvent& admin_event : world.manager->take_admin_events())
            if (admin_event.kind == EventKind::Orphan) texts.push_back(admin_event.text);
        return texts;
    }

    World world;
    const Target vf{"gpu0", 1};
};

TEST_F(Owners, AClaimIsTheOwnersAgainAndNobodyElses) {
    EXPECT_EQ(*world.claim(vf, "a"), 1u);
    EXPECT_EQ(*world.claim(vf, "a"), 1u) << "idempotent";
    const auto refused = world.claim(vf, "b");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::Claimed);
    EXPECT_EQ(refused.error().cause, "gpu0/vf1 ('train') belongs to 'a' (claim 1)");
    EXPECT_EQ(view().record.owner.name, "a");
    EXPECT_TRUE(world.release(vf, "a", 1));
    EXPECT_TRUE(world.release(vf, "a", 1)) << "idempotent";
    EXPECT_EQ(view().record.owner, OwnerRecord{});
    EXPECT_EQ(*world.claim(vf, "b"), 2u);
}

TEST_F(Owners, ALateReleaseDoesNothingAndNamesBothGenerations) {
    EXPECT_EQ(*world.claim(vf, "a"), 1u);
    EXPECT_TRUE(world.release(vf, "a", 1));
    EXPECT_EQ(*world.claim(vf, "a"), 2u);
    const auto late = world.release(vf, "a", 1);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().id, ErrorId::StaleClaim);
    EXPECT_EQ(late.error().cause,
              "gpu0/vf1 ('train'): claim 1 is not in force: the VF belongs to 'a' (claim 2)");
    const auto others = world.release(vf, "b", 2);
    ASSERT_FALSE(others);
    EXPECT_EQ(others.error().id, ErrorId::Claimed);
    EXPECT_EQ(others.error().cause, "gpu0/vf1 ('train') belongs to 'a' (claim 2), not to 'b'");
    EXPECT_EQ(view().record.owner.generation, 2u);
}

TEST_F(Owners, GenerationsAreNeverUsedAgainAlsoNotForANewVfOfThatNumber) {
    EXPECT_EQ(*world.claim(vf, "a"), 1u);
    ASSERT_TRUE(world.destroy(vf, {{"owner", std::string("a")}}));
    world.pf().finish_scrub(1);
    world.pass(2s);
    ASSERT_TRUE(world.create({{"name", std::string("next")}}));
    EXPECT_TRUE(world.release(vf, "a", 1)) << "nobody's: nothing to do";
    EXPECT_EQ(*world.claim(vf, "b"), 2u);
    EXPECT_EQ(world.release(vf, "a", 1).error().id, ErrorId::StaleClaim);
    EXPECT_EQ(view().record.owner.name, "b");
}

TEST_F(Owners, AClaimMayNameTheOneItExpects) {
    const auto with = [](std::uint64_t generation) { return Options{{"generation", generation}}; };
    EXPECT_EQ(*world.claim(vf, "a", with(0)), 1u);
    const auto again = world.claim(vf, "a", with(0));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().id, ErrorId::StaleClaim);
    EXPECT_EQ(again.error().cause,
              "gpu0/vf1 ('train'): the request names claim 0, but 'a' (claim 1) is in force");
    EXPECT_EQ(*world.claim(vf, "a", with(1)), 1u);
    ASSERT_TRUE(world.release(vf, "a", 1));
    EXPECT_EQ(world.claim(vf, "a", with(1)).error().cause,
              "gpu0/vf1 ('train'): the request names claim 1, but there is no claim");
}

TEST_F(Owners, MistakesAreNamed) {
    EXPECT_EQ(world.claim(vf, "a b").error().id, ErrorId::InvalidOwner);
    EXPECT_EQ(
        world.claim(vf, "a", {{"lease", std::uint64_t{1}}}).error().cause,
        "this request has no option 'lease'; did you mean 'lease_s'?; the options are: generation, "
        "lease_s, persistent");
    EXPECT_EQ(world.claim(vf, "a", {{"lease_s", std::uint64_t{kMaxLeaseS} + 1}}).error().id,
              ErrorId::OutOfRange);
    EXPECT_EQ(world.claim({"gpu0", 9}, "a").error().id, ErrorId::NoSuchVf);
    EXPECT_EQ(world.release({"gpu7", 1}, "a", 1).error().id, ErrorId::NoSuchGpu);
    EXPECT_EQ(view().record.owner, OwnerRecord{});
}

TEST_F(Owners, ClaimsAreDurable) {
    EXPECT_EQ(*world.claim(vf, "a", {{"lease_s", std::uint64_t{600}}}), 1u);
    const OwnerRecord owner = view().record.owner;
    EXPECT_EQ(owner.expires, world.clock.unix_time() + 600s);
    world.start();
    EXPECT_EQ(view().record.owner, owner);
    world.pf().restart();
    world.start();
    EXPECT_EQ(view().record.owner, owner) << "also when the PF core forgot everything";
    ASSERT_TRUE(world.release(vf, "a", 1));
    world.start();
    EXPECT_EQ(view().record.owner, OwnerRecord{});
    EXPECT_EQ(*world.claim(vf, "b"), 2u);
}

TEST_F(Owners, ARefusedWriteLeavesTheVfNobodys) {
    world.state.is_full = true;
    EXPECT_EQ(world.claim(vf, "a").error().id, ErrorId::StateNotWritten);
    EXPECT_EQ(view().record.owner, OwnerRecord{});
    world.state.is_full = false;
    EXPECT_EQ(*world.claim(vf, "b"), 1u);
}

TEST_F(Owners, WhatEndsTheOwnersWorkWantsItsNameOrForce) {
    ASSERT_TRUE(world.claim(vf, "a"));
    for (const Options& options : {Options{}, Options{{"owner", std::string("b")}}}) {
        const auto reset = world.control(vf, VGPU_PF_RESET, options);
        ASSERT_FALSE(reset);
        EXPECT_EQ(reset.error().id, ErrorId::Claimed);
        EXPECT_EQ(reset.error().cause,
                  "gpu0/vf1 ('train') belongs to 'a' (claim 1); reset it on behalf of the owner "
                  "(option 'owner') or with option 'force'");
        EXPECT_EQ(world.destroy(vf, options).error().id, ErrorId::Claimed);
    }
    EXPECT_EQ(world.gpu().resize(1, {.vram_bytes = 32u << 20}, Force::No).error().id,
              ErrorId::Claimed);
    EXPECT_TRUE(world.control(vf, VGPU_PF_RESET, {{"owner", std::string("a")}}));
    EXPECT_TRUE(world.control(vf, VGPU_PF_RESET, {{"force", true}}));
    EXPECT_TRUE(world.control(vf, VGPU_PF_PAUSE, {})) << "it loses nothing";
    EXPECT_TRUE(world.set_vf(vf, {{"weight", std::uint64_t{5}}}));
    EXPECT_EQ(view().record.owner.name, "a") << "kept by other changes";
    EXPECT_TRUE(world.destroy(vf, {{"owner", std::string("a")}}));
}

TEST_F(Owners, AVfThatIsBeingDestroyedCannotBeClaimed) {
    ASSERT_TRUE(world.destroy(vf));
    EXPECT_EQ(world.claim(vf, "a").error().id, ErrorId::WrongState);
}

TEST_F(Owners, ALeaseEndsUnlessItIsRenewedAndThenAnotherMayHaveTheVf) {
    const Options minute{{"lease_s", std::uint64_t{60}}};
    EXPECT_EQ(*world.claim(vf, "a", minute), 1u);
    world.pass(59s);
    EXPECT_FALSE(world.claim(vf, "b"));
    EXPECT_EQ(*world.claim(vf, "a", minute), 1u) << "renewed";
    world.pass(59s);
    EXPECT_FALSE(world.claim(vf, "b"));
    world.pf().vfs.at(1).attached = 1;
    world.pass(11s);
    const auto in_use = world.claim(vf, "b");
    ASSERT_FALSE(in_use);
    EXPECT_EQ(in_use.error().cause,
              "gpu0/vf1 ('train') belongs to 'a' (claim 1), whose lease is "
              "over, but a client still has the VF open");
    world.pf().vfs.at(1).attached = 0;
    world.pass(2s);
    EXPECT_EQ(*world.claim(vf, "b"), 2u);
    EXPECT_EQ(world.release(vf, "a", 1).error().id, ErrorId::StaleClaim);
}

TEST_F(Owners, ALeaseThatIsOverIsNotifiedOnceAndProtectsNothing) {
    ASSERT_TRUE(world.claim(vf, "a", {{"lease_s", std::uint64_t{60}}}));
    world.pass(50s);
    EXPECT_TRUE(orphan_admin_events().empty());
    for (int i = 0; i < 10; ++i) world.pass(10s);
    EXPECT_THAT(orphan_admin_events(),
                ::testing::ElementsAre("the lease of 'a' (claim 1) is over"));
    EXPECT_EQ(view().orphan, "the lease of 'a' (claim 1) is over");
    EXPECT_TRUE(world.control(vf, VGPU_PF_RESET, {}));
    EXPECT_EQ(*world.claim(vf, "a"), 1u) << "its own again, as nobody took it";
    EXPECT_EQ(view().orphan, "");
}

TEST_F(Owners, AVirtualMachineThatIsGoneLeavesAnOrphan) {
    world.owners.domains = {kDomain};
    ASSERT_TRUE(world.claim(vf, "libvirt:" + kDomain));
    world.pass(2h);
    EXPECT_TRUE(orphan_admin_events().empty()) << "it runs";
    world.owners.domains.clear();
    world.pass(10s);
    EXPECT_THAT(orphan_admin_events(),
                ::testing::ElementsAre("'libvirt:" + kDomain + "' (claim 1) no longer exists"));
    EXPECT_EQ(view().record.owner.name, "libvirt:" + kDomain) << "it is told, not taken away";
    ASSERT_TRUE(world.release(vf, "libvirt:" + kDomain, 1));
    EXPECT_EQ(view().orphan, "");
}

TEST_F(Owners, AProcessIsKnownByItsStartAndALaterOneOfItsNumberIsAnother) {
    world.owners.processes = {{12, 345}};
    EXPECT_EQ(*world.claim(vf, "pid:12"), 1u);
    EXPECT_EQ(view().record.owner.name, "pid:12:345");
    EXPECT_EQ(*world.claim(vf, "pid:12"), 1u) << "idempotent";
    EXPECT_EQ(*world.claim(vf, "pid:12:345"), 1u);
    world.pass(2h);
    EXPECT_TRUE(orphan_admin_events().empty()) << "it runs";
    world.owners.processes = {{12, 999}};
    world.pass(10s);
    EXPECT_THAT(orphan_admin_events(),
                ::testing::ElementsAre("'pid:12:345' (claim 1) no longer exists"));
    EXPECT_EQ(world.claim(vf, "pid:12").error().id, ErrorId::Claimed);
    world.owners.processes.clear();
    EXPECT_TRUE(world.release(vf, "pid:12", 1)) << "who claimed it may not know its start";
    EXPECT_EQ(view().record.owner, OwnerRecord{});
}

TEST_F(Owners, AProcessThatCannotBeLookedUpIsItsWords) {
    EXPECT_EQ(*world.claim(vf, "pid:12"), 1u);
    EXPECT_EQ(view().record.owner.name, "pid:12");
    EXPECT_EQ(*world.claim(vf, "pid:12"), 1u);
}

TEST(Ownership, AProcessIsTheSameWithAndWithoutItsStart) {
    EXPECT_TRUE(is_same_owner("pid:12", "pid:12:345"));
    EXPECT_TRUE(is_same_owner("pid:12:345", "pid:12"));
    EXPECT_TRUE(is_same_owner("a", "a"));
    EXPECT_FALSE(is_same_owner("pid:12:345", "pid:12:346"));
    EXPECT_FALSE(is_same_owner("pid:12", "pid:13"));
    EXPECT_FALSE(is_same_owner("pid:12", "a"));
    EXPECT_FALSE(is_same_owner("", "a"));
}

TEST_F(Owners, AClaimThatNobodyUsesForLongIsAnOrphan) {
    ASSERT_TRUE(world.claim(vf, "somebody"));
    world.pass(50ms);
    world.pf().vfs.at(1).attached = 1;
    world.pass(2h);
    EXPECT_TRUE(orphan_admin_events().empty());
    world.pf().vfs.at(1).attached = 0;
    world.pass(10s);
    world.pass(59s * 60);
    EXPECT_TRUE(orphan_admin_events().empty());
    world.pass(61s);
    EXPECT_EQ(orphan_admin_events().size(), 1u);
}

}  // namespace
}  // namespace vgpu::daemon
