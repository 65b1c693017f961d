// SPDX-License-Identifier: MIT
//
// More VFs for a GPU of a vendor's driver: the driver disables all VFs and enables them again,
// which is a step of its own in a plan. It is refused before the first write while a VF is in use,
// and a kill after any write leaves what the next vgpud completes.
#include "tests/unit/backend/pci_gpu.h"

#include <fmt/format.h>

namespace vgpu::daemon {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kDomain = "libvirt:4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
const Options kForce{{"force", true}};

class EnableVfs : public PciGpu {
protected:
    /// `vram`: of each VF; empty if the driver does not say what a VF has.
    explicit EnableVfs(XeKernel kernel = XeKernel::k702, std::string vram = "64MiB")
        : PciGpu(kernel), vram_(std::move(vram)) {}

    /// A configuration with these VFs, for VMs.
    [[nodiscard]] std::string vms(const std::vector<std::string>& names) const {
        return document("b50", "{}", names, vram_, "vfio-pci");
    }
    void make(const std::vector<std::string>& names) {
        const JobView job = apply(vms(names));
        ASSERT_EQ(job.state, "done") << (job.error ? job.error->cause : "");
        files->forget_writes();
    }
    /// The Enable step of the plan for four VFs.
    nlohmann::json step_for_four() {
        const auto made = plan(vms({"a", "b", "c", "d"}));
        EXPECT_TRUE(made) << made.error().cause;
        if (!made) return {};
        EXPECT_THAT(steps_of(*made),
                    ElementsAre("keep a", "keep b", "keep c", "enable b50", "create d"));
        return made->at("steps").at(3);
    }
    void expect_refused_without_a_write(const Options& options, const std::string& why) {
        files->forget_writes();
        const JobView job = apply(vms({"a", "b", "c", "d"}), options);
        EXPECT_EQ(job.state, "failed");
        ASSERT_TRUE(job.error);
        EXPECT_THAT(job.error->cause, AllOf(HasSubstr("enable 4 VFs of b50"), HasSubstr(why)));
        EXPECT_THAT(files->writes(), IsEmpty());
        EXPECT_EQ(card.pf.count(), 3u);
    }
    /// All VFs are as defined, and usable.
    void expect_in_service(unsigned count) {
        ASSERT_EQ(card.pf.count(), count);
        for (unsigned vf = 1; vf <= count; ++vf) {
            ASSERT_TRUE(snapshot()->has_vf(vf)) << vf;
            EXPECT_EQ(view(vf).condition, "") << vf;
            EXPECT_EQ(card.pf.vf(vf).driver, "vfio-pci") << vf;
            EXPECT_FALSE(card.pf.vf(vf).is_dirty) << vf;
            if (vram_.empty()) continue;
            EXPECT_EQ(card.function(vf).vram, 64 * kMiB) << vf;
            EXPECT_GT(card.function(vf).quantum_ms, 0u) << vf;
            EXPECT_TRUE(card.is_clean(vf)) << vf;
        }
    }
    /// Three VFs become four, and vgpud is killed after the n-th write. Returns whether it wrote so
    /// much.
    bool is_killed_after(unsigned writes) {
        make({});
        EXPECT_EQ(card.pf.set_count(0), 0);
        start();
        make({"a", "b", "c"});
        files->kill_after(writes);
        bool is_killed = false;
        try {
            EXPECT_EQ(apply(vms({"a", "b", "c", "d"})).state, "done");
        } catch (const Killed&) {
            is_killed = true;
        }
        files->kill_after(0);
        return is_killed;
    }
    void expect_completed_by_the_next_vgpud() {
        start();
        for (int i = 0; i < 20; ++i) pass(std::chrono::milliseconds(500));
        expect_in_service(4);
        const auto after = plan(vms({"a", "b", "c", "d"}));
        ASSERT_TRUE(after) << after.error().cause;
        EXPECT_TRUE(after->at("is_empty")) << after->dump();
    }

private:
    const std::string vram_;
};

/// Any PF driver without settings of its own.
class EnableGenericVfs : public EnableVfs {
protected:
    EnableGenericVfs() : EnableVfs(XeKernel::k617, "") {}
};

TEST_F(EnableVfs, IsAStepOfItsOwnBeforeTheStepsOfVfs) {
    make({"a", "b", "c"});
    const nlohmann::json step = step_for_four();
    EXPECT_EQ(step.at("target"), "b50");
    EXPECT_EQ(step.at("from"), (nlohmann::json{{"vfs", 3}}));
    EXPECT_EQ(step.at("to"), (nlohmann::json{{"vfs", 4}}));
    EXPECT_EQ(step.at("needs"), "all-idle");
    EXPECT_EQ(step.at("disruption"), "vf-restart");
    EXPECT_EQ(step.at("blocked"), "");
    EXPECT_THAT(step.at("why").get<std::string>(),
                HasSubstr("3 -> 4: all VFs are disabled and enabled again"));
    make({"a", "b", "c", "d"});
    expect_in_service(4);
}

TEST_F(EnableVfs, DisturbsNobodyIfThereAreNone) {
    const auto made = plan(vms({"a", "b", "c"}));
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_THAT(steps_of(*made), ElementsAre("enable b50", "create a", "create b", "create c"));
    EXPECT_EQ(made->at("disruption"), "none");
    const JobView job = apply(vms({"a", "b", "c"}));
    EXPECT_EQ(job.state, "done") << (job.error ? job.error->cause : "");
    EXPECT_EQ(count_enables(), 1u) << "one for all";
    expect_in_service(3);
}

TEST_F(EnableVfs, IsNoStepOfAGpuWithOurPfCore) {
    const auto made = plan(document("soft", "{}", {"a", "b"}));
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_THAT(steps_of(*made), ElementsAre("create a", "create b"));
}

TEST_F(EnableVfs, IsRefusedInThePlanOfAGpuThatVgpudOnlyObserves) {
    ASSERT_EQ(card.pf.set_count(1), 0);
    observe();
    EXPECT_TRUE(plan(document("b50", "{}", {"a"}, "")));
    const auto refused = plan(document("b50", "{}", {"a", "b"}, ""));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::Observed);
    EXPECT_THAT(refused.error().cause, HasSubstr("does not change the number of VFs"));
}

TEST_F(EnableVfs, IsAvoidedIfADestroyFreesANumber) {
    make({"a", "b", "c"});
    const auto made = plan(vms({"a", "b", "d"}));
    ASSERT_TRUE(made) << made.error().cause;
    EXPECT_THAT(steps_of(*made), ElementsAre("keep a", "keep b", "destroy c", "create d"));
    EXPECT_EQ(apply(vms({"a", "b", "d"})).state, "done");
    EXPECT_EQ(count_enables(), 0u);
    expect_in_service(3);
}

TEST_F(EnableVfs, IsRefusedBeforeTheFirstWriteWhileAVfIsOpen) {
    make({"a", "b", "c"});
    card.pf.open(2);
    pass();
    EXPECT_EQ(step_for_four().at("blocked"), "b50/vf2 ('b': a client has it open)");
    expect_refused_without_a_write({}, "b50/vf2 ('b': a client has it open)");
    expect_refused_without_a_write(kForce, "b50/vf2 ('b': a client has it open)");
}

TEST_F(EnableVfs, IsRefusedBeforeTheFirstWriteWhileTheDomainOfAVfRuns) {
    make({"a", "b", "c"});
    owners.domains = {kDomain.substr(kDomain.find(':') + 1)};
    ASSERT_TRUE(claim({.gpu = "b50", .vf = 2}, kDomain));
    pass(std::chrono::minutes(5));
    EXPECT_THAT(step_for_four().at("blocked").get<std::string>(), HasSubstr("which runs"));
    expect_refused_without_a_write({}, kDomain + "', which runs");
    expect_refused_without_a_write(kForce, kDomain + "', which runs");
    owners.domains.clear();
    EXPECT_EQ(step_for_four().at("blocked"), "");
    expect_refused_without_a_write({}, kDomain);
    EXPECT_EQ(apply(vms({"a", "b", "c", "d"}), kForce).state, "done");
    expect_in_service(4);
    EXPECT_EQ(view(2).record.owner.name, kDomain) << "its claim stays";
}

TEST_F(EnableVfs, WaitsForADomainThatMayBeStarting) {
    make({"a", "b", "c"});
    ASSERT_TRUE(claim({.gpu = "b50", .vf = 2}, kDomain));
    expect_refused_without_a_write(kForce, kDomain);
}

TEST_F(EnableVfs, IsRefusedWhileSomebodyElseUsesAVfThatIsNotOnRecord) {
    ASSERT_EQ(card.pf.set_count(3), 0);
    start();
    ASSERT_EQ(apply(document("b50", "{}", {"a", "b"})).state, "done");
    open_unknown(3);
    pass();
    files->forget_writes();
    const JobView job = apply(document("b50", "{}", {"a", "b", "c", "d"}), kForce);
    ASSERT_TRUE(job.error);
    EXPECT_THAT(job.error->cause, HasSubstr("vf3 (0000:03:00.3) is open through vfio-pci"));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(EnableVfs, IsPlannedIfSomebodyElseHasTheOnlyFreeNumberOpen) {
    ASSERT_EQ(card.pf.set_count(3), 0);
    start();
    ASSERT_EQ(apply(document("b50", "{}", {"a", "b"})).state, "done");
    open_unknown(3);
    pass();
    const auto made = plan(document("b50", "{}", {"a", "b", "c"}));
    ASSERT_TRUE(made) << made.error().cause;
    ASSERT_THAT(steps_of(*made), ElementsAre("keep a", "keep b", "enable b50", "create c"));
    EXPECT_THAT(made->at("steps").at(2).at("blocked").get<std::string>(),
                HasSubstr("vf3 (0000:03:00.3) is open through vfio-pci"));
}

TEST_F(EnableVfs, ThatTheDriverRefusesIsReportedAndTheVfsAreMadeAgain) {
    make({"a", "b", "c"});
    card.pf.enabled_limit = 3;
    const JobView job = apply(vms({"a", "b", "c", "d"}));
    EXPECT_EQ(job.state, "failed");
    ASSERT_TRUE(job.error);
    EXPECT_THAT(job.error->cause, AllOf(HasSubstr("has 3 VFs after '4' was written"),
                                        HasSubstr("the VRAM of 'a', 'b', 'c' is empty")));
    for (int i = 0; i < 6; ++i) pass();
    expect_in_service(3);
}

TEST_F(EnableVfs, ThatAVfLosesItsDriverIsReportedAndTheOthersKeepTheirs) {
    make({"a", "b", "c"});
    files->before_write = [&](const std::string& path) {
        if (path == "0000:03:00.1/driver_override") card.pf.has_iommu = false;
        if (path == "0000:03:00.2/driver_override") card.pf.has_iommu = true;
    };
    const JobView job = apply(vms({"a", "b", "c", "d"}));
    files->before_write = {};
    EXPECT_EQ(job.state, "failed");
    ASSERT_TRUE(job.error);
    EXPECT_THAT(job.error->cause, AllOf(HasSubstr("vfio-pci did not take vf1"),
                                        HasSubstr("the VRAM of 'a', 'b', 'c' is empty")));
    EXPECT_EQ(card.pf.vf(2).driver, "vfio-pci");
    EXPECT_EQ(card.pf.vf(3).driver, "vfio-pci");
}

TEST_F(EnableVfs, OfAllRecordsIsOneWriteAfterAReboot) {
    make({"a", "b", "c"});
    card.reload();
    files->forget_writes();
    start();
    pass();
    EXPECT_EQ(count_enables(), 1u);
    expect_in_service(3);
}

TEST_F(EnableVfs, OfRecordsWaitsWhileTheDomainOfAnotherVfRunsOrHasIt) {
    make({"a", "b", "c"});
    owners.domains = {kDomain.substr(kDomain.find(':') + 1)};
    const auto generation = claim({.gpu = "b50", .vf = 2}, kDomain);
    ASSERT_TRUE(generation);
    pass(std::chrono::minutes(5));
    ASSERT_EQ(card.pf.set_count(0), 0);
    ASSERT_EQ(card.pf.set_count(2), 0);
    start();
    for (int i = 0; i < 10; ++i) pass();
    EXPECT_EQ(count_enables(), 0u);
    EXPECT_EQ(view(2).condition, "");
    EXPECT_THAT(view(3).condition,
                AllOf(HasSubstr("'c' is not enabled"), HasSubstr("'b'"), HasSubstr("which runs")));
    owners.domains.clear();
    for (int i = 0; i < 10; ++i) pass();
    EXPECT_EQ(count_enables(), 0u) << "its claim stays";
    ASSERT_TRUE(answer<void>([&](const Done<>& done) {
        manager->release({.gpu = "b50", .vf = 2}, kDomain, *generation, {}, done);
    }));
    for (int i = 0; i < 10; ++i) pass();
    expect_in_service(3);
}

TEST_F(EnableVfs, ForACreateThatFailsAfterItLeavesNoVramGiven) {
    make({"a"});
    files->before_write = [&](const std::string& path) {
        if (path == "0000:03:00.2/driver_override") card.pf.has_iommu = false;
    };
    EXPECT_FALSE(create_for_vm("b"));
    EXPECT_FALSE(card.pf.has_iommu) << "vfio-pci refused the new VF";
    EXPECT_EQ(card.pf.count(), 2u);
    EXPECT_EQ(card.function(2).vram, 0u);
}

TEST_F(EnableVfs, ReturnsThePlannedVramIfALaterStepFails) {
    make({"a", "b", "c"});
    files->before_write = [&](const std::string& path) {
        if (path == "0000:03:00.4/driver_override") card.pf.has_iommu = false;
    };
    EXPECT_EQ(apply(vms({"a", "b", "c", "d"})).state, "failed");
    EXPECT_FALSE(card.pf.has_iommu) << "vfio-pci refused the new VF";
    EXPECT_EQ(card.pf.count(), 4u);
    EXPECT_EQ(card.function(4).vram, 0u);
    EXPECT_EQ(card.pf.vf(3).driver, "vfio-pci");
}

TEST_F(EnableVfs, ReturnsThePlannedVramAlsoOfANumberThatWasScrubbedBefore) {
    make({"a", "b"});
    make({"a"});
    files->before_write = [&](const std::string& path) {
        if (path == "0000:03:00.2/driver_override") card.pf.has_iommu = false;
    };
    EXPECT_EQ(apply(vms({"a", "b", "c"})).state, "failed");
    EXPECT_FALSE(card.pf.has_iommu) << "vfio-pci refused the new VF";
    EXPECT_EQ(card.pf.count(), 3u);
    EXPECT_EQ(card.function(2).vram, 0u);
    EXPECT_EQ(card.function(3).vram, 0u);
}

/// xe keeps the quota of a VF that another program has disabled meanwhile.
TEST_F(EnableVfs, ThatIsTakenBackFreesTheVramOfAMissingVfWithoutEnablingIt) {
    make({"a"});
    card.function(2).vram = 64 * kMiB;
    const VfCount back{.from = 2, .to = 1, .vram_bytes = {{2u, 64 * kMiB}}};
    EXPECT_TRUE(manager->find_gpu("b50")->model().enable_vfs(back, Force::No));
    EXPECT_EQ(card.pf.count(), 1u);
    EXPECT_EQ(count_enables(), 0u);
    EXPECT_EQ(card.function(2).vram, 0u);
}

TEST_F(EnableVfs, KilledAfterAnyWriteIsCompletedByTheNextVgpud) {
    bool is_killed = true;
    for (unsigned writes = 1; is_killed; ++writes) {
        SCOPED_TRACE(fmt::format("killed after write {}", writes));
        ASSERT_LT(writes, 200u);
        is_killed = is_killed_after(writes);
        expect_completed_by_the_next_vgpud();
    }
}

TEST_F(EnableGenericVfs, KilledAfterAnyWriteIsCompletedByTheNextVgpud) {
    bool is_killed = true;
    for (unsigned writes = 1; is_killed; ++writes) {
        SCOPED_TRACE(fmt::format("killed after write {}", writes));
        ASSERT_LT(writes, 200u);
        is_killed = is_killed_after(writes);
        expect_completed_by_the_next_vgpud();
    }
}

TEST_F(EnableGenericVfs, IsRefusedBeforeTheFirstWriteWhileAVfIsOpen) {
    make({"a", "b", "c"});
    card.pf.open(2);
    pass();
    expect_refused_without_a_write(kForce, "b50/vf2 ('b': a client has it open)");
}

TEST_F(EnableVfs, KilledAndThenBlockedByAVmIsReportedAndDisturbsNobody) {
    make({"a", "b", "c"});
    files->kill_after(1);
    EXPECT_THROW(apply(vms({"a", "b", "c", "d"})), Killed);
    files->kill_after(0);
    ASSERT_EQ(card.pf.count(), 3u);
    card.pf.open(1);
    files->forget_writes();
    start();
    for (int i = 0; i < 20; ++i) pass(std::chrono::milliseconds(500));
    const JobView recovery = jobs->list().back();
    EXPECT_EQ(recovery.state, "failed");
    ASSERT_TRUE(recovery.error);
    EXPECT_THAT(recovery.error->cause, HasSubstr("b50/vf1 ('a': a client has it open)"));
    EXPECT_THAT(files->writes(), Not(Contains(HasSubstr("numvfs"))));
    EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci");
}

}  // namespace
}  // namespace vgpu::daemon
