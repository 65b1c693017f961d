// SPDX-License-Identifier: MIT
//
// GPUs with other drivers than our PF core: the service treats them alike, refuses before the first
// write what a driver cannot do, and leaves out what it does not know.
#include "daemon/backend/backend.h"

#include "daemon/dbus/properties.h"
#include "daemon/service/jobs/jobs.h"
#include "daemon/service/owners/assignments.h"
#include "tests/unit/daemon/fake_vm_sockets.h"
#include "tests/unit/daemon/plain_backend.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakePf;
using ::testing::HasSubstr;
using testing::PlainBackend;
using testing::PlainGpu;
using testing::World;

const Target kOne{.gpu = "gpu0", .vf = 1};

Options quantum(std::uint64_t us) {
    return {{"quantum_us", us}};
}

class APlainGpu : public ::testing::Test {
protected:
    Result<Target> create(const std::string& name, Options options = {}) {
        options["name"] = name;
        return world.create_as_is("gpu0", options);
    }
    /// What is on record and what the device has; both unchanged after a refusal.
    [[nodiscard]] auto everything() {
        return std::pair{world.manager->store().gpu("gpu0"), gpu.writes};
    }
    void open(std::uint32_t vf, bool is_open = true) {
        gpu.vfs.at(vf).is_attached = is_open;
        world.pass(GpuModel::kRefresh);
    }
    JobView apply(const std::string& document, const Options& options = {}) {
        const auto id = jobs.apply(document, options);
        EXPECT_TRUE(id) << id.error().cause;
        for (int i = 0; i < 10; ++i) {
            jobs.step();
            world.pass(std::chrono::milliseconds(100));
        }
        return jobs.list().back();
    }
    [[nodiscard]] nlohmann::json plan(const std::string& document) {
        nlohmann::json plan;
        jobs.plan(document, {}, [&plan](const Result<std::string>& text) {
            EXPECT_TRUE(text) << text.error().cause;
            plan = nlohmann::json::parse(*text);
        });
        return plan;
    }

    PlainGpu gpu;
    World world{{"gpu0"}, [this](FakePf&) { return std::make_unique<PlainBackend>(gpu); }};
    Jobs jobs{*world.manager, world.clock};
};

const std::string kTwo =
    R"({"profiles": {"p": {"resources": {}, "scheduler": {"quantum_us": 4000}}},
    "configs": {"day": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "a"},
                                                {"profile": "p", "name": "b"}]}]}})";

TEST_F(APlainGpu, GoesThroughTheLifeOfItsVfs) {
    ASSERT_EQ(create("a").value().vf, 1u);
    EXPECT_EQ(gpu.quanta_us[1], scheduler::kDefaultQuantumUs);
    ASSERT_TRUE(world.set_vf(kOne, quantum(4000)));
    world.step();
    EXPECT_EQ(gpu.quanta_us[1], 4000u);
    ASSERT_TRUE(world.set_vf(kOne, {{"description", std::string("for the web")}}));
    ASSERT_TRUE(world.control(kOne, VGPU_PF_RESET, {}));
    const auto claim = world.claim(kOne, "job");
    ASSERT_TRUE(claim);
    EXPECT_EQ(world.destroy(kOne).error().id, ErrorId::Claimed);
    ASSERT_TRUE(world.release(kOne, "job", *claim));
    ASSERT_TRUE(world.destroy(kOne));
    world.step();
    EXPECT_FALSE(world.gpu().has_vf(1));
    EXPECT_THAT(gpu.writes, ElementsAre("provision 1", "set_shares 1", "set_shares 1", "control 1",
                                        "release 1", "confirm_scrub 1"));
}

TEST_F(APlainGpu, IsAppliedToAConfigurationAndThenMatchesIt) {
    EXPECT_EQ(apply(kTwo).state, "done");
    EXPECT_EQ(gpu.quanta_us, (std::map<std::uint32_t, std::uint32_t>{{1, 4000}, {2, 4000}}));
    EXPECT_TRUE(plan(kTwo).at("is_empty"));
    const auto room = plan(kTwo).at("gpus").at(0);
    EXPECT_FALSE(room.contains("compute_units"));
    EXPECT_FALSE(room.contains("doorbell_pages"));
}

TEST_F(APlainGpu, GivesItsVfsToDomainsAndTakesThemBackEmpty) {
    const std::string domain = "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
    ASSERT_TRUE(create("a"));
    testing::FakeVmSockets sockets;
    Assignments assignments{*world.manager, sockets, world.clock};
    Result<std::vector<AssignedVf>> given = fail(ErrorId::System, "no answer");
    assignments.assign(domain, {{.by = VfSelector::By::Name, .value = "a"}}, {},
                       [&given](Result<std::vector<AssignedVf>> all) { given = std::move(all); });
    ASSERT_TRUE(given) << given.error().cause;
    EXPECT_EQ(given->front().target, kOne);
    assignments.unassign(domain, {}, [](const Result<std::uint32_t>&) {});
    world.step();
    world.step();
    EXPECT_EQ(world.gpu().view(1).record.owner.name, "");
    EXPECT_EQ(world.gpu().view(1).active.generation, 2u) << "its state is that of a new VF";
}

TEST_F(APlainGpu, KeepsItsVfsOverARestartOfVgpudWithoutAWrite) {
    ASSERT_TRUE(create("a", quantum(4000)));
    world.step();
    open(1);
    const auto before = everything();
    world.start();
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(world.gpu().view(1).record.spec.name, "a");
}

/// A driver that forgets everything, as after a restart of the host.
TEST_F(APlainGpu, GetsItsVfsBackFromTheRecords) {
    ASSERT_TRUE(create("a", quantum(4000)));
    gpu = {};
    world.start();
    EXPECT_EQ(gpu.vfs.at(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_PROVISIONED));
    EXPECT_EQ(gpu.quanta_us[1], 4000u);
}

TEST_F(APlainGpu, RefusesWhatItsDriverCannotDoBeforeTheFirstWrite) {
    ASSERT_TRUE(create("a"));
    world.step();
    struct Bad {
        Options options;
        ErrorId id;
        std::string text;
    };
    const std::vector<Bad> all{
        {{{"weight", std::uint64_t{200}}}, ErrorId::NotOffered, "cannot change weight of"},
        {{{"min_pct", 10.0}}, ErrorId::NotOffered, "cannot change min_pct of"},
        {{{"mode", std::string("strict")}}, ErrorId::NotOffered, "cannot change mode of"},
        {{{"assignment_mode", std::string("host")}},
         ErrorId::NotOffered,
         "cannot change assignment_mode of"},
        {quantum(1500), ErrorId::OutOfRange, "1500 is not a multiple of 1000; 1000 or 2000"},
        {quantum(200'000), ErrorId::OutOfRange, "200000 is not in 1000 to 100000"},
    };
    const auto before = everything();
    for (const Bad& bad : all) {
        for (const auto& refused : {world.set_vf(kOne, bad.options),
                                    create("b", bad.options).map([](const Target&) {})}) {
            ASSERT_FALSE(refused) << bad.text;
            EXPECT_EQ(refused.error().id, bad.id) << refused.error().cause;
            EXPECT_THAT(refused.error().cause,
                        AllOf(HasSubstr("gpu0 (driver plain)"), HasSubstr(bad.text)));
        }
        EXPECT_EQ(everything(), before) << bad.text;
    }
}

TEST_F(APlainGpu, RefusesResourcesAndActionsThatItsDriverDoesNotHave) {
    ASSERT_TRUE(create("a"));
    world.step();
    const auto before = everything();
    const std::vector<std::pair<std::string, std::string>> resources{
        {"vram_bytes", "VRAM"}, {"cu_mask", "compute units"}, {"doorbell_pages", "doorbell pages"}};
    for (const auto& [option, words] : resources) {
        const auto refused = create("b", {{option, std::uint64_t{16u << 20}}});
        ASSERT_FALSE(refused) << option;
        EXPECT_EQ(refused.error().id, ErrorId::NotOffered) << option;
        EXPECT_THAT(text_of(refused.error()),
                    AllOf(HasSubstr("gpu0 (driver plain) cannot change " + words),
                          HasSubstr("Leave this change out")));
    }
    for (const auto action : {VGPU_PF_PAUSE, VGPU_PF_RESUME, VGPU_PF_STOP})
        EXPECT_EQ(world.control(kOne, action, {}).error().id, ErrorId::NotOffered) << action;
    EXPECT_EQ(world.gpu().resize(1, {.vram_bytes = 16u << 20}, Force::Yes).error().id,
              ErrorId::NotOffered);
    EXPECT_EQ(world.set_gpu({.gpu = "gpu0"}, {{"max_gap_ms", std::uint64_t{90}}}).error().id,
              ErrorId::NotOffered);
    EXPECT_EQ(everything(), before);
}

TEST_F(APlainGpu, HasNoMoreVfsThanItsDriver) {
    for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(create(name));
    EXPECT_EQ(create("e").error().id, ErrorId::NoFreeVf);
}

TEST_F(APlainGpu, ChangesWhatNeedsAllVfsIdleOnlyWhileNoneIsOpen) {
    ASSERT_TRUE(create("a"));
    ASSERT_TRUE(create("b"));
    world.step();
    open(2);
    const auto before = everything();
    for (const bool force : {false, true}) {
        Options options = quantum(4000);
        options["force"] = force;
        const auto refused = world.set_vf(kOne, options);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().id, ErrorId::VfsInUse);
        EXPECT_EQ(refused.error().cause,
                  "gpu0 (driver plain): quantum_us of gpu0/vf1 ('a') needs all VFs idle, but "
                  "gpu0/vf2 ('b') is open");
    }
    EXPECT_EQ(everything(), before);
    open(2, false);
    EXPECT_TRUE(world.set_vf(kOne, quantum(4000)));
}

TEST_F(APlainGpu, ChangesWhatNeedsAllVfsIdleForAnOwnerOnlyWithForce) {
    ASSERT_TRUE(create("a"));
    ASSERT_TRUE(create("b"));
    ASSERT_TRUE(world.claim({.gpu = "gpu0", .vf = 2}, "job"));
    EXPECT_THAT(world.set_vf(kOne, quantum(4000)).error().cause,
                HasSubstr("gpu0/vf2 ('b') belongs to 'job'"));
    Options options = quantum(4000);
    options["force"] = true;
    EXPECT_TRUE(world.set_vf(kOne, options));
}

TEST_F(APlainGpu, SaysInItsPlanWhatNeedsAllVfsIdleAndAppliesNothingMeanwhile) {
    ASSERT_TRUE(create("a"));
    ASSERT_TRUE(create("b", quantum(4000)));
    world.step();
    open(2);
    const auto steps = plan(kTwo).at("steps");
    const auto set = std::find_if(steps.begin(), steps.end(),
                                  [](const auto& step) { return step.at("action") == "set"; });
    ASSERT_NE(set, steps.end());
    EXPECT_EQ(set->at("needs"), "all-idle");
    EXPECT_EQ(set->at("why"), "quantum_us needs all VFs idle");
    EXPECT_EQ(set->at("blocked"), "gpu0/vf2 ('b': a client has it open)");
    const auto before = everything();
    const JobView job = apply(kTwo, {{"force", true}});
    EXPECT_EQ(job.state, "failed");
    ASSERT_TRUE(job.error);
    EXPECT_EQ(job.error->id, ErrorId::VfsInUse);
    EXPECT_THAT(job.error->cause,
                AllOf(HasSubstr("needs all VFs idle"), HasSubstr("nothing was done")));
    EXPECT_EQ(everything(), before);
}

TEST_F(APlainGpu, LeavesOutWhatItsDriverDoesNotKnow) {
    ASSERT_TRUE(create("a"));
    const VfView view = world.gpu().view(1);
    const auto unknown = dbus::unknown_of(view);
    for (const char* name : {"VramBytes", "CuMask", "Weight", "MinPct", "Mode", "ServiceNs",
                             "ShareWindow", "WaitP99Ns", "Faults", "HasWork", "GuardLevel"})
        EXPECT_THAT(unknown, ::testing::Contains(name));
    for (const char* name : {"QuantumUs", "Attached", "Address", "Description", "ScrubOnRelease"})
        EXPECT_THAT(unknown, ::testing::Not(::testing::Contains(name)));
    const auto gpu_view = dbus::properties_of(world.gpu().view());
    for (const char* name : {"Platform", "VramBytes", "VramFreeBytes", "VramUnitBytes", "CuCount",
                             "MaxGapMs", "TableEntries", "Switches", "EventsLost"})
        EXPECT_FALSE(gpu_view.contains(name)) << name;
    EXPECT_EQ(gpu_view.at("Driver").get<std::string>(), "plain");
    EXPECT_EQ(gpu_view.at("TotalVfs").get<std::uint32_t>(), PlainBackend::kVfs);
}

TEST(AbilitiesOfThePfCore, LeaveNothingOfAGpuOrVfUnknown) {
    World world;
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    EXPECT_THAT(dbus::unknown_of(world.gpu().view(1)),
                ElementsAre("Address", "VgpuType", "DriverQuantumUs", "WorstWaitUs"));
    EXPECT_THAT(dbus::unknown_of(world.gpu().view()),
                ElementsAre("Address", "SoftgpuPid", "PfPid"));
}

TEST(UnknownValues, AreNeverZeroOnTheBus) {
    EXPECT_EQ(dbus::unset<std::uint64_t>(), UINT64_MAX);
    EXPECT_EQ(dbus::unset<std::int64_t>(), INT64_MAX);
    EXPECT_TRUE(std::isnan(dbus::unset<double>()));
    EXPECT_EQ(dbus::unset<std::string>(), "");
}

}  // namespace
}  // namespace vgpu::daemon
