// SPDX-License-Identifier: MIT
#include "cli/diagnosis.h"
#include "cli/format.h"
#include "cli/remedies.h"
#include "tests/unit/cli/fake_service.h"

#include <gmock/gmock.h>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

namespace vgpu::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

PciReading pci(const std::string& name) {
    return read_pci(std::string(VGPU_SOURCE_DIR) + "/tests/unit/cli/pci/" + name);
}

/// A host with nothing wrong.
HostFacts well() {
    HostFacts facts;
    facts.vgpuctl_version = "0.1.0";
    facts.kernel_release = "6.12.57";
    facts.kernel_command_line = "quiet intel_iommu=on";
    facts.is_root = true;
    facts.iommu_groups = 34;
    facts.kernel_config = {
        {"CONFIG_PCI_IOV", "y"}, {"CONFIG_VFIO_PCI", "m"}, {"CONFIG_IOMMU_SUPPORT", "y"}};
    facts.pci = pci("sriov_ready.txt");
    facts.group_members["0000:03:00.0"] = {"0000:03:00.0"};
    facts.module = {.is_loaded = true, .is_available = true, .pf_devices = {"/dev/vgpu-pf0"}};
    facts.qemu_version = "QEMU emulator version 10.1.2 (Debian 1:10.1.2+ds-1)";
    facts.run_dir = {.path = "/run/vgpu", .exists = true, .has_expected_type = true, .mode = 0755};
    facts.vf_sockets = {{.path = "/run/vgpu/gpu0/vf1.sock",
                         .exists = true,
                         .has_expected_type = true,
                         .mode = 0660}};
    facts.service.has_bus = facts.service.has_answered = true;
    facts.service.manager = testing::FakeService().manager();
    facts.service.gpus = {testing::gpu_properties("gpu0", "ok")};
    facts.service.vfs = testing::FakeService().vfs;
    for (Properties& vf : facts.service.vfs) vf["Orphan"] = std::string();
    return facts;
}

/// A host with something wrong everywhere.
HostFacts ill() {
    HostFacts facts = well();
    facts.iommu_groups = 0;
    facts.kernel_command_line = "quiet intel_iommu=off";
    facts.kernel_config->erase("CONFIG_PCI_IOV");
    facts.pci = pci("sriov_unready.txt");
    facts.group_members["0000:03:00.0"] = {"0000:00:01.0", "0000:03:00.0", "0000:03:00.1",
                                           "0000:02:00.0"};
    facts.module = {};
    facts.qemu_version = "QEMU emulator version 7.2.19 (Debian 1:7.2+dfsg-7)";
    facts.run_dir.mode = 0777;
    facts.vf_sockets.push_back({.path = "/run/vgpu/gpu0/vf2.sock"});
    facts.vf_sockets.front().mode = 0666;
    facts.service.manager["Version"] = std::string("0.2.0");
    facts.service.manager["ReadOnly"] = true;
    facts.service.manager["StateMessage"] = std::string("the state file x is damaged");
    facts.service.gpus.push_back(testing::gpu_properties("gpu1", "pf-lost"));
    facts.service.gpus.back()["DeviceResets"] = std::uint64_t{3};
    facts.service.gpus.back()["EventsLost"] = std::uint64_t{17};
    facts.service.vfs.at(0)["Condition"] = std::string("'train' did not get its resources back");
    facts.service.vfs.at(1)["State"] = std::string("quarantined");
    facts.service.vfs.at(1)["Orphan"] = std::string("the lease of 'slurm:2' (claim 6) is over");
    facts.service.vfs.at(2)["GuardLevel"] = std::uint64_t{2};
    return facts;
}

/// Levels of the findings with this id, in order.
std::vector<Level> levels_of(const HostFacts& facts, const std::string& id) {
    std::vector<Level> levels;
    for (const Finding& finding : diagnose(facts))
        if (finding.id == id) levels.push_back(finding.level);
    return levels;
}

using Levels = std::vector<Level>;

TEST(Doctor, AHostWithNothingWrongHasOnlyOk) {
    EXPECT_THAT(diagnose(well()), Each(Field(&Finding::level, Level::Ok)));
    EXPECT_EQ(worst_of(diagnose(well())), Level::Ok);
}

TEST(Doctor, WhatIsNotOkSaysWhyItMatters) {
    for (const Finding& finding : diagnose(ill())) {
        if (finding.level == Level::Ok) continue;
        EXPECT_FALSE(finding.why.empty()) << finding.id;
        EXPECT_TRUE(finding.level == Level::Note || !finding.fix.empty()) << finding.id;
    }
    EXPECT_EQ(worst_of(diagnose(ill())), Level::Problem);
}

/// A host with an Intel GPU, which vgpud manages.
HostFacts with_xe() {
    HostFacts facts = well();
    facts.vendor_pfs = {{.address = "0000:03:00.0",
                         .driver = "xe",
                         .total_vfs = 12,
                         .has_vf_quantum = true,
                         .has_vram_quota = true,
                         .has_vfio_driver = true,
                         .has_xe_vfio = true}};
    facts.service.gpus.front()["Address"] = std::string("0000:03:00.0");
    facts.service.gpus.front()["Manage"] = std::string("full");
    return facts;
}

TEST(Doctor, AGpuOfAVendorsDriverWithNothingWrongHasOnlyOk) {
    EXPECT_THAT(diagnose(with_xe()), Each(Field(&Finding::level, Level::Ok)));
    EXPECT_EQ(levels_of(with_xe(), "pf-found"), Levels{Level::Ok});
    EXPECT_EQ(levels_of(with_xe(), "xe-level"), Levels{Level::Ok});
}

/// What is wrong with a GPU of a vendor's driver, and the finding that says so.
struct VendorCase {
    const char* id;
    Level level;
    std::function<void(VendorPf&, HostFacts&)> break_it;
};

void expect_found(const std::vector<VendorCase>& cases) {
    for (const VendorCase& one : cases) {
        HostFacts facts = with_xe();
        one.break_it(facts.vendor_pfs.front(), facts);
        EXPECT_EQ(levels_of(facts, one.id), Levels{one.level}) << one.id;
    }
}

TEST(Doctor, FindsWhatIsWrongWithAPfOfAVendorsDriver) {
    expect_found(
        {{"pf-driver", Level::Warning, [](VendorPf& pf, HostFacts&) { pf.driver.clear(); }},
         {"pf-driver", Level::Warning, [](VendorPf& pf, HostFacts&) { pf.driver = "vfio-pci"; }},
         {"pf-vfs", Level::Warning, [](VendorPf& pf, HostFacts&) { pf.total_vfs = 0; }},
         {"pf-found", Level::Note,
          [](VendorPf&, HostFacts& facts) { facts.service.gpus.front().erase("Address"); }},
         {"pf-vfio", Level::Warning, [](VendorPf& pf, HostFacts&) { pf.has_vfio_driver = false; }},
         {"pf-autoprobe", Level::Warning,
          [](VendorPf& pf, HostFacts&) {
              pf.host_drivers = {"xe", "xe"};
          }},
         {"pf-other-manager", Level::Note,
          [](VendorPf&, HostFacts& facts) { facts.vendor.other_managers = {"/etc/rc.local"}; }},
         {"iommu-width", Level::Note,
          [](VendorPf&, HostFacts& facts) {
              facts.vendor.iommu_bits = 39;
              facts.vendor.cpu_bits = 46;
          }},
         {"iommu", Level::Problem, [](VendorPf&, HostFacts& facts) {
              facts.pci.functions.clear();
              facts.iommu_groups = 0;
          }}});
}

TEST(Doctor, FindsWhatIsWrongWithADriverOfAVendor) {
    expect_found(
        {{"pf-vfs", Level::Warning,
          [](VendorPf& pf, HostFacts& facts) {
              pf.total_vfs = 0;
              facts.vendor.xe_max_vfs = 0;
          }},
         {"xe-level", Level::Note, [](VendorPf& pf, HostFacts&) { pf.has_vf_quantum = false; }},
         {"xe-level", Level::Note, [](VendorPf& pf, HostFacts&) { pf.has_vram_quota = false; }},
         {"xe-variant", Level::Note, [](VendorPf& pf, HostFacts&) { pf.has_xe_vfio = false; }},
         {"xe-quanta", Level::Warning,
          [](VendorPf&, HostFacts& facts) {
              facts.service.vfs.front()["DriverQuantumUs"] = std::uint64_t{16'000};
          }},
         {"i915-xe", Level::Note,
          [](VendorPf& pf, HostFacts& facts) {
              pf.driver = "i915";
              facts.vendor.has_xe = true;
          }},
         {"gim-driver", Level::Note, [](VendorPf& pf, HostFacts&) { pf.driver = "amdgpu"; }},
         {"gim-config", Level::Note, [](VendorPf& pf, HostFacts&) { pf.driver = "gim"; }},
         {"nvidia-vfio", Level::Warning, [](VendorPf& pf, HostFacts&) { pf.driver = "nvidia"; }},
         {"nvidia-vfio", Level::Note, [](VendorPf& pf, HostFacts& facts) {
              pf.driver = "nvidia";
              pf.vfs_without_type = 2;
              facts.vendor.has_sriov_manage = true;
          }}});
}

TEST(Doctor, JudgesThePciSlotOfAGpuOfAnyVendor) {
    HostFacts facts = with_xe();
    for (PciFunction& one : facts.pci.functions)
        if (one.address == "0000:03:00.0") one.vendor_id = 0x8086;
    EXPECT_EQ(levels_of(facts, "pci-sriov"), Levels{Level::Ok});
    EXPECT_EQ(levels_of(facts, "pci-vf-bars"), Levels{Level::Ok});
    facts.vendor_pfs.clear();
    EXPECT_EQ(levels_of(facts, "pci-sriov"), Levels{}) << "no PF that vgpud could drive";
}

TEST(Doctor, AGpuThatVgpudOnlyObservesNeedsNoDriverForVms) {
    HostFacts facts = with_xe();
    facts.service.gpus.front()["Manage"] = std::string("observe");
    facts.vendor_pfs.front().has_vfio_driver = false;
    EXPECT_EQ(levels_of(facts, "pf-vfio"), Levels{});
}

TEST(Doctor, WithoutABusOrVgpudTheRestIsStillJudged) {
    HostFacts facts = well();
    facts.service = {.has_bus = false, .has_answered = false, .error = "no such file"};
    EXPECT_EQ(levels_of(facts, "bus"), Levels{Level::Problem});
    EXPECT_EQ(levels_of(facts, "vgpud"), Levels{});
    EXPECT_EQ(levels_of(facts, "pci-sriov"), Levels{Level::Ok});
    facts.service.has_bus = true;
    EXPECT_EQ(levels_of(facts, "bus"), Levels{Level::Ok});
    EXPECT_EQ(levels_of(facts, "vgpud"), Levels{Level::Problem});
    EXPECT_EQ(levels_of(facts, "state"), Levels{});
}

TEST(Doctor, AVgpudThatDoesNotSayWhatItHasIsAWarning) {
    HostFacts facts = well();
    facts.service.gpus.clear();
    facts.service.vfs.clear();
    facts.service.error = "VGPU-402: too many requests";
    EXPECT_EQ(levels_of(facts, "vgpud"), Levels{Level::Warning});
    EXPECT_THAT(diagnose(facts), Contains(Field(&Finding::what, HasSubstr("VGPU-402: too many"))));
}

TEST(Doctor, ADiskThatTakesNoChangeIsAWarning) {
    HostFacts facts = well();
    facts.service.manager["StateMessage"] = std::string("cannot write x: No space left on device");
    EXPECT_EQ(levels_of(facts, "state"), Levels{Level::Warning});
}

TEST(Doctor, AVfThatIsNotAsItIsDefinedOrWhoseClaimLooksForgottenIsAWarning) {
    HostFacts facts = well();
    facts.service.vfs.at(1)["Condition"] = std::string("its VRAM could not be scrubbed");
    facts.service.vfs.at(2)["Orphan"] = std::string("the lease of 'slurm:2' (claim 6) is over");
    facts.service.vfs.at(2)["Owner"] = std::string("slurm:2");
    facts.service.vfs.at(2)["OwnerGeneration"] = std::uint64_t{6};
    EXPECT_THAT(diagnose(facts),
                AllOf(Contains(AllOf(Field(&Finding::id, "vf-condition"),
                                     Field(&Finding::level, Level::Warning),
                                     Field(&Finding::what, HasSubstr("gpu0/vf2: its VRAM")))),
                      Contains(AllOf(Field(&Finding::id, "vf-orphan"),
                                     Field(&Finding::what, HasSubstr("gpu0/vf3: the lease")),
                                     Field(&Finding::fix,
                                           HasSubstr("'vgpuctl release gpu0/vf3 --owner slurm:2 "
                                                     "--generation 6 --scrub'"))))));
}

TEST(Doctor, AVfThatGetsNoEngineTimeIsNotifiedWithCommandsThatNameIt) {
    HostFacts facts = well();
    const auto is_fixed_by = [&facts](const std::string& state, const std::string& command) {
        facts.service.vfs.at(1)["State"] = state;
        EXPECT_THAT(diagnose(facts), Contains(AllOf(Field(&Finding::id, "vf-state"),
                                                    Field(&Finding::fix, HasSubstr(command)))));
    };
    is_fixed_by("quarantined", "'vgpuctl resume gpu0/vf2 --clear-quarantine'");
    is_fixed_by("mismatch", "'vgpuctl reset gpu0/vf2 --owner slurm:2'");
    facts.service.vfs.at(1)["OwnerGeneration"] = std::uint64_t{0};
    is_fixed_by("mismatch", "'vgpuctl reset gpu0/vf2'");
}

TEST(Doctor, AnOwnersNameIsOneWordOfAShellAndNothingElse) {
    EXPECT_EQ(shell_word("libvirt:4dea22b3-1d52"), "libvirt:4dea22b3-1d52");
    EXPECT_EQ(shell_word("a;reboot"), "'a;reboot'");
    EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
    EXPECT_EQ(shell_word(""), "''");
}

TEST(Doctor, VersionsThatDifferAreAWarningAndOfAnAgentANote) {
    HostFacts facts = well();
    facts.vgpuctl_version = "0.2.0";
    EXPECT_EQ(levels_of(facts, "version"), Levels{Level::Warning});
    facts.service.vfs.front()["Agent.Version"] = std::string("0.0.9");
    EXPECT_EQ(levels_of(facts, "agent-version"), Levels{Level::Note});
    facts.service.vfs.front()["Agent.Connected"] = false;
    EXPECT_EQ(levels_of(facts, "agent-version"), Levels{}) << "it was seen long ago";
}

TEST(Doctor, QemuIsJudgedByItsRelease) {
    HostFacts facts = well();
    const std::map<std::string, Level> releases{{"QEMU emulator version 10.1.0", Level::Ok},
                                                {"QEMU emulator version 11.0.0", Level::Ok},
                                                {"QEMU emulator version 10.0.13", Level::Warning},
                                                {"QEMU emulator version 9.2", Level::Warning},
                                                {"something else", Level::Warning}};
    for (const auto& [text, level] : releases) {
        facts.qemu_version = text;
        EXPECT_EQ(levels_of(facts, "qemu"), Levels{level}) << text;
    }
    facts.qemu_version.reset();
    EXPECT_EQ(levels_of(facts, "qemu"), Levels{Level::Note});
}

TEST(Doctor, AnIommuIsNeededOnlyForSilicon) {
    HostFacts facts = well();
    facts.iommu_groups = 0;
    EXPECT_EQ(levels_of(facts, "iommu"), Levels{Level::Problem});
    facts.pci = pci("no_sriov.txt");
    EXPECT_EQ(levels_of(facts, "iommu"), Levels{Level::Note});
    facts.kernel_command_line = "iommu=off";
    EXPECT_THAT(diagnose(facts), Contains(AllOf(Field(&Finding::id, "iommu"),
                                                Field(&Finding::fix, HasSubstr("iommu=off")))));
}

TEST(Doctor, TheModuleIsNeededOnlyForSilicon) {
    HostFacts facts = well();
    facts.module = {.is_loaded = false, .is_available = true, .pf_devices = {}};
    EXPECT_EQ(levels_of(facts, "module"), Levels{Level::Warning});
    facts.pci = pci("no_sriov.txt");
    EXPECT_EQ(levels_of(facts, "module"), Levels{Level::Note});
}

TEST(Doctor, AKernelConfigurationThatIsNotReadableIsANote) {
    HostFacts facts = well();
    facts.kernel_config.reset();
    EXPECT_EQ(levels_of(facts, "kernel-config"), Levels{Level::Note});
    facts.kernel_config = {{"CONFIG_PCI_IOV", "y"}, {"CONFIG_IOMMU_SUPPORT", "n"}};
    EXPECT_EQ(levels_of(facts, "kernel-config"), (Levels{Level::Warning, Level::Warning}));
    facts.pci = pci("no_sriov.txt");
    EXPECT_EQ(levels_of(facts, "kernel-config"), (Levels{Level::Note, Level::Note}))
        << "only silicon needs it";
}

TEST(Doctor, PciFindingsNameTheFunctionAndWhatThePortAboveLacks) {
    HostFacts facts = ill();
    EXPECT_EQ(levels_of(facts, "pci-vf-bars"), (Levels{Level::Problem, Level::Ok}));
    EXPECT_EQ(levels_of(facts, "pci-ari"), (Levels{Level::Warning, Level::Warning}));
    EXPECT_EQ(levels_of(facts, "pci-acs"), (Levels{Level::Warning, Level::Warning}));
    EXPECT_EQ(levels_of(facts, "pci-group"), Levels{Level::Warning});
    const auto findings = diagnose(facts);
    const auto said = [&findings](const std::string& id, const std::string& words) {
        EXPECT_THAT(findings, Contains(AllOf(Field(&Finding::id, id),
                                             Field(&Finding::what, HasSubstr(words)))));
    };
    said("pci-ari", "0000:03:00.0: ARI is off; 7 of 16 VFs");
    said("pci-ari", "0000:04:00.0: ARI is not possible in this slot");
    said("pci-acs", "0000:03:00.0: the port above (0000:00:01.0) has no ACS");
    said("pci-acs", "0000:04:00.0: ACS of the port above (0000:00:02.0) is not enabled (0x0000)");
    said("pci-group", "0000:03:00.0: shares its IOMMU group with 0000:02:00.0");
}

TEST(Doctor, AFunctionOfWhichOnlyTheHeadIsReadableIsNotJudged) {
    HostFacts facts = well();
    facts.pci = pci("no_sriov.txt");
    EXPECT_EQ(levels_of(facts, "pci-sriov"), (Levels{Level::Note, Level::Note}));
    EXPECT_EQ(levels_of(facts, "pci-acs"), Levels{});
    facts.pci = {.functions = {}, .error = "cannot open /proc/bus/pci"};
    EXPECT_EQ(levels_of(facts, "pci"), Levels{Level::Note});
    facts.pci = {};
    EXPECT_EQ(levels_of(facts, "pci-gpu"), Levels{Level::Note});
}

TEST(Doctor, AVfIsNoGpuWithoutSriov) {
    HostFacts facts = well();
    PciFunction vf = facts.pci.functions.back();
    ASSERT_TRUE(is_amd_gpu(vf));
    vf.address = "0000:03:00.1";
    vf.sriov.reset();
    vf.is_vf = true;
    facts.pci.functions.push_back(vf);
    EXPECT_THAT(diagnose(facts), Each(Field(&Finding::level, Level::Ok)));
}

TEST(Doctor, ADirectoryThatEverybodyMayWriteIsAProblem) {
    HostFacts facts = well();
    facts.run_dir.mode = 0757;
    EXPECT_EQ(levels_of(facts, "run-dir"), Levels{Level::Problem});
    facts.run_dir = {.path = "/run/vgpu", .exists = true};
    EXPECT_EQ(levels_of(facts, "run-dir"), Levels{Level::Problem}) << "no directory";
    facts.run_dir = {.path = "/run/vgpu"};
    EXPECT_EQ(levels_of(facts, "run-dir"), Levels{Level::Note});
}

TEST(Doctor, EveryIdIsInTheDocument) {
    std::ifstream file(VGPU_SOURCE_DIR "/docs/vgpuctl.md");
    const std::string document(std::istreambuf_iterator<char>(file), {});
    HostFacts unreadable = ill();
    unreadable.pci = {.functions = {}, .error = "x"};
    unreadable.service = {};
    HostFacts without_gpu = ill();
    without_gpu.pci = {};
    without_gpu.service.vfs.front()["Agent.Version"] = std::string("0.0.9");
    for (const HostFacts& facts : {well(), ill(), unreadable, without_gpu})
        for (const Finding& finding : diagnose(facts))
            EXPECT_THAT(document, HasSubstr("`" + finding.id + "`"));
}

/// `text` equals the golden file; VGPU_UPDATE_GOLDEN=1 writes it anew.
void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(VGPU_GOLDEN_DIR) + "/" + name;
    if (std::getenv("VGPU_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
    std::ifstream file(path);
    EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(file), {})) << path;
}

TEST(DoctorGolden, TextIsAsWrittenDownAndFits80Columns) {
    const std::string text = findings_text(diagnose(ill()), false);
    expect_golden("doctor.txt", text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    expect_golden("doctor-well.txt", findings_text(diagnose(well()), false));
}

TEST(DoctorGolden, JsonIsAsWrittenDown) {
    expect_golden("doctor.json", document_text("vgpuctl-doctor-1", findings_json(diagnose(ill()))));
}

TEST(DoctorGolden, ColourIsOnlyWhereItIsWanted) {
    EXPECT_THAT(findings_text(diagnose(ill()), false), Not(HasSubstr("\x1b")));
    EXPECT_THAT(findings_text(diagnose(ill()), true), HasSubstr("\x1b[31mproblem \x1b[0m "));
}

}  // namespace
}  // namespace vgpu::cli
