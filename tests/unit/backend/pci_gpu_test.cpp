// SPDX-License-Identifier: MIT
//
// A GPU of a vendor's PF driver below the service of vgpud: the model of xe in a tree of sysfs
// files, beside a GPU of our PF core. Settings of a profile mean the same on both, and the
// differences are told.
#include "tests/unit/backend/pci_gpu.h"
#include "daemon/dbus/properties.h"
#include "daemon/service/owners/assignments.h"
#include "tests/unit/daemon/fake_vm_sockets.h"

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
        return answer<std::vector<AssignedVf>>([&](const Done<std::vector<AssignedVf>>& done) {
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

/// A VF in mode `none`, which libvirt binds to vfio-pci itself.
class ManagedHostdev : public PciGpu {
protected:
    void SetUp() override {
        const auto made = create("web1", {{"vram_bytes", std::uint64_t{512 * kMiB}},
                                          {"assignment_mode", std::string("none")}});
        ASSERT_TRUE(made) << made.error().cause;
        pass();
    }
    /// vgpud looks at the function a few times.
    void expect_left_alone() {
        files->forget_writes();
        for (int i = 0; i < 3; ++i) pass();
        EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci");
        EXPECT_THAT(files->writes(), IsEmpty());
        EXPECT_EQ(view(1).condition, "");
    }
    const std::string uuid = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
};

TEST_F(ManagedHostdev, IsNotUnboundBeforeItsVmOpensItAndWhileTheVmHasIt) {
    bind_by_libvirt(1);
    expect_left_alone();
    card.pf.open(1);
    pass();
    pass(2 * kOwnerGrace);
    expect_left_alone();
}

TEST_F(ManagedHostdev, IsNotUnboundWhileTheDomainThatOwnsItRuns) {
    ASSERT_TRUE(claim({.gpu = "b50", .vf = 1}, "libvirt:" + uuid));
    owners.domains = {uuid};
    bind_by_libvirt(1);
    pass();
    pass(2 * kOwnerGrace);
    expect_left_alone();
    start();
    pass();
    EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci") << "nor by the next vgpud";
    EXPECT_EQ(view(1).condition, "");
}

TEST_F(ManagedHostdev, ThatNobodyUsesIsUnboundAfterAWhile) {
    bind_by_libvirt(1);
    pass();
    pass(2 * kOwnerGrace);
    EXPECT_EQ(card.pf.vf(1).driver, "");
    EXPECT_THAT(kinds_of_events(), Contains("assignment-mode-set"));
}

TEST_F(PciGpu, TakesAVfFromADriverOfTheHostOnlyByForce) {
    const auto made = create(
        "a", {{"vram_bytes", std::uint64_t{512 * kMiB}}, {"assignment_mode", std::string("host")}});
    ASSERT_TRUE(made) << made.error().cause;
    pass();
    const Options to_vms{{"assignment_mode", std::string("vfio-pci")}};
    const auto refused = set(*made, to_vms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::WrongState);
    EXPECT_THAT(refused.error().cause, HasSubstr("option 'force'"));
    EXPECT_EQ(view(1).assignment_mode, AssignmentMode::Host);

    Options by_force = to_vms;
    by_force["force"] = true;
    const auto done = set(*made, by_force);
    ASSERT_TRUE(done) << done.error().cause;
    pass();
    EXPECT_EQ(view(1).assignment_mode, AssignmentMode::VfioPci);
    EXPECT_FALSE(view(1).active.is_attached);
}

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
    EXPECT_THAT(view(1).condition, HasSubstr("another program changed the number of VFs"));
    start();
    pass();
    EXPECT_EQ(card.pf.count(), 1u) << "the operator has restarted vgpud";
}

TEST_F(PciGpu, GivesANewVfNoNumberThatAnotherProgramHasOpen) {
    ASSERT_EQ(card.pf.set_count(2), 0);
    start();
    open_unknown(1);
    const auto made = create_for_vm("web1");
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_EQ(made->vf, 2u);
}

TEST_F(PciGpu, PlansNoNumberThatAnotherProgramHasOpen) {
    ASSERT_EQ(card.pf.set_count(2), 0);
    start();
    open_unknown(1);
    const JobView job = apply(document("b50", "{}", {"web1"}, "64MiB", "vfio-pci"));
    ASSERT_EQ(job.state, "done") << (job.error ? job.error->cause : "");
    EXPECT_FALSE(snapshot()->has_vf(1));
    EXPECT_EQ(view(2).record.spec.name, "web1");
}

TEST_F(PciGpu, NamesAnOpenVfIfVgpudObservesAndThereIsNoOther) {
    ASSERT_EQ(card.pf.set_count(1), 0);
    open_unknown(1);
    observe();
    const auto named = create("mine");
    ASSERT_TRUE(named) << named.error().cause;
    EXPECT_EQ(named->vf, 1u);
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

// --- a new vgpud

TEST_F(PciGpu, FinishesADestroyThatTheEndOfVgpudCutOff) {
    const auto made = create_for_vm("web1");
    ASSERT_TRUE(made);
    files->kill_after(1);
    EXPECT_THROW(static_cast<void>(destroy(*made)), Killed);
    start();
    pass();
    EXPECT_THAT(snapshot()->vfs, SizeIs(0));
    EXPECT_EQ(card.pf.vf(1).driver, "");
    EXPECT_EQ(card.function(1).vram, 0u);
    EXPECT_TRUE(create_for_vm("web2"));
}

/// vgpud was started again while a VM has a VF open whose owner has released it.
class OwedScrub : public PciGpu {
protected:
    void SetUp() override {
        ASSERT_TRUE(create_for_vm("web1"));
        ASSERT_TRUE(set(web1, {{"scrub_on_release", true}}));
        const auto generation = claim(web1, "slurm:1");
        ASSERT_TRUE(generation);
        card.pf.open(1);
        ASSERT_TRUE(answer<void>(
            [&](const Done<>& done) { manager->release(web1, "slurm:1", *generation, {}, done); }));
        start();
        for (int i = 0; i < 5; ++i) pass();
        EXPECT_TRUE(card.pf.vf(1).is_dirty);
        EXPECT_THAT(view(1).condition, HasSubstr("'web1' waits for its scrub"));
    }

    const Target web1{.gpu = "b50", .vf = 1};
};

TEST_F(OwedScrub, IsDoneBeforeAnotherOwnerGetsTheVf) {
    EXPECT_FALSE(claim(web1, "slurm:2"));
    card.pf.close(1);
    for (int i = 0; i < 20; ++i) pass();
    EXPECT_FALSE(card.pf.vf(1).is_dirty);
    EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci");
    EXPECT_EQ(view(1).condition, "");
    EXPECT_TRUE(claim(web1, "slurm:2"));
}

TEST_F(OwedScrub, IsDoneBeforeTheVfIsDestroyed) {
    EXPECT_EQ(destroy(web1).error().id, ErrorId::WrongState);
    const auto forced = answer<std::uint32_t>([&](const Done<std::uint32_t>& done) {
        manager->destroy(web1, {{"force", true}}, done);
    });
    ASSERT_FALSE(forced);
    EXPECT_EQ(forced.error().id, ErrorId::VfsInUse);
    EXPECT_TRUE(snapshot()->has_vf(1));
    card.pf.close(1);
    const auto destroyed = destroy(web1);
    ASSERT_TRUE(destroyed) << destroyed.error().cause;
    EXPECT_FALSE(snapshot()->has_vf(1));
    EXPECT_FALSE(card.pf.vf(1).is_dirty);
    EXPECT_EQ(card.function(1).vram, 0u);
}

// --- NVIDIA

/// A GPU with NVIDIA's driver and two VFs, of which the first has a vGPU type.
class NvidiaGpu : public PciGpu {
protected:
    NvidiaGpu() {
        bus.load("nvidia");
        nvidia.set_count(2);
        files->add(type, "558");
        files->add(nvidia.vf_path(2, "nvidia/current_vgpu_type"), "0");
        files->forget_writes();
        const auto link = std::make_shared<sriov::SriovLink>(
            files, sriov::SriovConfig{.address = nvidia.address(), .is_observing = false});
        add("rtx", std::make_unique<sriov::SriovBackend>(link),
            std::make_unique<sriov::SriovAssignment>(link));
        step();
        // the first gets the second VF, which no VM can have open
        for (const std::string name : {"web2", "web1"})
            EXPECT_TRUE(answer<Target>([&](const Done<Target>& done) {
                manager->create("rtx", {{"name", name}}, done);
            }));
    }
    [[nodiscard]] GpuModel& rtx() { return manager->find_gpu("rtx")->model(); }

    FakePci nvidia{bus,
                   {.address = "0000:41:00.0", .driver = "nvidia", .host_vf_driver = "nvidia"}};
    const std::string type = sriov::device_path("0000:41:00.1", "nvidia/current_vgpu_type");
    const Target web1{.gpu = "rtx", .vf = 1};
};

TEST_F(NvidiaGpu, GivesItsVfsToVmsAsTheyAre) {
    const VfView shown = rtx().view(1);
    EXPECT_EQ(shown.active.vgpu_type, "558");
    EXPECT_EQ(shown.active.address, nvidia.vf(1).address);
    EXPECT_EQ(shown.assignment_mode, AssignmentMode::VfioPci);
    const auto generation = claim(web1, "libvirt:one");
    ASSERT_TRUE(generation) << generation.error().cause;
    EXPECT_TRUE(answer<void>(
        [&](const Done<>& done) { manager->release(web1, "libvirt:one", *generation, {}, done); }));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(NvidiaGpu, LosesAVfOnlyWhenItHasNoVgpuType) {
    EXPECT_THAT(destroy(web1).error().cause, HasSubstr("a client has it open"));
    const auto forced = answer<std::uint32_t>([&](const Done<std::uint32_t>& done) {
        manager->destroy(web1, {{"force", true}}, done);
    });
    ASSERT_FALSE(forced);
    EXPECT_THAT(forced.error().cause, HasSubstr("it has NVIDIA's vGPU type 558; stop its VM"));
    EXPECT_EQ(rtx().view(1).active.vgpu_type, "558");
    files->show_instead(type, "0");
    pass();
    const auto destroyed = destroy(web1);
    EXPECT_TRUE(destroyed) << destroyed.error().cause;
    pass();
    EXPECT_THAT(manager->find_gpu("rtx")->snapshot()->vfs, SizeIs(1));
    EXPECT_THAT(files->writes(), IsEmpty());
}

// --- documents

TEST_F(PciGpu, PlansAppliesAssertsAndExportsTheSameProfileAsOurOwnGpu) {
    for (const std::string gpu : {"soft", "b50"}) {
        SCOPED_TRACE(gpu);
        const std::string text = document(gpu, R"({"quantum_us": 4000})", {"a-" + gpu, "b-" + gpu});
        const auto before = plan(text);
        ASSERT_TRUE(before) << before.error().cause;
        EXPECT_THAT(steps_of(*before), Contains("create b-" + gpu));
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

TEST_F(PciGpu, RefusesAProfileItsDriverCannotKeepInThePlan) {
    EXPECT_TRUE(plan(document("soft", R"({"min_pct": 20})", {"a"})));
    const auto refused = plan(document("b50", R"({"min_pct": 20})", {"a"}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::NotOffered);
    EXPECT_THAT(refused.error().cause, HasSubstr("b50 (driver xe) can only approximate min_pct"));
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
