// SPDX-License-Identifier: MIT
//
// The fourteen rules that keep vgpud from harming a VM or a card of a vendor's driver
// (docs/backends.md): each is one or more tests, in their order.
#include "daemon/backend/sriov/assignment.h"
#include "daemon/backend/sriov/bounded_sysfs.h"
#include "daemon/backend/sriov/discovery.h"
#include "daemon/backend/xe/backend.h"
#include "tests/unit/backend/backend_world.h"
#include "tests/unit/backend/fake_xe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <algorithm>
#include <cerrno>
#include <regex>
#include <thread>

namespace vgpu::daemon::sriov {
namespace {

using namespace daemon::testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Mode = AssignmentMode;

constexpr std::uint64_t kMiB = 1u << 20;

class SafetyRule : public ::testing::Test {
protected:
    SafetyRule() {
        bus.load("vfio-pci");
        card.pf.is_autoprobing = false;
        connect({.address = "0000:03:00.0", .is_observing = false});
    }
    /// A new vgpud.
    Result<> connect(SriovConfig config) {
        link = std::make_shared<SriovLink>(files, std::move(config));
        backend = std::make_unique<xe::XeBackend>(link, clock);
        assignment = std::make_unique<SriovAssignment>(link);
        return backend->connect();
    }
    Result<> restart() { return connect(link->config); }
    /// VFs 1 to `count` with 512 MiB each, for VMs.
    Result<> make(std::uint32_t count) {
        for (std::uint32_t vf = 1; vf <= count; ++vf) {
            TRY_VOID(assignment->set(vf, Mode::VfioPci, TakeFromHost::No));
            TRY_VOID(backend->provision(wanted(vf, 512 * kMiB)));
        }
        return {};
    }
    void make_and_forget(std::uint32_t count) {
        const auto made = make(count);
        ASSERT_TRUE(made) << made.error().cause;
        files->forget_writes();
    }
    /// What a restart of vgpud must find, however it was interrupted.
    void expect_complete(std::uint32_t count) {
        ASSERT_EQ(card.pf.count(), count);
        for (unsigned vf = 1; vf <= count; ++vf) {
            EXPECT_EQ(card.function(vf).vram, 512 * kMiB) << vf;
            EXPECT_EQ(card.pf.vf(vf).driver, "vfio-pci") << vf;
            EXPECT_GT(card.function(vf).quantum_ms, 0u) << vf;
            EXPECT_TRUE(card.is_clean(vf)) << vf;
        }
        EXPECT_FALSE(card.pf.is_autoprobing);
    }

    const std::shared_ptr<FakeSysfs> files = std::make_shared<FakeSysfs>();
    FakeBus bus{*files};
    FakeXe card{bus, XeKernel::k702};
    ManualClock clock;
    std::shared_ptr<SriovLink> link;
    std::unique_ptr<xe::XeBackend> backend;
    std::unique_ptr<SriovAssignment> assignment;
};

TEST_F(SafetyRule, Rule1APfThatTheConfigurationDoesNotNameIsOnlyRead) {
    FakePci other(bus, {.address = "0000:09:00.0", .driver = "xe", .pci_class = "0x030000"});
    EXPECT_THAT(find_pfs(*files).pfs, SizeIs(2));
    ASSERT_TRUE(make(2));
    for (const std::string& write : files->writes())
        EXPECT_THAT(write, Not(HasSubstr("0000:09:"))) << write;
}

TEST_F(SafetyRule, Rule2AnotherCardAtTheAddressIsNeverWrittenTo) {
    make_and_forget(2);
    card.pf.replace("0xe20b", "xe");
    EXPECT_EQ(backend->provision(wanted(3, 512 * kMiB)).error().id, ErrorId::PfLost);
    EXPECT_FALSE(backend->is_connected());
    EXPECT_FALSE(assignment->set(1, Mode::None, TakeFromHost::No));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule2ACardThatIsNotTheConfiguredOneIsNotAttached) {
    auto config = link->config;
    config.model = PciModel{.vendor = 0x8086, .device = 0xe211};
    const auto refused = connect(config);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("0000:03:00.0 is 8086:e212 (subsystem 8086:0000, revision 01), but the "
                          "configuration expects 8086:e211"));
    EXPECT_FALSE(backend->is_connected());
    config.model->device = 0xe212;
    EXPECT_TRUE(connect(config));
}

TEST_F(SafetyRule, Rule2AnotherCardIsNotAttachedInPlaceOfTheFirst) {
    make_and_forget(2);
    card.pf.replace("0xe20b", "xe");
    EXPECT_FALSE(backend->get_info());
    const auto refused = backend->connect();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::PfLost);
    EXPECT_THAT(refused.error().cause, HasSubstr("0000:03:00.0 is now another card, 8086:e20b"));
    EXPECT_FALSE(backend->is_connected());
    EXPECT_THAT(files->writes(), IsEmpty());
    card.pf.replace("0xe212", "xe");
    EXPECT_TRUE(backend->connect());
}

TEST_F(SafetyRule, Rule3AnObservedGpuIsNeverWrittenTo) {
    ASSERT_TRUE(make(2));
    card.pf.open(2);
    files->forget_writes();
    ASSERT_TRUE(connect({.address = "0000:03:00.0"}));
    EXPECT_TRUE(backend->provision(wanted(2))) << "a VF that exists can be named and claimed";
    EXPECT_EQ(backend->provision(wanted(3)).error().id, ErrorId::Observed);
    EXPECT_FALSE(assignment->set(1, Mode::None, TakeFromHost::No));
    EXPECT_FALSE(backend->set_shares(std::vector<VfShare>{{2, 100, 5000, 0}}));
    EXPECT_FALSE(backend->control(2, 0, VGPU_PF_STOP));
    EXPECT_FALSE(backend->control(2, 0, VGPU_PF_RESET));
    EXPECT_TRUE(backend->release(2, 0)) << "only vgpud forgets it";
    const auto abilities = backend->get_info()->abilities;
    for (const Change change : {Change::Vfs, Change::VramBytes, Change::Weight, Change::Reset})
        EXPECT_FALSE(abilities.can(change));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule4VfsAreNotDisabledWhileOneIsOpen) {
    make_and_forget(2);
    card.pf.open(2);
    const auto refused = backend->provision(wanted(3, 512 * kMiB));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::VfsInUse);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("vf2 (0000:03:00.2) is open through vfio-pci. Nothing was written"));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule4VfsAreNotDisabledWhileAHostDriverHasOne) {
    make_and_forget(2);
    ASSERT_TRUE(assignment->set(2, Mode::Host, TakeFromHost::No));
    files->forget_writes();
    EXPECT_EQ(backend->provision(wanted(3, 512 * kMiB)).error().id, ErrorId::VfsInUse);
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule5AVfThatIsOpenedDuringTheUnbindingStopsItAndTheOthersComeBack) {
    make_and_forget(3);
    files->before_write = [&](const std::string& path) {
        if (path == "0000:03:00.2/driver_override") card.pf.open(3);
        if (path == "0000:03:00.3/driver_override") FAIL() << "vf3 is open";
    };
    const auto refused = backend->provision(wanted(4, 512 * kMiB));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::VfsInUse);
    EXPECT_EQ(card.pf.count(), 3u);
    EXPECT_THAT(files->writes(), Not(Contains(HasSubstr("numvfs"))));
    for (unsigned vf = 1; vf <= 3; ++vf) EXPECT_EQ(card.pf.vf(vf).driver, "vfio-pci");
}

TEST_F(SafetyRule, Rule5AVfThatIsBoundAndOpenedAfterItsUnbindingStopsItAndTheOthersComeBack) {
    make_and_forget(3);
    files->before_write = [&](const std::string& path) {
        if (path != "0000:03:00.3/driver_override" || card.pf.vf(1).opens != 0) return;
        card.pf.vf(1).driver = "vfio-pci";
        files->add_link(card.pf.vf_path(1, "driver"), "../drivers/vfio-pci");
        card.pf.open(1);
    };
    const auto refused = backend->provision(wanted(4, 512 * kMiB));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::VfsInUse);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("vf1 (0000:03:00.1) is open through vfio-pci. The VFs stay enabled"));
    EXPECT_EQ(card.pf.count(), 3u);
    EXPECT_THAT(files->writes(), Not(Contains(HasSubstr("numvfs"))));
    for (unsigned vf = 1; vf <= 3; ++vf) EXPECT_EQ(card.pf.vf(vf).driver, "vfio-pci");
}

TEST_F(SafetyRule, Rule6TheCountIsReadFromLinksAndNumvfsIsNeverRead) {
    make_and_forget(2);
    files->show_instead(card.pf.path("sriov_numvfs"), "nonsense");
    EXPECT_EQ(backend->get_info()->enabled_vfs, 2u);
    EXPECT_TRUE(make(3));
}

TEST_F(SafetyRule, Rule7VramResetAndUnbindNeedAClosedVf) {
    make_and_forget(1);
    card.pf.open(1);
    EXPECT_EQ(backend->provision(wanted(1, 1024 * kMiB)).error().id, ErrorId::VfsInUse);
    EXPECT_EQ(backend->control(1, 0, VGPU_PF_RESET).error().id, ErrorId::VfsInUse);
    EXPECT_EQ(backend->release(1, 0).error().id, ErrorId::VfsInUse);
    EXPECT_EQ(assignment->set(1, Mode::None, TakeFromHost::No).error().id, ErrorId::VfsInUse);
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule7AVfIsResetWithoutADriverAfterItsUserAndAfterAChangeOfItsVram) {
    make_and_forget(1);
    card.pf.on_reset = [this, before = card.pf.on_reset](unsigned vf) {
        EXPECT_EQ(card.pf.vf(vf).driver, "") << "a VM could open it meanwhile";
        before(vf);
    };
    card.pf.open(1);
    card.pf.close(1);
    ASSERT_TRUE(backend->provision(wanted(1, 1024 * kMiB)));
    EXPECT_FALSE(card.pf.vf(1).is_dirty);
    EXPECT_TRUE(card.is_clean(1));
    EXPECT_EQ(card.pf.vf(1).driver, "vfio-pci");
}

TEST_F(SafetyRule, Rule8OnlySixKindsOfFilesAreWritten) {
    ASSERT_TRUE(make(2));
    ASSERT_TRUE(backend->set_shares(std::vector<VfShare>{{1, 100, 5000, 0}, {2, 100, 0, 0}}));
    ASSERT_TRUE(backend->control(2, 0, VGPU_PF_STOP));
    ASSERT_TRUE(assignment->set(1, Mode::Host, TakeFromHost::No));
    ASSERT_TRUE(backend->release(2, 0));
    const std::regex allowed(
        "0000:03:00\\.0/(sriov_numvfs|sriov_drivers_autoprobe|sriov_admin/.*)=.*|"
        "0000:03:00\\.[12]/(driver_override|reset)=.*|"
        "drivers_probe=0000:03:00\\.[12]|drivers/[\\w-]+/unbind=0000:03:00\\.[12]");
    for (const std::string& write : files->writes())
        EXPECT_TRUE(std::regex_match(write, allowed)) << write;
}

TEST_F(SafetyRule, Rule9AForeignValueIsPutBackAtMostThreeTimesAndTenSecondsApart) {
    make_and_forget(1);
    ASSERT_TRUE(backend->set_shares(std::vector<VfShare>{{1, 100, 5000, 0}}));
    const auto look_after = [&](std::chrono::seconds pause) {
        clock.advance(pause);
        card.function(1).quantum_ms = 99;
        static_cast<void>(backend->get_info());
        return card.function(1).quantum_ms;
    };
    EXPECT_EQ(look_after(std::chrono::seconds(1)), 5u);
    EXPECT_EQ(look_after(std::chrono::seconds(9)), 99u) << "too early";
    EXPECT_EQ(look_after(std::chrono::seconds(1)), 5u);
    EXPECT_EQ(look_after(std::chrono::seconds(10)), 5u);
    EXPECT_EQ(look_after(std::chrono::seconds(10)), 99u) << "given up";
    EXPECT_EQ(look_after(std::chrono::seconds(1000)), 99u);
    const auto notices = backend->take_notices();
    ASSERT_THAT(notices, SizeIs(4));
    EXPECT_EQ(notices[0].kind, NoticeKind::DriverChanged);
    EXPECT_EQ(notices[0].vf, 1u);
    EXPECT_THAT(notices[0].text,
                HasSubstr("another program gave vf1 of 0000:03:00.0 a quantum of 99 ms"));
    EXPECT_THAT(notices[3].text, HasSubstr("vgpud no longer restores it"));
    ASSERT_TRUE(backend->set_shares(std::vector<VfShare>{{1, 100, 5000, 0}}));
    EXPECT_EQ(card.function(1).quantum_ms, 5u) << "the operator's change counts again";
}

TEST_F(SafetyRule, Rule10AnotherManagerThatChangesTheCountIsReportedAndNothingIsWritten) {
    make_and_forget(2);
    ASSERT_TRUE(backend->get_info());
    EXPECT_THAT(backend->take_notices(), IsEmpty()) << "a re-enable of vgpud's is no news";
    ASSERT_EQ(card.pf.set_count(0), 0);
    EXPECT_EQ(backend->get_info()->enabled_vfs, 0u);
    EXPECT_EQ(backend->get_vf(1)->state, VGPU_PF_VF_ABSENT);
    EXPECT_THAT(backend->take_notices(),
                ElementsAre(BackendNotice{.vf = 0,
                                          .kind = NoticeKind::VfCountChanged,
                                          .text = "another program changed the number of VFs of "
                                                  "0000:03:00.0 from 2 to 0"}));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule11AWriteThatSleepsInTheKernelHoldsUpNobody) {
    make_and_forget(2);
    const auto bounded = std::make_shared<BoundedSysfs>(files, std::chrono::seconds(1));
    link = std::make_shared<SriovLink>(
        bounded, SriovConfig{.address = "0000:03:00.0", .is_observing = false});
    SriovBackend generic(link);
    ASSERT_TRUE(generic.connect());
    // a VM opens a VF between the last look and the write
    files->before_write = [&](const std::string& path) {
        if (path == "0000:03:00.0/sriov_numvfs") {
            card.pf.vf(2).driver = "vfio-pci";
            card.pf.vf(2).opens = 1;
        }
    };
    const auto late = generic.provision(wanted(3));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().id, ErrorId::DriverBusy);
    const auto waiting = generic.get_info();
    ASSERT_FALSE(waiting);
    EXPECT_THAT(waiting.error().cause, HasSubstr("the kernel has not finished: write '0' to /sys/"
                                                 "bus/pci/devices/0000:03:00.0/sriov_numvfs"));
    EXPECT_TRUE(generic.is_connected());
    files->before_write = nullptr;
    card.pf.close(2);
    while (!bounded->pending().empty()) std::this_thread::yield();
    EXPECT_EQ(generic.get_info()->enabled_vfs, 0u);
}

TEST_F(SafetyRule, Rule12AKillAfterAnyWriteOfAnotherCountIsRepairedByTheNextVgpud) {
    make_and_forget(2);
    for (unsigned killed_after = 1;; ++killed_after) {
        ASSERT_EQ(card.pf.set_count(0), 0);
        ASSERT_TRUE(restart());
        ASSERT_TRUE(make(2));
        files->kill_after(killed_after);
        bool is_killed = false;
        try {
            ASSERT_TRUE(make(3));
        } catch (const Killed&) {
            is_killed = true;
        }
        files->kill_after(0);
        SCOPED_TRACE(fmt::format("killed after write {}", killed_after));
        ASSERT_TRUE(restart());
        const auto again = make(3);
        ASSERT_TRUE(again) << again.error().cause;
        expect_complete(3);
        if (!is_killed) break;
        ASSERT_LT(killed_after, 100u);
    }
}

TEST_F(SafetyRule, Rule13APfThatIsGivenToAVmIsLostAndNothingIsWritten) {
    make_and_forget(2);
    card.pf.replace("0xe212", "vfio-pci");
    const auto lost = backend->get_info();
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().id, ErrorId::PfLost);
    EXPECT_THAT(lost.error().cause,
                HasSubstr("the driver of 0000:03:00.0 is now vfio-pci; it was xe"));
    EXPECT_THAT(backend->connect().error().cause, HasSubstr("a VM has the PF itself"));
    EXPECT_THAT(files->writes(), IsEmpty());
}

TEST_F(SafetyRule, Rule13APfWithAnotherDriverIsNotAttachedUntilItsFormerDriverIsBack) {
    make_and_forget(2);
    card.pf.replace("0xe212", "i915");
    EXPECT_FALSE(backend->get_info());
    const auto refused = backend->connect();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("the driver of 0000:03:00.0 is now i915; it was xe"));
    EXPECT_FALSE(backend->is_connected());
    EXPECT_THAT(files->writes(), IsEmpty());
    card.pf.replace("0xe212", "xe");
    EXPECT_TRUE(backend->connect());
}

TEST_F(SafetyRule, Rule14AllIsAppliedAgainAfterTheDriverWasLoadedAgain) {
    make_and_forget(3);
    card.reload();
    EXPECT_EQ(backend->get_info()->enabled_vfs, 0u);
    ASSERT_TRUE(restart());
    const auto again = make(3);
    ASSERT_TRUE(again) << again.error().cause;
    expect_complete(3);
}

TEST_F(SafetyRule, Rule14WhileAVfIsOpenOnlyQuantaAreAppliedAgain) {
    make_and_forget(2);
    card.pf.open(1);
    for (unsigned function = 0; function <= 2; ++function) card.function(function) = {};
    ASSERT_TRUE(restart());
    EXPECT_EQ(backend->provision(wanted(1, 512 * kMiB)).error().id, ErrorId::VfsInUse);
    ASSERT_TRUE(backend->set_shares(std::vector<VfShare>{{1, 100, 0, 0}}));
    EXPECT_EQ(card.function(1).quantum_ms, 16u);
    EXPECT_EQ(card.function(1).vram, 0u);
}

}  // namespace
}  // namespace vgpu::daemon::sriov
