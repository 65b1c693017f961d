// SPDX-License-Identifier: MIT
//
// Defined and active state: after everything but the disk is gone, every defined VF comes back as
// it was; one that cannot is shown with the reason and tried again; kills at every point in between
// leave the old or the new definition.
#include "tests/unit/daemon/admin_event_texts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stdexcept>
#include <tuple>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using ::testing::HasSubstr;
using testing::texts_of;
using testing::World;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

/// The host is started anew: fresh PF core, no VF provisioned.
void reboot(World& world) {
    world.pf().restart();
    world.pf().log.clear();
    world.start();
}

TEST(Restore, AfterARebootEveryDefinedVfIsAsItWas) {
    World world;
    for (const std::string name : {"a", "b", "c"})
        ASSERT_TRUE(world.create({{"name", name},
                                  {"weight", std::uint64_t{name == "b" ? 700u : 100u}},
                                  {"cu_mask", std::uint64_t{0xf}},
                                  {"doorbell_pages", std::uint64_t{16}}}));
    ASSERT_TRUE(world.set_vf({"gpu0", 3}, {{"quantum_us", std::uint64_t{2000}}}));
    ASSERT_TRUE(world.claim({"gpu0", 3}, "slurm:7"));
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    world.pf().finish_scrub(1);
    world.pass(2s);
    const VfRecord b = world.gpu().view(2).record, c = world.gpu().view(3).record;
    reboot(world);
    EXPECT_THAT(world.pf().log, ::testing::Contains("provision 2"));
    EXPECT_FALSE(world.pf().vfs.contains(1));
    EXPECT_EQ(world.gpu().view(2).record, b);
    EXPECT_EQ(world.gpu().view(3).record, c);
    for (const std::uint32_t vf : {2u, 3u}) {
        const vgpu_pf_vf& active = world.pf().vfs.at(vf);
        const Uuid& uuid = world.gpu().view(vf).record.spec.uuid;
        EXPECT_TRUE(std::equal(uuid.begin(), uuid.end(), std::begin(active.uuid)));
        EXPECT_EQ(active.vram_bytes, 64 * FakePf::kMiB);
        EXPECT_EQ(active.cu_mask, 0xfu);
        EXPECT_EQ(active.doorbell_pages, 16u);
    }
    EXPECT_EQ(texts_of(world, EventKind::Restored).size(), 2u);
}

/// The PF core was started anew, and goes again when it is to make the second VF.
TEST(Restore, APfCoreThatIsLostWhileAttachingTakesNoVfOutOfView) {
    World world;
    for (const std::string name : {"a", "b", "c"}) ASSERT_TRUE(world.create({{"name", name}}));
    world.pf().is_there = false;
    world.pass(2s);
    world.pf().restart();
    world.pf().is_there = true;
    int made = 0;
    world.pf().refuses = [&](const std::string& operation, std::uint32_t) {
        if (operation == "provision" && ++made == 2) world.pf().is_there = false;
        return false;
    };
    world.pass(10s);
    ASSERT_EQ(made, 2);
    const auto seen = world.manager->find_gpu("gpu0")->snapshot();
    EXPECT_EQ(seen->gpu.state, GpuState::PfLost);
    ASSERT_EQ(seen->vfs.size(), 3u);
    EXPECT_EQ(seen->vfs.at(3).record.spec.name, "c");
    EXPECT_EQ(seen->vfs.at(3).active.vram_bytes, 64 * FakePf::kMiB);
    EXPECT_EQ(world.destroy({"gpu0", 3}).error().id, ErrorId::PfLost);
    world.pf().is_there = true;
    world.pass(20s);
    EXPECT_EQ(world.manager->find_gpu("gpu0")->snapshot()->gpu.state, GpuState::Ok);
    EXPECT_EQ(world.pf().vfs.size(), 3u);
}

/// The VF that was scrubbed is in view while the PF core, killed over making it again, is away.
void expect_in_view_without_the_pf_core(World& world, std::uint64_t vram_bytes) {
    world.pf().refuses = [&world](const std::string& operation, std::uint32_t) {
        if (operation == "provision") world.pf().is_there = false;
        return false;
    };
    world.pf().finish_scrub(1);
    world.pass(1s);
    const auto seen = world.manager->find_gpu("gpu0")->snapshot();
    EXPECT_EQ(seen->gpu.state, GpuState::PfLost);
    ASSERT_TRUE(seen->has_vf(1));
    EXPECT_EQ(seen->vfs.at(1).record.spec.name, "a");
    EXPECT_THAT(texts_of(world, EventKind::ScrubNotRecorded), ::testing::IsEmpty());
    world.pass(10s);
    EXPECT_TRUE(world.manager->find_gpu("gpu0")->snapshot()->has_vf(1))
        << "after vain attempts, too";
    world.pf().refuses = nullptr;
    world.pf().is_there = true;
    world.pass(20s);
    EXPECT_EQ(world.gpu().view(1).active.vram_bytes, vram_bytes);
    EXPECT_EQ(world.gpu().view(1).record.spec.resources.vram_bytes, vram_bytes);
    EXPECT_FALSE(world.gpu().view(1).record.next);
}

TEST(Restore, APfCoreThatIsLostInAResizeTakesNoVfOutOfView) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = 128 * FakePf::kMiB}, Force::Yes));
    expect_in_view_without_the_pf_core(world, 128 * FakePf::kMiB);
}

TEST(Restore, APfCoreThatIsLostBetweenTwoOwnersTakesNoVfOutOfView) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}, {"scrub_on_release", true}}));
    const auto generation = world.claim({"gpu0", 1}, "x");
    ASSERT_TRUE(world.release({"gpu0", 1}, "x", *generation));
    expect_in_view_without_the_pf_core(world, 64 * FakePf::kMiB);
}

TEST(Restore, APfCoreThatIsLostAfterSomebodyElsesReleaseTakesNoVfOutOfView) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().set_state(1, VGPU_PF_VF_SCRUBBING);
    expect_in_view_without_the_pf_core(world, 64 * FakePf::kMiB);
}

TEST(Restore, WhatCannotBeHadIsShownWithTheReasonAndTriedAgain) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    const VfRecord a = world.gpu().view(1).record;
    world.pf().refuse = "provision";
    reboot(world);
    EXPECT_EQ(world.gpu().state(), GpuState::Ok) << "the GPU is there";
    const VfView held = world.gpu().view(1);
    EXPECT_EQ(held.record, a);
    EXPECT_EQ(held.active.state, static_cast<std::uint32_t>(VGPU_PF_VF_ABSENT));
    EXPECT_EQ(held.condition, "'a' did not get its resources back: as the test wants");
    EXPECT_EQ(world.gpu().view().message,
              "1 of its VFs differ from their definitions; 'vgpuctl doctor' shows which and why");
    for (int i = 0; i < 20; ++i) world.pass(1s);
    EXPECT_THAT(texts_of(world, EventKind::NotRestored), ::testing::ElementsAre(held.condition))
        << "said once, tried often";
    EXPECT_EQ(world.create({{"name", std::string("b")}}).error().id, ErrorId::PfRefused);
    const auto planned = world.gpu().inventory();
    ASSERT_TRUE(planned);
    EXPECT_EQ(planned->vfs.at(0).condition, held.condition) << "plan and assert say so";
    world.pf().refuse = "";
    world.pass(6s);
    EXPECT_EQ(world.gpu().inventory()->vfs.at(0).condition, "");
    EXPECT_EQ(world.gpu().view(1).record, a);
    EXPECT_EQ(world.gpu().view(1).condition, "");
    EXPECT_EQ(world.gpu().view().message, "");
    EXPECT_EQ(texts_of(world, EventKind::Restored).size(), 1u);
    EXPECT_TRUE(world.pf().vfs.contains(1));
}

TEST(Restore, ARefusedCreateIsOffTheRecordAlsoWhileThePfCoreIsLost) {
    World world;
    ASSERT_TRUE(world.create({}));
    world.pf().refuses = [&world](const std::string& operation, std::uint32_t) {
        if (operation == "provision") world.state.is_full = true;
        return operation == "provision";
    };
    EXPECT_EQ(world.create({}).error().id, ErrorId::PfRefused);
    EXPECT_EQ(world.state.record().vfs.size(), 2u);
    world.pf().refuses = nullptr;
    world.pf().is_there = false;
    world.pass(5s);
    world.state.is_full = false;
    world.pass(2s);
    EXPECT_EQ(world.state.record().vfs.size(), 1u);
}

TEST(Restore, AnApertureOfZeroRefusesEveryVram) {
    World world;
    world.pf().info.vram_aperture_bytes = 0;
    world.start();
    const auto made = world.create({{"vram_bytes", std::uint64_t{64 * FakePf::kMiB}}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().id, ErrorId::NoVram);
}

/// Its record has the old shape or the new one, also where the disk does not take what follows.
TEST(Restore, AVfThatHasItsResourcesAfterARefusalIsAsDefinedWhateverTheDiskDid) {
    for (const bool is_disk_full : {false, true}) {
        World world;
        ASSERT_TRUE(world.create({{"name", std::string("a")}}));
        ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = 128 * FakePf::kMiB}, Force::No));
        world.state.is_full = is_disk_full;
        world.pf().refuse = "provision";
        reboot(world);
        ASSERT_THAT(world.gpu().view(1).condition, HasSubstr("did not get its resources back"));
        world.pf().refuse = "";
        world.pass(6s);
        world.state.is_full = false;
        world.pass(30s);
        EXPECT_EQ(world.gpu().view(1).active.state, world.pf().vfs.at(1).state);
        EXPECT_EQ(world.gpu().view(1).condition, "");
        EXPECT_EQ(world.gpu().view().message, "");
        EXPECT_TRUE(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{7}}}));
        EXPECT_TRUE(world.claim({"gpu0", 1}, "x"));
    }
}

/// Found by its UUID at the next look, not only when vgpud attaches.
TEST(Restore, AVfThatSomebodyElsePutsInThePlaceOfADefinitionIsNotifiedAsSuch) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    vgpu_pf_vf other = world.pf().vfs.at(1);
    world.pf().refuse = "provision";
    reboot(world);
    std::uint8_t& first = other.uuid[0];
    first = static_cast<std::uint8_t>(first + 1);
    world.pf().vfs[1] = other;
    world.pass(2s);
    EXPECT_THAT(world.gpu().view(1).condition, HasSubstr("'a' is defined here, but another VF"));
    EXPECT_EQ(world.claim({"gpu0", 1}, "x").error().id, ErrorId::WrongState);
}

/// Neither its refusals nor what is due for it are those of the next VF with its number.
TEST(Restore, OfAVfThatIsGoneNothingIsKept) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().refuse = "provision";
    reboot(world);
    ASSERT_NE(world.gpu().view(1).condition, "");
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    world.pf().refuse = "";
    ASSERT_TRUE(world.create({{"name", std::string("b")}}));
    EXPECT_EQ(world.gpu().view(1).condition, "");
    EXPECT_EQ(world.gpu().view().message, "");
}

TEST(Restore, ADefinitionWithoutResourcesKeepsItsNumberAndCanBeChangedAndDestroyed) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().refuse = "provision";
    reboot(world);
    EXPECT_EQ(world.control({"gpu0", 1}, VGPU_PF_RESET, {}).error().id, ErrorId::WrongState);
    const auto claim = world.claim({"gpu0", 1}, "x");
    ASSERT_FALSE(claim);
    EXPECT_EQ(claim.error().cause,
              "gpu0/vf1 ('a') has no resources now: 'a' did not get its resources back: as the "
              "test wants");
    EXPECT_TRUE(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{7}}}));
    EXPECT_EQ(world.set_vf({"gpu0", 1}, {{"name", std::string("gpu0")}}).error().id,
              ErrorId::NameTaken);
    world.pf().refuse = "";
    const auto other = world.create({{"name", std::string("b")}});
    ASSERT_TRUE(other);
    EXPECT_EQ(other->vf, 2u) << "1 is a's";
    world.pf().refuse = "provision";
    reboot(world);
    EXPECT_EQ(world.gpu().view(1).record.spec.weight, 7u);
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    EXPECT_FALSE(world.gpu().has_vf(1));
    reboot(world);
    EXPECT_FALSE(world.gpu().has_vf(1));
    EXPECT_TRUE(world.gpu().has_vf(2));
}

TEST(Restore, ADefinitionThatDoesNotFitAnyMoreIsGivenOtherResources) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().refuse = "provision";
    reboot(world);
    ASSERT_TRUE(world.gpu().resize(1, {.vram_bytes = 32 * FakePf::kMiB}, Force::No));
    EXPECT_NE(world.gpu().view(1).condition, "");
    world.pf().refuse = "";
    world.pass(6s);
    EXPECT_EQ(world.pf().vfs.at(1).vram_bytes, 32 * FakePf::kMiB);
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "a");
}

TEST(Restore, SomebodyElsesVfUnderTheNumberCostsNoDefinition) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}, {"weight", std::uint64_t{9}}}));
    const VfRecord a = world.gpu().view(1).record;
    std::uint8_t& first = world.pf().vfs.at(1).uuid[0];
    first = static_cast<std::uint8_t>(first + 1);
    world.start();
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "gpu0-vf1");
    EXPECT_THAT(world.gpu().view(1).condition, HasSubstr("'a' is defined here, but another VF"));
    EXPECT_EQ(world.set_vf({"gpu0", 1}, {{"weight", std::uint64_t{1}}}).error().id,
              ErrorId::WrongState);
    EXPECT_EQ(world.claim({"gpu0", 1}, "x").error().id, ErrorId::WrongState);
    ASSERT_TRUE(world.destroy({"gpu0", 1}));
    world.pf().finish_scrub(1);
    world.pass(2s);
    EXPECT_EQ(world.gpu().view(1).record, a);
    EXPECT_EQ(world.gpu().view(1).condition, "");
    const Uuid& uuid = a.spec.uuid;
    EXPECT_TRUE(std::equal(uuid.begin(), uuid.end(), std::begin(world.pf().vfs.at(1).uuid)));
}

TEST(Restore, ASliceIsNotHandedOutBeforeItsScrubIsDurableAlsoToItsOwnDefinition) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().set_state(1, VGPU_PF_VF_SCRUBBING);  // released behind our back
    world.pf().finish_scrub(1);
    world.state.is_full = true;
    world.pf().log.clear();
    world.start();
    world.pass(5s);
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("confirm_scrub 1")));
    EXPECT_THAT(world.pf().log, ::testing::Not(::testing::Contains("provision 1")));
    world.state.is_full = false;
    world.pass(5s);
    EXPECT_THAT(world.pf().log, ::testing::IsSupersetOf({"confirm_scrub 1", "provision 1"}));
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "a");
}

TEST(Restore, AVfThatSomebodyElseReleasedComesBack) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    const VfRecord a = world.gpu().view(1).record;
    world.pf().vfs.erase(1);
    world.pf().refuse = "provision";
    world.pass(2s);
    EXPECT_EQ(world.gpu().view(1).condition,
              "'a' did not get its resources back: as the test wants");
    world.pf().refuse = "";
    world.pass(6s);
    EXPECT_EQ(world.gpu().view(1).record, a);
    EXPECT_TRUE(world.pf().vfs.contains(1));
}

TEST(Restore, AFullDiskAtTheStartIsNoLostGpu) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    world.pf().restart();
    vgpu_pf_vf stranger{};
    stranger.vf = 5;
    stranger.state = VGPU_PF_VF_PROVISIONED;
    stranger.uuid[0] = 1;
    world.pf().vfs[5] = stranger;
    world.state.is_full = true;
    world.start();
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
    EXPECT_EQ(texts_of(world, EventKind::RecordLeft).size(), 1u);
    EXPECT_TRUE(world.pf().vfs.contains(1)) << "what is defined is durable already";
}

// --- kills: the disk and the PF core at every point of a day

struct Killed : std::runtime_error {
    Killed() : std::runtime_error("killed") {}
};

/// What an operator can see of the definitions.
std::string summary(World& world) {
    std::string text;
    const GpuRecord record = world.manager->store().gpu("gpu0");
    text += fmt::format("{} {};", record.settings.quantum_us, record.settings.max_gap_ms);
    for (const auto& [vf, one] : record.vfs)
        if (!one.is_releasing)
            text += fmt::format("{} {} {} {} {}/{};", vf, one.spec.name, one.spec.weight,
                                one.spec.resources.vram_bytes / FakePf::kMiB, one.owner.name,
                                one.owner.generation);
    return text;
}

/// Everything an operator does in a day, each act followed by a look at what is.
class Day {
public:
    explicit Day(World& world) : world_(world) { look(); }

    void active() {
        act([&] { std::ignore = world_.create({{"name", std::string("a")}}); });
        act([&] { std::ignore = world_.claim({"gpu0", 1}, "x"); });
        act([&] { std::ignore = world_.create({{"name", std::string("b")}}); });
        act([&] { std::ignore = world_.set_vf({"gpu0", 2}, {{"weight", std::uint64_t{300}}}); });
        act([&] { std::ignore = world_.release({"gpu0", 1}, "x", 1); });
        act([&] { std::ignore = world_.destroy({"gpu0", 1}); });
        act([&] {
            world_.pf().finish_scrub(1);
            world_.pass(2s);
        });
        act([&] { std::ignore = world_.create({{"name", std::string("c")}}); });
        act([&] { std::ignore = world_.claim({"gpu0", 1}, "y", {{"lease_s", std::uint64_t{5}}}); });
        act([&] { std::ignore = world_.set_gpu({"gpu0"}, {{"max_gap_ms", std::uint64_t{90}}}); });
        act([&] { std::ignore = world_.set_vf({"gpu0", 2}, {{"name", std::string("bb")}}); });
        resize(128);
        world_.clock.advance(10s);
        act([&] { std::ignore = world_.claim({"gpu0", 1}, "z"); });
        world_.pf().refuses_resources = [](const vgpu_pf_provision& wanted) {
            return wanted.vram_bytes == 32 * FakePf::kMiB;
        };
        resize(32);
    }
    /// The states before and after the act that was killed.
    [[nodiscard]] const std::vector<std::string>& seen() const { return seen_; }

private:
    /// On record when its scrub is over and the VF is made.
    void resize(std::uint64_t vram_mib) {
        act([&] {
            std::ignore =
                world_.gpu().resize(2, {.vram_bytes = vram_mib * FakePf::kMiB}, Force::No);
            world_.pf().finish_scrub(2);
            world_.pass(2s);
        });
    }
    void act(const std::function<void()>& work) {
        work();
        look();
    }
    void look() { seen_.push_back(summary(world_)); }

    World& world_;
    std::vector<std::string> seen_;
};

/// Every definition has its VF and no VF is without one; scrubs under way may still end.
void expect_settled(World& world, int kill) {
    for (std::uint32_t vf = 1; vf <= 2; ++vf)
        if (world.pf().vfs.contains(vf) &&
            world.pf().vfs.at(vf).state == static_cast<std::uint32_t>(VGPU_PF_VF_SCRUBBING))
            world.pf().finish_scrub(vf);
    for (int i = 0; i < 4; ++i) world.pass(2s);
    const GpuRecord record = world.manager->store().gpu("gpu0");
    EXPECT_EQ(record.vfs.size(), world.pf().vfs.size()) << kill;
    for (const auto& [vf, one] : record.vfs) {
        ASSERT_TRUE(world.pf().vfs.contains(vf)) << kill;
        const auto& uuid = world.pf().vfs.at(vf).uuid;
        EXPECT_TRUE(std::equal(one.spec.uuid.begin(), one.spec.uuid.end(), std::begin(uuid)))
            << kill;
        EXPECT_EQ(world.pf().vfs.at(vf).vram_bytes, one.spec.resources.vram_bytes) << kill;
        EXPECT_FALSE(one.next) << kill;
        EXPECT_EQ(world.gpu().view(vf).condition, "") << kill;
    }
}

enum class After { Kill, Reboot };

int kill_everywhere(After after, const std::vector<std::string>& whole_day) {
    int kill = 0;
    for (bool was_killed = true; was_killed; ++kill) {
        World world;
        int point = 0;
        const auto on_point = [&point, kill] {
            if (point++ == kill) throw Killed();
        };
        Day day(world);
        world.state.on_point = world.pf().on_change = on_point;
        was_killed = false;
        try {
            day.active();
        } catch (const Killed&) {
            was_killed = true;
        }
        world.state.on_point = world.pf().on_change = nullptr;
        const std::size_t last = day.seen().size() - 1;
        if (after == After::Reboot)
            reboot(world);
        else
            world.start();
        const auto expect_old_or_new = [&] {
            const std::string found = summary(world);
            const bool is_old = found == whole_day.at(last);
            const bool is_new = last + 1 < whole_day.size() && found == whole_day.at(last + 1);
            EXPECT_TRUE(is_old || is_new) << kill << ": " << found;
        };
        expect_old_or_new();
        expect_settled(world, kill);
        expect_old_or_new();
    }
    return kill;
}

TEST(Restore, KilledAtAnyPointOfADayTheNextVgpudHasTheOldOrTheNewDefinitions) {
    World world;
    Day day(world);
    day.active();
    ASSERT_EQ(day.seen().back(), "6000 90;1 c 100 64 z/3;2 bb 300 128 /0;");
    EXPECT_GE(kill_everywhere(After::Kill, day.seen()), 50);
}

TEST(Restore, PoweredOffAtAnyPointOfADayTheNextVgpudHasTheOldOrTheNewDefinitions) {
    World world;
    Day day(world);
    day.active();
    EXPECT_GE(kill_everywhere(After::Reboot, day.seen()), 50);
}

/// The PF core will not make `wanted` of VF 1; wherever vgpud dies meanwhile, its record still says
/// what the device has.
void resize_refused_and_killed_everywhere(
    const VfResources& wanted, const std::function<bool(const vgpu_pf_provision&)>& is_it) {
    const VfResources old{.vram_bytes = 64 * FakePf::kMiB, .cu_mask = 0xf, .doorbell_pages = 16};
    bool was_killed = true;
    for (int kill = 0; was_killed; ++kill) {
        World world;
        ASSERT_TRUE(world.create({{"name", std::string("a")},
                                  {"cu_mask", old.cu_mask},
                                  {"doorbell_pages", std::uint64_t{old.doorbell_pages}}}));
        world.pf().refuses_resources = is_it;
        world.pf().scrubs_at_once = true;
        int point = 0;
        world.state.on_point = world.pf().on_change = [&point, kill] {
            if (point++ == kill) throw Killed();
        };
        was_killed = false;
        try {
            ASSERT_TRUE(world.gpu().resize(1, wanted, Force::No));
        } catch (const Killed&) {
            was_killed = true;
        }
        world.state.on_point = world.pf().on_change = nullptr;
        world.start();
        for (int i = 0; i < 4; ++i) world.pass(2s);
        const VfRecord record = world.gpu().view(1).record;
        EXPECT_EQ(record.spec.resources, old) << "the device has nothing else, killed at " << kill;
        EXPECT_EQ(world.manager->store().gpu("gpu0").vfs.at(1).spec.resources, old) << kill;
        EXPECT_EQ(world.pf().vfs.at(1).cu_mask, old.cu_mask) << kill;
    }
}

TEST(Restore, KilledInARefusedResizeOfComputeUnitsTheRecordSaysWhatTheDeviceHas) {
    resize_refused_and_killed_everywhere(
        {.vram_bytes = 64 * FakePf::kMiB, .cu_mask = 0x3, .doorbell_pages = 16},
        [](const vgpu_pf_provision& wanted) { return wanted.cu_mask == 0x3; });
}

TEST(Restore, KilledInARefusedResizeOfDoorbellsTheRecordSaysWhatTheDeviceHas) {
    resize_refused_and_killed_everywhere(
        {.vram_bytes = 64 * FakePf::kMiB, .cu_mask = 0xf, .doorbell_pages = 8},
        [](const vgpu_pf_provision& wanted) { return wanted.doorbell_pages == 8; });
}

/// Of which the PF core tells nothing.
TEST(Restore, KilledInARefusedChangeOfSecurityTheRecordSaysWhatTheDeviceHas) {
    resize_refused_and_killed_everywhere(
        {.vram_bytes = 64 * FakePf::kMiB,
         .cu_mask = 0xf,
         .doorbell_pages = 16,
         .security = {.preempt_timeout_us = 5000}},
        [](const vgpu_pf_provision& wanted) { return wanted.preempt_timeout_us == 5000; });
}

/// A vgpud of before recorded the old shape only after the PF core had it again.
TEST(Restore, AVfThatCameBackHasTheResourcesThatThePfCoreReports) {
    for (const bool is_new : {false, true}) {
        World world;
        ASSERT_TRUE(world.create({{"cu_mask", std::uint64_t{0xf}}}));
        GpuRecord record = world.manager->store().gpu("gpu0");
        VfResources next = record.vfs.at(1).spec.resources;
        next.cu_mask = 0x3;
        record.vfs.at(1).next =
            VfNext{.resources = next, .replaces = world.pf().vfs.at(1).generation + 7};
        ASSERT_TRUE(world.manager->store().commit("gpu0", record));
        if (is_new) world.pf().vfs.at(1).cu_mask = 0x3;
        world.start();
        EXPECT_EQ(world.gpu().view(1).record.spec.resources.cu_mask, is_new ? 0x3u : 0xfu);
        EXPECT_FALSE(world.gpu().view(1).record.next);
    }
}

TEST(Restore, ADestroyThatThePfCoreRefusesAfterAKillCostsNoGpu) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    GpuRecord record = world.manager->store().gpu("gpu0");
    record.vfs.at(1).is_releasing = true;
    ASSERT_TRUE(world.manager->store().commit("gpu0", record));
    world.pf().refuse = "release";
    world.start();
    EXPECT_EQ(world.gpu().state(), GpuState::Ok);
    EXPECT_THAT(texts_of(world, EventKind::NotReleased),
                ::testing::ElementsAre(HasSubstr("the VF stays")));
    EXPECT_FALSE(world.manager->store().gpu("gpu0").vfs.at(1).is_releasing);
    world.pf().refuse = "";
    EXPECT_TRUE(world.destroy({"gpu0", 1}));
}

}  // namespace
}  // namespace vgpu::daemon
