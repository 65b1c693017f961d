// SPDX-License-Identifier: MIT
//
// SriovPf against the model of the PCI core: what it reads, how it binds and resets a VF, and how
// it changes the number of VFs.
#include "daemon/backend/sriov/pf.h"

#include "daemon/backend/sriov/discovery.h"
#include "tests/unit/backend/fake_pci.h"

#include <gmock/gmock.h>
#include <cerrno>

namespace vgpu::daemon::sriov {
namespace {

using daemon::testing::FakeBus;
using daemon::testing::FakePci;
using daemon::testing::FakeSysfs;
using daemon::testing::Killed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Mode = AssignmentMode;

class Sriov : public ::testing::Test {
protected:
    Sriov() {
        bus.load("vfio-pci");
        bus.load("igbvf");
        card.is_autoprobing = false;
    }
    [[nodiscard]] SriovPf pf() {
        return {files, {.address = card.address(), .ids = ids, .driver = "igb"}};
    }
    /// The VFs exist, each with vfio-pci and closed.
    void enable(unsigned count) {
        EXPECT_TRUE(pf().set_count(count, none));
        for (unsigned vf = 1; vf <= count; ++vf) EXPECT_TRUE(pf().bind(vf, Mode::VfioPci));
        files.forget_writes();
    }

    FakeSysfs files;
    FakeBus bus{files};
    FakePci card{bus, {}};
    PciIds ids{.vendor = 0x8086,
               .device = 0x10c9,
               .subsystem_vendor = 0x8086,
               .subsystem_device = 0,
               .revision = 1};
    EnableSteps none;
};

// --- reading

TEST_F(Sriov, CountsVfsByTheirLinksAndNeverReadsNumvfs) {
    enable(3);
    files.fail(card.path("sriov_numvfs"), EIO);
    const auto facts = pf().inspect();
    ASSERT_TRUE(facts) << facts.error().cause;
    EXPECT_EQ(facts->vfs.size(), 3u);
    EXPECT_EQ(facts->total_vfs, 7u);
    EXPECT_EQ(facts->ids, ids);
    EXPECT_EQ(facts->vfs[2].address, "0000:03:00.3");
}

TEST_F(Sriov, TellsClosedOpenAndHostUseApart) {
    enable(3);
    card.open(2);
    ASSERT_TRUE(pf().bind(3, Mode::Host));
    const auto facts = pf().inspect();
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->find(1)->use, VfUse::Closed);
    EXPECT_EQ(facts->find(2)->use, VfUse::Open);
    EXPECT_EQ(facts->find(3)->use, VfUse::Host);
    EXPECT_EQ(describe_use(*facts->find(2)), "vf2 (0000:03:00.2) is open through vfio-pci");
    EXPECT_EQ(describe_use(*facts->find(3)),
              "vf3 (0000:03:00.3) is used by the host's driver igbvf");
}

TEST_F(Sriov, TakesAVfThatItCannotReadForUsed) {
    enable(2);
    files.show_instead(card.vf_path(1, "enable"), "yes");
    files.fail(card.vf_path(2, "enable"), EIO);
    const auto facts = pf().inspect();
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->find(1)->use, VfUse::Unknown);
    EXPECT_THAT(facts->find(1)->reason, HasSubstr("0000:03:00.1/enable reads 'yes', but a number"));
    EXPECT_EQ(facts->find(2)->use, VfUse::Unknown);
    EXPECT_FALSE(pf().reset(2));
    EXPECT_EQ(pf().set_count(4, none).error().id, ErrorId::VfsInUse);
    EXPECT_THAT(files.writes(), IsEmpty());
}

TEST_F(Sriov, LeavesOutAVfThatVanishesWhileItIsRead) {
    enable(2);
    files.fail(card.vf_path(2, "enable"), ENOENT);
    EXPECT_EQ(pf().inspect()->vfs.size(), 1u);
}

TEST_F(Sriov, NamesTheFileThatHoldsOddText) {
    files.show_instead(card.path("sriov_totalvfs"), "many");
    const auto facts = pf().inspect();
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().id, ErrorId::PfRefused);
    EXPECT_THAT(
        facts.error().cause,
        HasSubstr("0000:03:00.0/sriov_totalvfs reads 'many', but a number of at most 65535"));
}

TEST_F(Sriov, SaysThatAPfIsGone) {
    files.remove(card.path());
    const auto facts = pf().inspect();
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().id, ErrorId::PfLost);
}

// --- one VF

TEST_F(Sriov, ResetsAVfBeforeItsFirstUser) {
    EnableSteps steps;
    ASSERT_TRUE(pf().set_count(1, steps));
    files.forget_writes();
    ASSERT_TRUE(pf().bind(1, Mode::VfioPci));
    EXPECT_THAT(files.writes(),
                ElementsAre("0000:03:00.1/reset=1", "0000:03:00.1/driver_override=vfio-pci",
                            "drivers_probe=0000:03:00.1"));
    EXPECT_EQ(card.vf(1).driver, "vfio-pci");
}

TEST_F(Sriov, ResetsAVfBetweenTwoUsersWhileItHasNoDriver) {
    enable(1);
    card.on_reset = [&](unsigned vf) { EXPECT_EQ(card.vf(vf).driver, ""); };
    card.open(1);
    card.close(1);
    EXPECT_TRUE(card.vf(1).is_dirty);
    ASSERT_TRUE(pf().reset(1));
    EXPECT_FALSE(card.vf(1).is_dirty);
    EXPECT_EQ(card.vf(1).driver, "vfio-pci");
}

TEST_F(Sriov, WritesNothingForAModeThatIsInForce) {
    enable(1);
    EXPECT_TRUE(pf().bind(1, Mode::VfioPci));
    EXPECT_THAT(files.writes(), IsEmpty());
    EXPECT_TRUE(pf().bind(1, Mode::None));
    EXPECT_EQ(card.vf(1).driver, "");
    files.forget_writes();
    EXPECT_TRUE(pf().bind(1, Mode::None));
    EXPECT_THAT(files.writes(), IsEmpty());
}

TEST_F(Sriov, GivesAVfToADriverOfTheHostAndLeavesAutoprobeOff) {
    enable(2);
    ASSERT_TRUE(pf().bind(1, Mode::Host));
    EXPECT_EQ(card.vf(1).driver, "igbvf");
    EXPECT_EQ(card.vf(2).driver, "vfio-pci");
    EXPECT_FALSE(card.is_autoprobing);
}

TEST_F(Sriov, RemovesAnOverrideThatAnotherProgramLeftBeforeTheHostGetsAVf) {
    enable(1);
    ASSERT_TRUE(pf().bind(1, Mode::None));
    files.forget_writes();
    ASSERT_TRUE(pf().bind(1, Mode::Host));
    EXPECT_THAT(files.writes(), ::testing::Contains("0000:03:00.1/driver_override="));
    EXPECT_EQ(card.vf(1).driver, "igbvf");
}

TEST_F(Sriov, TakesAVfFromTheHostOnlyIfAsked) {
    enable(1);
    ASSERT_TRUE(pf().bind(1, Mode::Host));
    files.forget_writes();
    const auto refused = pf().bind(1, Mode::VfioPci);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("used by the host's driver igbvf; unbind it (echo 0000:03:00.1 > "
                          "/sys/bus/pci/drivers/igbvf/unbind)"));
    EXPECT_THAT(refused.error().cause, ::testing::Not(HasSubstr("force")))
        << "no request can take it";
    EXPECT_THAT(files.writes(), IsEmpty());
    ASSERT_TRUE(pf().bind(1, Mode::VfioPci, TakeFromHost::Yes));
    EXPECT_EQ(card.vf(1).driver, "vfio-pci");
}

TEST_F(Sriov, NeverTakesAnOpenVfWhateverIsAsked) {
    enable(1);
    card.open(1);
    for (const Mode mode : {Mode::None, Mode::Host})
        EXPECT_EQ(pf().bind(1, mode, TakeFromHost::Yes).error().id, ErrorId::VfsInUse);
    EXPECT_EQ(pf().reset(1).error().id, ErrorId::VfsInUse);
    EXPECT_THAT(files.writes(), IsEmpty());
}

TEST_F(Sriov, PrefersTheVariantOfThePfDriver) {
    FakePci other(bus, {.address = "0000:04:00.0", .driver = "xe", .host_vf_driver = "xe"});
    SriovPf xe(files, {.address = "0000:04:00.0", .ids = ids, .driver = "xe"});
    ASSERT_TRUE(xe.set_count(1, none));
    ASSERT_TRUE(xe.bind(1, Mode::VfioPci));
    EXPECT_EQ(other.vf(1).driver, "vfio-pci");
    bus.load("xe-vfio-pci");
    ASSERT_TRUE(xe.bind(1, Mode::None));
    ASSERT_TRUE(xe.bind(1, Mode::VfioPci));
    EXPECT_EQ(other.vf(1).driver, "xe-vfio-pci");
}

TEST_F(Sriov, SaysWhichModuleIsMissing) {
    enable(1);
    ASSERT_TRUE(pf().bind(1, Mode::None));
    files.remove("/sys/bus/pci/drivers/vfio-pci");
    files.forget_writes();
    const auto refused = pf().bind(1, Mode::VfioPci);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::AssignmentRefused);
    EXPECT_THAT(refused.error().cause, HasSubstr("vfio-pci is not loaded"));
    EXPECT_THAT(files.writes(), IsEmpty());
}

TEST_F(Sriov, SaysThatVfioRefusedWithoutAnIommu) {
    ASSERT_TRUE(pf().set_count(1, none));
    card.has_iommu = false;
    const auto refused = pf().bind(1, Mode::VfioPci);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("vfio-pci did not take vf1 (0000:03:00.1); its "
                                                 "driver is none. Without an IOMMU"));
}

TEST_F(Sriov, GivesNobodyAVfThatCannotBeReset) {
    ASSERT_TRUE(pf().set_count(1, none));
    card.reset_method = "bus";
    const auto refused = pf().bind(1, Mode::VfioPci);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, HasSubstr("has no function level reset"));
    EXPECT_EQ(card.vf(1).driver, "");
}

// --- all VFs

TEST_F(Sriov, ChangesTheCountInTheSafeOrder) {
    enable(2);
    card.is_autoprobing = true;
    ASSERT_TRUE(pf().set_count(3, none));
    EXPECT_THAT(files.writes(),
                ElementsAre("0000:03:00.0/sriov_drivers_autoprobe=0",
                            "0000:03:00.1/driver_override=", "drivers/vfio-pci/unbind=0000:03:00.1",
                            "0000:03:00.2/driver_override=", "drivers/vfio-pci/unbind=0000:03:00.2",
                            "0000:03:00.0/sriov_numvfs=0", "0000:03:00.0/sriov_numvfs=3"));
    EXPECT_EQ(card.count(), 3u);
    EXPECT_EQ(card.vf(1).driver, "") << "no driver of the host may see a new VF";
}

TEST_F(Sriov, RefusesAnotherCountWhileAVfIsOpenAndNamesAllUsers) {
    enable(3);
    card.open(2);
    ASSERT_TRUE(pf().bind(3, Mode::Host));
    files.forget_writes();
    const auto refused = pf().set_count(4, none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::VfsInUse);
    EXPECT_EQ(refused.error().cause,
              "all VFs of 0000:03:00.0 would be disabled and enabled again, but vf2 (0000:03:00.2) "
              "is open through vfio-pci, vf3 (0000:03:00.3) is used by the host's driver igbvf. "
              "Nothing was written");
    EXPECT_THAT(files.writes(), IsEmpty());
}

TEST_F(Sriov, RefusesMoreVfsThanThePfHas) {
    const auto refused = pf().set_count(8, none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::OutOfRange);
    EXPECT_EQ(refused.error().cause, "0000:03:00.0 has at most 7 VFs, not 8");
}

TEST_F(Sriov, NoticesThatTheDriverEnabledFewerVfs) {
    card.enabled_limit = 2;
    const auto refused = pf().set_count(4, none);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause,
                HasSubstr("0000:03:00.0 has 2 VFs after '4' was written to"));
}

TEST_F(Sriov, SaysWhatAnErrnoOfNumvfsMeans) {
    card.on_enable = [](unsigned) { return ENOMEM; };
    const auto refused = pf().set_count(4, none);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::PfRefused);
    EXPECT_EQ(refused.error().cause,
              "cannot write '4' to /sys/bus/pci/devices/0000:03:00.0/sriov_numvfs: Cannot allocate "
              "memory; the firmware of the host left no room for the BARs or bus numbers of so "
              "many VFs; enable 'Above 4G decoding', SR-IOV and ARI in its setup");
}

// --- discovery

TEST_F(Sriov, IsFoundForGpusAndForPfsThatAreNamed) {
    FakePci gpu(bus, {.address = "0000:07:00.0",
                      .driver = "xe",
                      .device = "0xe212",
                      .pci_class = "0x030000",
                      .total_vfs = 12});
    EXPECT_THAT(find_pfs(files).pfs, ::testing::SizeIs(1));
    const auto found = find_pfs(files, {"0000:03:00.0"});
    ASSERT_THAT(found.pfs, ::testing::SizeIs(2));
    EXPECT_EQ(found.pfs[0].address, "0000:03:00.0");
    EXPECT_EQ(found.pfs[0].kind, PfKind::Generic);
    EXPECT_EQ(found.pfs[1].kind, PfKind::Xe);
    EXPECT_EQ(found.pfs[1].facts.total_vfs, 12u);
    EXPECT_THAT(found.pfs[1].name, HasSubstr("Intel"));
    EXPECT_THAT(found.problems, IsEmpty());
}

TEST_F(Sriov, DiscoveryReportsAPfThatItCannotReadAndGoesOn) {
    FakePci gpu(bus, {.address = "0000:07:00.0", .driver = "xe", .pci_class = "0x030000"});
    FakePci bad(bus, {.address = "0000:08:00.0", .driver = "xe", .pci_class = "0x120000"});
    files.fail(bad.path("revision"), EIO);
    const auto found = find_pfs(files);
    EXPECT_THAT(found.pfs, ::testing::SizeIs(1));
    EXPECT_THAT(found.problems, ElementsAre(HasSubstr("0000:08:00.0/revision: Input/output")));
}

/// A card of NVIDIA with two VFs, of which the second has a vGPU type.
class NvidiaVfs : public Sriov {
protected:
    NvidiaVfs() {
        bus.load("nvidia");
        card.set_count(2);
        files.add(card.vf_path(1, "nvidia/current_vgpu_type"), "0");
        files.add(card.vf_path(2, "nvidia/current_vgpu_type"), "558");
        files.forget_writes();
    }
    FakePci card{bus, {.address = "0000:41:00.0", .driver = "nvidia", .host_vf_driver = "nvidia"}};
    SriovPf nvidia{files,
                   {.address = card.address(),
                    .ids = SriovPf::inspect(files, card.address())->ids,
                    .driver = "nvidia"}};
};

TEST_F(NvidiaVfs, AreClosedIfTheyHaveNoTypeAndMayBeOpenIfTheyHaveOne) {
    const auto facts = nvidia.inspect();
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->vfs[0].use, VfUse::Closed);
    EXPECT_EQ(facts->vfs[0].vgpu_type, "0");
    EXPECT_EQ(facts->vfs[1].use, VfUse::Unknown);
    EXPECT_EQ(facts->vfs[1].vgpu_type, "558");
    EXPECT_THAT(describe_use(facts->vfs[1]),
                HasSubstr("may be open: it has NVIDIA's vGPU type 558"));
    for (const VfFunction& vf : facts->vfs) EXPECT_EQ(mode_of(vf), AssignmentMode::VfioPci);
}

TEST_F(NvidiaVfs, OfTheUsualDriverBelongToTheHost) {
    files.remove(card.vf_path(1, "nvidia/current_vgpu_type"));
    const auto vf = nvidia.inspect(1);
    ASSERT_TRUE(vf && *vf);
    EXPECT_EQ((*vf)->use, VfUse::Host);
    EXPECT_EQ(mode_of(**vf), AssignmentMode::Host);
}

TEST_F(NvidiaVfs, WhoseTypeCannotBeReadSaysWhy) {
    files.fail(card.vf_path(1, "nvidia/current_vgpu_type"), EIO);
    const auto vf = nvidia.inspect(1);
    ASSERT_TRUE(vf && *vf);
    EXPECT_THAT(describe_use(**vf), HasSubstr("current_vgpu_type: Input/output"));
}

TEST_F(NvidiaVfs, StayWithTheirDriverAndAreNotReset) {
    for (const std::uint32_t vf : {1u, 2u}) {
        EXPECT_TRUE(nvidia.bind(vf, AssignmentMode::VfioPci));
        EXPECT_TRUE(nvidia.bind(vf, AssignmentMode::Default));
        for (const AssignmentMode mode : {AssignmentMode::None, AssignmentMode::Host}) {
            const auto bound = nvidia.bind(vf, mode, TakeFromHost::Yes);
            ASSERT_FALSE(bound);
            EXPECT_EQ(bound.error().id, ErrorId::AssignmentRefused);
            EXPECT_THAT(bound.error().cause, HasSubstr("only 'vfio-pci' is possible"));
        }
        const auto reset = nvidia.reset(vf);
        ASSERT_FALSE(reset);
        EXPECT_EQ(reset.error().id, ErrorId::NotOffered);
    }
    EXPECT_THAT(files.writes(), IsEmpty());
}

TEST(SriovDrivers, OfVendorsWithoutSriovConfigureAreAdoptedWithTheirCount) {
    EXPECT_EQ(kind_of("gim"), PfKind::Adopted);
    EXPECT_EQ(kind_of("nvidia"), PfKind::Adopted);
    EXPECT_EQ(kind_of("vgpu_pf"), PfKind::Own);
    EXPECT_EQ(kind_of("vfio-pci"), PfKind::None);
    EXPECT_EQ(kind_of("pci-pf-stub"), PfKind::Generic);
    EXPECT_THAT(std::string(fixed_count_reason("gim")), HasSubstr("vf_num"));
    EXPECT_EQ(fixed_count_reason("xe"), "");
}

}  // namespace
}  // namespace vgpu::daemon::sriov
