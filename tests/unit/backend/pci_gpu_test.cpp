// SPDX-License-Identifier: MIT
//
// A GPU of a vendor's PF driver below the service of vgpud: the model of xe in a tree of sysfs
// files, beside a GPU of our PF core. Settings of a profile mean the same on both, and the
// differences are told.
#include "daemon/backend/sriov/assignment.h"
#include "daemon/backend/xe/backend.h"
#include "daemon/dbus/properties.h"
#include "daemon/service/jobs/jobs.h"
#include "daemon/service/owners/assignments.h"
#include "tests/unit/backend/fake_xe.h"
#include "tests/unit/daemon/fake_owners.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/daemon/fake_state.h"
#include "tests/unit/daemon/fake_vm_sockets.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace vgpu::daemon {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kMiB = 1u << 20;

class PciGpu : public ::testing::Test {
protected:
    explicit PciGpu(XeKernel kernel = XeKernel::k702) : card(bus, kernel) {
        bus.load("vfio-pci");
        card.pf.is_autoprobing = false;
        soft.scrubs_at_once = true;
        start();
    }
    /// A new vgpud over the same state and the same cards.
    void start() {
        jobs.reset();
        manager = std::make_unique<Manager>(state, clock);
        const auto link = std::make_shared<sriov::SriovLink>(files, config);
        add("b50", std::make_unique<xe::XeBackend>(link, clock),
            std::make_unique<sriov::SriovAssignment>(link));
        add("soft", std::make_unique<FakePfPort>(soft), nullptr);
        jobs.emplace(*manager, clock);
        step();
    }
    void observe() {
        config.is_observing = true;
        start();
        files->forget_writes();
    }
    void step() {
        jobs->step();
        for (const auto& gpu : manager->gpus()) gpu->iterate();
        manager->finish();
        jobs->step();
    }
    void pass(Nanoseconds time = GpuModel::kRefresh) {
        clock.advance(time);
        step();
    }
    [[nodiscard]] std::shared_ptr<const GpuSnapshot> snapshot() {
        return manager->find_gpu("b50")->snapshot();
    }
    [[nodiscard]] VfView view(std::uint32_t vf) {
        return manager->find_gpu("b50")->model().view(vf);
    }

    template <typename T> Result<T> answer(const std::function<void(Done<T>)>& ask) {
        std::optional<Result<T>> got;
        ask([&got](Result<T> result) { got = std::move(result); });
        for (int i = 0; !got && i < 3; ++i) step();
        return got ? *got : fail(ErrorId::System, "no answer");
    }
    Result<Target> create(const std::string& name, Options options = {}) {
        options["name"] = name;
        return answer<Target>(
            [&](const Done<Target>& done) { manager->create("b50", options, done); });
    }
    /// 512 MiB, for VMs.
    Result<Target> create_for_vm(const std::string& name) {
        return create(name, {{"vram_bytes", std::uint64_t{512 * kMiB}},
                             {"assignment_mode", std::string("vfio-pci")}});
    }
    Result<> set(const Target& target, const Options& options) {
        return answer<void>([&](const Done<>& done) { manager->set_vf(target, options, done); });
    }
    Result<std::uint32_t> destroy(const Target& target) {
        return answer<std::uint32_t>(
            [&](const Done<std::uint32_t>& done) { manager->destroy(target, {}, done); });
    }
    JobView apply(const std::string& document) {
        const auto id = jobs->apply(document, {});
        EXPECT_TRUE(id) << id.error().cause;
        for (int i = 0; i < 20; ++i) pass(std::chrono::milliseconds(100));
        return jobs->list().back();
    }
    Result<nlohmann::json> plan(const std::string& document) {
        TRY(const std::string text, answer<std::string>([&](const Done<std::string>& done) {
                jobs->plan(document, {}, done);
            }));
        return nlohmann::json::parse(text);
    }
    [[nodiscard]] std::vector<std::string> kinds_of_events() {
        std::vector<std::string> kinds;
        for (const AdminEvent& event : manager->find_gpu("b50")->take_admin_events())
            kinds.emplace_back(name_of(event.kind));
        return kinds;
    }

    const std::shared_ptr<FakeSysfs> files = std::make_shared<FakeSysfs>();
    FakeBus bus{*files};
    FakeXe card;
    VirtualClock clock;
    FakeState state;
    FakeOwners owners;
    FakePf soft{clock};
    sriov::SriovConfig config{.address = card.pf.address(), .is_observing = false};
    std::unique_ptr<Manager> manager;
    std::optional<Jobs> jobs;

private:
    void add(const std::string& id, std::unique_ptr<Backend> backend,
             std::unique_ptr<AssignmentPort> assignment_mode) {
        GpuConfig gpu;
        gpu.id = id;
        manager->add(std::make_unique<GpuModel>(
            gpu, GpuPaths{},
            GpuModel::Ports{.backend = std::move(backend),
                            .managed_processes = nullptr,
                            .store = manager->store(),
                            .clock = clock,
                            .owners = &owners,
                            .assignment_mode = std::move(assignment_mode)}));
    }
};

TEST_F(PciGpu, IsNotWrittenToBeforeItsFirstVf) {
    for (int i = 0; i < 3; ++i) pass();
    EXPECT_THAT(files->writes(), IsEmpty());
}

// --- what a user sees

TEST_F(PciGpu, IsShownWithItsDriverAndWithoutValuesThatItDoesNotKnow) {
    const auto gpu = dbus::properties_of(snapshot()->gpu);
    EXPECT_EQ(gpu.at("State").get<std::string>(), "ok");
    EXPECT_EQ(gpu.at("Driver").get<std::string>(), "xe");
    EXPECT_EQ(gpu.at("Manage").get<std::string>(), "full");
    EXPECT_EQ(gpu.at("Address").get<std::string>(), "0000:03:00.0");
    EXPECT_EQ(gpu.at("TotalVfs").get<std::uint32_t>(), 8u);
    for (const char* name : {"Platform", "CuCount", "MaxGapMs", "Switches", "TableEntries"})
        EXPECT_FALSE(gpu.contains(name)) << name;
}

TEST_F(PciGpu, GoesThroughTheLifeOfAVf) {
    const auto made = create_for_vm("web1");
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci");
    EXPECT_EQ(card.function(1).vram, 512 * kMiB);
    EXPECT_TRUE(card.is_clean(1));
    EXPECT_EQ(view(1).active.address, "0000:03:00.1");
    ASSERT_TRUE(destroy(*made));
    pass();
    EXPECT_THAT(snapshot()->vfs, SizeIs(0));
    EXPECT_EQ(card.pf.vf(1).driver, "");
    EXPECT_EQ(card.function(1).vram, 0u);
}

TEST_F(PciGpu, ShowsTheQuantumInForceAndTheLongestWait) {
    ASSERT_TRUE(create_for_vm("a"));
    ASSERT_TRUE(create_for_vm("b"));
    pass();
    // PF 1 ms and 16 ms, the other VF 6 ms and 16 ms, three switches of 1 ms
    EXPECT_EQ(
        view(1).active.driver_timing,
        (DriverTiming{.quantum_us = 6000, .preempt_timeout_us = 16'000, .worst_wait_us = 42'000}));
}

TEST_F(PciGpu, DoesNotKnowTheLongestWaitWhileOneFunctionIsUnlimited) {
    ASSERT_EQ(card.pf.set_count(2), 0);
    observe();
    ASSERT_TRUE(create("mine"));
    card.function(2).quantum_ms = 0;
    pass();
    EXPECT_EQ(view(1).active.driver_timing->quantum_us, 16'000u);
    EXPECT_FALSE(view(1).active.driver_timing->worst_wait_us);
    EXPECT_THAT(dbus::unknown_of(view(1)), Contains("WorstWaitUs"));
    card.function(2).quantum_ms = 8;
    pass();
    EXPECT_TRUE(view(1).active.driver_timing->worst_wait_us);
}

TEST_F(PciGpu, RefusesAnotherVfBeforeAnyWriteWhileOneIsOpen) {
    ASSERT_TRUE(create_for_vm("web1"));
    card.pf.open(1);
    pass();
    files->forget_writes();
    const auto refused = create_for_vm("web2");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::VfsInUse);
    EXPECT_THAT(refused.error().cause, HasSubstr("web1"));
    EXPECT_THAT(files->writes(), IsEmpty());
    EXPECT_EQ(card.pf.count(), 1u);
}

TEST_F(PciGpu, MakesItsVfsAgainAfterAReboot) {
    ASSERT_TRUE(create_for_vm("web1"));
    ASSERT_TRUE(create_for_vm("web2"));
    card.reload();
    start();
    pass();
    ASSERT_EQ(card.pf.count(), 2u);
    for (const unsigned vf : {1u, 2u}) {
        EXPECT_EQ(card.pf.vf(vf).driver, "vfio-pci");
        EXPECT_EQ(card.function(vf).vram, 512 * kMiB);
    }
    EXPECT_EQ(view(2).record.spec.name, "web2");
}

TEST_F(PciGpu, TakesARunningVfOverWithoutAWriteWhenVgpudIsStartedAgain) {
    ASSERT_TRUE(create_for_vm("web1"));
    pass();
    card.pf.open(1);
    files->forget_writes();
    start();
    pass();
    EXPECT_TRUE(view(1).active.is_attached);
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(PciGpu, GivesAVfToADomainAndResetsItAfterwards) {
    ASSERT_TRUE(create_for_vm("web1"));
    FakeVmSockets sockets;
    Assignments assignments{*manager, sockets, clock};
    const auto assign = [&](const std::string& owner) {
        return answer<std::vector<GivenVf>>([&](const Done<std::vector<GivenVf>>& done) {
            assignments.assign(owner, {{.by = VfSelector::By::Name, .value = "web1"}}, {}, done);
        });
    };
    const std::string one = "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10",
                      other = "libvirt:5dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
    const auto given = assign(one);
    ASSERT_TRUE(given) << given.error().cause;
    card.pf.open(1);
    pass();
    EXPECT_EQ(assign(other).error().id, ErrorId::Claimed);
    card.pf.close(1);
    pass();
    const auto back = answer<std::uint32_t>(
        [&](const Done<std::uint32_t>& done) { assignments.unassign(one, {}, done); });
    ASSERT_TRUE(back) << back.error().cause;
    pass();
    pass();
    EXPECT_FALSE(card.pf.vf(1).is_dirty);
    EXPECT_TRUE(card.is_clean(1));
    EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci");
    const auto again = assign(other);
    EXPECT_TRUE(again) << again.error().cause;
}

// --- other programs

TEST_F(PciGpu, ReportsWhatSomebodyElseWrote) {
    ASSERT_TRUE(create_for_vm("web1"));
    pass();
    static_cast<void>(kinds_of_events());
    card.function(1).quantum_ms = 99;
    pass();
    EXPECT_THAT(kinds_of_events(), ElementsAre("driver-changed"));
    EXPECT_EQ(card.function(1).quantum_ms, 6u);
}

TEST_F(PciGpu, ReportsVfsThatSomebodyElseDisabledAndDoesNotCompete) {
    ASSERT_TRUE(create_for_vm("web1"));
    pass();
    static_cast<void>(kinds_of_events());
    ASSERT_EQ(card.pf.set_count(0), 0);
    files->forget_writes();
    for (int i = 0; i < 10; ++i) pass();
    EXPECT_THAT(kinds_of_events(), AllOf(Contains("vf-count-changed"), Contains("not-restored")));
    EXPECT_THAT(files->writes(), Not(Contains(HasSubstr("numvfs"))));
    EXPECT_THAT(view(1).condition, HasSubstr("somebody else changed the number of VFs"));
    start();
    pass();
    EXPECT_EQ(card.pf.count(), 1u) << "the operator has restarted vgpud";
}

TEST_F(PciGpu, IsLostWhileItsDriverIsAnotherAndThenIsBack) {
    ASSERT_TRUE(create_for_vm("web1"));
    card.pf.replace("0xe212", "vfio-pci");
    pass();
    EXPECT_EQ(snapshot()->gpu.state, GpuState::PfLost);
    card.pf.replace("0xe212", "xe");
    for (int i = 0; i < 4; ++i) pass();
    EXPECT_EQ(snapshot()->gpu.state, GpuState::Ok);
    EXPECT_EQ(view(1).record.spec.name, "web1");
}

TEST_F(PciGpu, ThatIsMissingSaysSoAndNothingElse) {
    config.address = "0000:09:00.0";
    start();
    const auto gpu = snapshot()->gpu;
    EXPECT_EQ(gpu.state, GpuState::PfLost);
    EXPECT_THAT(gpu.message, HasSubstr("there is no PCI function 0000:09:00.0"));
    for (const char* name : {"Driver", "Manage", "Address", "TotalVfs", "VramBytes"})
        EXPECT_FALSE(dbus::properties_of(gpu).contains(name)) << name;
}

// --- observing, which is the default

TEST_F(PciGpu, IsOnlyObservedByDefault) {
    EXPECT_TRUE(sriov::SriovConfig{}.is_observing);
    EXPECT_TRUE(PciConfig{}.is_observing);
}

TEST_F(PciGpu, IsNotWrittenToWhileVgpudObserves) {
    ASSERT_EQ(card.pf.set_count(2), 0);
    observe();
    const auto gpu = snapshot()->gpu;
    EXPECT_EQ(gpu.message, "vgpud only watches this GPU");
    EXPECT_EQ(dbus::properties_of(gpu).at("Manage").get<std::string>(), "observe");
    const auto named = create("mine");
    ASSERT_TRUE(named) << named.error().cause;
    EXPECT_EQ(view(1).active.address, "0000:03:00.1");
    card.function(1).quantum_ms = 77;
    ASSERT_TRUE(set(*named, {{"description", std::string("for the web")}}));
    for (int i = 0; i < 10; ++i) pass();
    ASSERT_TRUE(destroy(*named));
    pass();
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(PciGpu, SaysThatItIsOnlyObservedToWhoeverWouldChangeIt) {
    ASSERT_EQ(card.pf.set_count(1), 0);
    observe();
    const auto named = create("mine");
    ASSERT_TRUE(named);
    const Error refusals[] = {create("second").error(),
                              create("sized", {{"vram_bytes", std::uint64_t{512 * kMiB}}}).error(),
                              set(*named, {{"weight", std::uint64_t{200}}}).error(),
                              set(*named, {{"assignment_mode", std::string("vfio-pci")}}).error(),
                              set(*named, {{"scrub_on_release", true}}).error(),
                              answer<void>([&](const Done<>& done) {
                                  manager->control(*named, VGPU_PF_RESET, {}, done);
                              }).error()};
    for (const Error& refused : refusals) {
        EXPECT_EQ(refused.id, ErrorId::Observed) << refused.cause;
        EXPECT_THAT(text_of(refused), AllOf(HasSubstr("VGPU-318"), HasSubstr("only watches b50"),
                                            HasSubstr("\"manage\": \"full\"")));
    }
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(PciGpu, GivesAnObservedVfToADomainWithoutAWrite) {
    ASSERT_EQ(card.pf.set_count(1), 0);
    observe();
    const auto named = create("mine");
    ASSERT_TRUE(named);
    const auto claim = answer<std::uint64_t>(
        [&](const Done<std::uint64_t>& done) { manager->claim(*named, "libvirt:one", {}, done); });
    ASSERT_TRUE(claim) << claim.error().cause;
    const auto other = answer<std::uint64_t>([&](const Done<std::uint64_t>& done) {
        manager->claim(*named, "libvirt:other", {}, done);
    });
    EXPECT_EQ(other.error().id, ErrorId::Claimed);
    ASSERT_TRUE(answer<void>(
        [&](const Done<>& done) { manager->release(*named, "libvirt:one", *claim, {}, done); }));
    for (int i = 0; i < 3; ++i) pass();
    EXPECT_EQ(view(1).record.owner.name, "");
    EXPECT_THAT(files->writes(), IsEmpty());
}

// --- contracts

TEST_F(PciGpu, RefusesWeightsUntilItsConfigurationAcceptsThatTheyAreApproximated) {
    ASSERT_TRUE(create_for_vm("a"));
    ASSERT_TRUE(create_for_vm("b"));
    const Target b{.gpu = "b50", .vf = 2};
    const auto refused = set(b, {{"weight", std::uint64_t{300}}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NotOffered);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("b50 (driver xe) can only approximate weight of 'b'"));
    EXPECT_THAT(refused.error().cause, HasSubstr("\"contracts\": \"approximate\""));
    config.accepts_approximations = true;
    start();
    ASSERT_TRUE(set(b, {{"weight", std::uint64_t{300}}}));
    pass();
    EXPECT_EQ(card.function(1).quantum_ms * 3, card.function(2).quantum_ms);
    EXPECT_EQ(card.function(0).quantum_ms, 1u);
    EXPECT_TRUE(view(1).active.driver_timing->worst_wait_us);
    EXPECT_FALSE(dbus::properties_of(snapshot()->gpu).contains("QuantumUs"))
        << "the weights decide";
}

/// Each item of a contract is kept, approximated or refused, and never ignored.
TEST_F(PciGpu, KeepsApproximatesOrRefusesEachItemOfAContract) {
    config.accepts_approximations = true;
    start();
    const auto made = create_for_vm("a");
    ASSERT_TRUE(made);
    const auto& abilities = snapshot()->gpu.info.abilities;
    EXPECT_TRUE(abilities[Change::Weight].is_approximate);
    const std::vector<Options> kept{{{"weight", std::uint64_t{300}}},
                                    {{"quantum_us", std::uint64_t{4000}}},
                                    {{"preempt_timeout_ms", 5.0}}};
    for (const Options& options : kept) {
        const auto done = set(*made, options);
        EXPECT_TRUE(done) << options.begin()->first << ": " << done.error().cause;
    }
    const std::vector<Options> refused{{{"min_pct", 10.0}},
                                       {{"max_pct", 50.0}},
                                       {{"burst_ms", 5.0}},
                                       {{"latency_ms", 50.0}},
                                       {{"max_gap_ms", 50.0}},
                                       {{"mode", std::string("strict")}},
                                       {{"mode", std::string("gang")}},
                                       {{"priority_class", std::string("high")}}};
    for (const Options& options : refused) {
        const auto done = set(*made, options);
        ASSERT_FALSE(done) << options.begin()->first;
        EXPECT_EQ(done.error().id, ErrorId::NotOffered) << done.error().cause;
    }
    pass();
    EXPECT_EQ(card.function(1).quantum_ms, 4u);
    EXPECT_EQ(card.function(1).timeout_us, 5000u);
    EXPECT_EQ(set(*made, {{"quantum_us", std::uint64_t{1500}}}).error().id, ErrorId::OutOfRange);
}

// --- documents

std::string document(const std::string& gpu, const std::string& scheduler) {
    return R"({"profiles": {"p": {"resources": {"vram": "64MiB"}, "scheduler": )" + scheduler +
           R"(}}, "configs": {"day": [{"gpu": ")" + gpu +
           R"(", "vfs": [{"profile": "p", "name": "a-)" + gpu +
           R"("}, {"profile": "p", "name": "b-)" + gpu + R"("}]}]}})";
}

/// The words of a plan's steps, without the names of GPUs.
std::vector<std::string> steps_of(const nlohmann::json& plan) {
    std::vector<std::string> steps;
    for (const auto& step : plan.at("steps"))
        steps.push_back(step.at("action").get<std::string>() + " " +
                        step.at("name").get<std::string>().substr(0, 1));
    return steps;
}

TEST_F(PciGpu, PlansAppliesAssertsAndExportsTheSameProfileAsOurOwnGpu) {
    for (const std::string gpu : {"soft", "b50"}) {
        SCOPED_TRACE(gpu);
        const std::string text = document(gpu, R"({"quantum_us": 4000})");
        const auto before = plan(text);
        ASSERT_TRUE(before) << before.error().cause;
        EXPECT_THAT(steps_of(*before), ElementsAre("create a", "create b"));
        const JobView job = apply(text);
        EXPECT_EQ(job.state, "done") << (job.error ? job.error->cause : "");
        const auto after = plan(text);
        ASSERT_TRUE(after);
        EXPECT_TRUE(after->at("is_empty")) << after->dump();
        const auto exported = answer<std::string>([&](const Done<std::string>& done) {
            jobs->export_document({{"gpu", gpu}}, done);
        });
        ASSERT_TRUE(exported) << exported.error().cause;
        const auto again = plan(*exported);
        ASSERT_TRUE(again) << again.error().cause << *exported;
        EXPECT_TRUE(again->at("is_empty")) << again->dump();
    }
    EXPECT_EQ(card.function(1).quantum_ms, 4u);
    EXPECT_EQ(card.function(2).vram, 64 * kMiB);
}

TEST_F(PciGpu, TellsInItsPlanWhatNeedsAllVfsClosed) {
    const auto own = plan(document("soft", "{}"));
    ASSERT_TRUE(own);
    EXPECT_EQ(own->at("steps").at(0).at("needs"), "nothing");
    const auto real = plan(document("b50", "{}"));
    ASSERT_TRUE(real);
    EXPECT_EQ(real->at("steps").at(0).at("needs"), "all-idle");
    EXPECT_THAT(real->at("steps").at(0).at("why").get<std::string>(),
                HasSubstr("the number of VFs needs all VFs idle"));
}

TEST_F(PciGpu, RefusesAProfileItsDriverCannotKeepInThePlan) {
    EXPECT_TRUE(plan(document("soft", R"({"min_pct": 20})")));
    const auto refused = plan(document("b50", R"({"min_pct": 20})"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NotOffered);
    EXPECT_THAT(refused.error().cause, HasSubstr("b50 (driver xe) cannot change min_pct"));
    EXPECT_THAT(files->writes(), IsEmpty());
}

// --- drivers that offer less

class OldXe : public PciGpu {
protected:
    OldXe() : PciGpu(XeKernel::k617) {}
};

TEST_F(OldXe, HasVfsOfASizeThatNobodyTells) {
    const auto made = create("a", {{"assignment_mode", std::string("vfio-pci")}});
    ASSERT_TRUE(made) << made.error().cause;
    pass();
    EXPECT_FALSE(view(1).active.vram_bytes);
    EXPECT_FALSE(view(1).active.driver_timing);
    const auto unknown = dbus::unknown_of(view(1));
    for (const char* name : {"VramBytes", "DriverQuantumUs", "WorstWaitUs", "Weight", "QuantumUs"})
        EXPECT_THAT(unknown, Contains(name));
    EXPECT_EQ(create("b", {{"vram_bytes", std::uint64_t{512 * kMiB}}}).error().id,
              ErrorId::NotOffered);
}

}  // namespace
}  // namespace vgpu::daemon
