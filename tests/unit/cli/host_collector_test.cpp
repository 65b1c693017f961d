// SPDX-License-Identifier: MIT
//
// The collector on machines that are directories, and with programs that misbehave.
#include "cli/host_collector.h"
#include "tests/unit/cli/cli_fixture.h"
#include "tests/unit/cli/temp_tree.h"

#include <gmock/gmock.h>
#include <sys/utsname.h>
#include <chrono>
#include <filesystem>

namespace vgpu::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempTree;

std::string release() {
    utsname name{};
    ::uname(&name);
    return name.release;
}

class Collector : public ::testing::Test {
protected:
    [[nodiscard]] HostFacts collect() {
        sources.root = tree.path();
        sources.run_dir = tree.file("run");
        return HostCollector(sources).collect([this]() -> std::unique_ptr<Service> {
            if (!has_bus)
                throw ServiceError("org.freedesktop.DBus.Error.FileNotFound", "no such bus");
            return std::make_unique<testing::Lent>(service);
        });
    }

    TempTree tree;
    testing::FakeService service;
    HostSources sources{
        .root = "",
        .pci_dump = std::string(VGPU_SOURCE_DIR) + "/tests/unit/cli/pci/sriov_ready.txt",
        .run_dir = "",
        .qemu = "vgpu-no-such-qemu"};
    bool has_bus = true;
};

TEST_F(Collector, FindsWhatIsThere) {
    tree.write("proc/cmdline", "quiet intel_iommu=on\n");
    tree.write("boot/config-" + release(), "# a comment\nCONFIG_PCI_IOV=y\nCONFIG_VFIO=m\n");
    tree.make_directory("sys/kernel/iommu_groups/0");
    tree.make_directory("sys/kernel/iommu_groups/1");
    tree.make_directory("sys/bus/pci/devices/0000:03:00.0/iommu_group/devices/0000:03:00.0");
    tree.make_directory("sys/module/vgpu_pf");
    tree.write("lib/modules/" + release() + "/modules.dep", "updates/dkms/vgpu_pf.ko:\n");
    tree.write("dev/vgpu-pf0", "");
    tree.make_directory("run");
    const HostFacts facts = collect();
    EXPECT_EQ(facts.kernel_command_line, "quiet intel_iommu=on\n");
    EXPECT_EQ(facts.kernel_config->at("CONFIG_VFIO"), "m");
    EXPECT_EQ(facts.kernel_config->size(), 2u);
    EXPECT_EQ(facts.iommu_groups, 2u);
    EXPECT_THAT(facts.group_members.at("0000:03:00.0"), ElementsAre("0000:03:00.0"));
    EXPECT_TRUE(facts.module.is_loaded);
    EXPECT_TRUE(facts.module.is_available);
    EXPECT_THAT(facts.module.pf_devices, ElementsAre("/dev/vgpu-pf0"));
    EXPECT_TRUE(facts.run_dir.exists);
    EXPECT_TRUE(facts.run_dir.has_expected_type);
    EXPECT_EQ(facts.pci.functions.size(), 2u);
    EXPECT_TRUE(facts.service.has_answered);
    EXPECT_EQ(facts.service.gpus.size(), 2u);
    EXPECT_EQ(facts.vf_sockets.size(), 2u) << "the third is withheld";
}

TEST_F(Collector, FindsGpusOfVendorsDriversAndNothingElseWithSriov) {
    const auto add = [this](const std::string& address, const std::string& driver,
                            const std::string& pci_class, bool is_pf = true) {
        const std::string node = "sys/bus/pci/devices/" + address + "/";
        tree.write(node + "class", pci_class + "\n");
        if (is_pf) tree.write(node + "sriov_totalvfs", "12\n");
        std::filesystem::create_symlink("../../../bus/pci/drivers/" + driver,
                                        tree.file(node + "driver"));
    };
    add("0000:03:00.0", "xe", "0x030000");
    tree.write("sys/bus/pci/devices/0000:03:00.0/sriov_admin/vf1/profile/exec_quantum_ms", "0\n");
    add("0000:03:00.1", "xe", "0x030000", false);
    add("0000:04:00.0", "vgpu_pf", "0x120000");
    add("0000:05:00.0", "igb", "0x020000");
    tree.make_directory("sys/bus/pci/drivers/vfio-pci");
    const HostFacts facts = collect();
    ASSERT_EQ(facts.vendor_pfs.size(), 1u);
    const VendorPf& pf = facts.vendor_pfs.front();
    EXPECT_EQ(pf.address, "0000:03:00.0");
    EXPECT_EQ(pf.driver, "xe");
    EXPECT_EQ(pf.total_vfs, 12u);
    EXPECT_TRUE(pf.has_vf_quantum);
    EXPECT_FALSE(pf.has_vram_quota);
    EXPECT_TRUE(pf.has_vfio_driver);
    EXPECT_FALSE(pf.has_xe_vfio);
}

TEST_F(Collector, FindsWhoElseHasVfsOfAVendorsGpu) {
    const std::string node = "sys/bus/pci/devices/0000:03:00.0/";
    tree.write(node + "class", "0x030200\n");
    tree.write(node + "sriov_totalvfs", "12\n");
    tree.write(node + "virtfn0/nvidia/current_vgpu_type", "0\n");
    tree.write(node + "virtfn1/nvidia/current_vgpu_type", "558\n");
    for (const auto& [vf, driver] : {std::pair("virtfn0", "nvidia"), std::pair("virtfn2", "igbvf"),
                                     std::pair("virtfn3", "vfio-pci")}) {
        tree.make_directory(node + vf);
        std::filesystem::create_symlink(std::string("../drivers/") + driver,
                                        tree.file(node + vf + "/driver"));
    }
    tree.write("etc/udev/rules.d/90-vfs.rules", "RUN+=\"echo 4 > sriov_numvfs\"\n");
    tree.write("etc/udev/rules.d/91-other.rules", "nothing\n");
    tree.write("sys/class/iommu/dmar0/intel-iommu/cap", "d2008c40660462\n");
    tree.write("sys/class/iommu/dmar1/intel-iommu/cap", "d2008c402f0462\n");
    tree.write("proc/cpuinfo", "address sizes\t: 46 bits physical, 48 bits virtual\n");
    tree.write("sys/module/xe/parameters/max_vfs", "0\n");
    const HostFacts facts = collect();
    ASSERT_EQ(facts.vendor_pfs.size(), 1u);
    EXPECT_THAT(facts.vendor_pfs.front().host_drivers, ElementsAre("igbvf"));
    EXPECT_EQ(facts.vendor_pfs.front().vfs_without_type, 1u);
    EXPECT_THAT(facts.vendor.other_managers, ElementsAre("/etc/udev/rules.d/90-vfs.rules"));
    EXPECT_EQ(facts.vendor.iommu_bits, 39u) << "bits 21 to 16 of 0x660462 are 38, of 0x2f0462 47";
    EXPECT_EQ(facts.vendor.cpu_bits, 46u);
    EXPECT_EQ(facts.vendor.xe_max_vfs, 0u);
}

TEST_F(Collector, AVgpudThatHangsIsNotWaitedForAsLongAsByOtherVerbs) {
    static_cast<void>(collect());
    EXPECT_GT(service.call_limit, std::chrono::seconds(0));
    EXPECT_LE(service.call_limit, std::chrono::seconds(10));
}

TEST_F(Collector, KeepsWhyVgpudDoesNotSayWhatItHas) {
    service.list_error_name = "org.vgpu1.Error.TooManyRequests";
    const HostFacts facts = collect();
    EXPECT_TRUE(facts.service.has_answered);
    EXPECT_EQ(facts.service.error, "no list, as the test wants.");
}

TEST_F(Collector, OnAnEmptyMachineSaysNothingRatherThanGuess) {
    has_bus = false;
    const HostFacts facts = collect();
    EXPECT_FALSE(facts.kernel_config);
    EXPECT_FALSE(facts.qemu_version);
    EXPECT_EQ(facts.iommu_groups, 0u);
    EXPECT_FALSE(facts.module.is_loaded);
    EXPECT_FALSE(facts.module.is_available);
    EXPECT_FALSE(facts.run_dir.exists);
    EXPECT_FALSE(facts.service.has_bus);
    EXPECT_EQ(facts.service.error, "no such bus");
}

TEST_F(Collector, ADirectoryInPlaceOfAFileIsNoFile) {
    tree.make_directory("boot/config-" + release());
    tree.make_directory("proc/cmdline");
    const HostFacts facts = collect();
    EXPECT_FALSE(facts.kernel_config);
    EXPECT_EQ(facts.kernel_command_line, "");
}

TEST_F(Collector, ReadsTheKernelsOwnConfigurationIfBootHasNone) {
    const std::string plain = tree.write("config", "CONFIG_PCI_IOV=y\n");
    tree.make_directory("proc");
    ASSERT_EQ(std::system(("gzip -c " + plain + " >" + tree.file("proc/config.gz")).c_str()), 0);
    const HostFacts facts = collect();
    ASSERT_TRUE(facts.kernel_config);
    EXPECT_EQ(facts.kernel_config->at("CONFIG_PCI_IOV"), "y");
}

TEST_F(Collector, AFunctionOfAnotherIsAVf) {
    EXPECT_FALSE(collect().pci.functions.back().is_vf);
    tree.make_directory("sys/bus/pci/devices/0000:03:00.0/physfn");
    EXPECT_TRUE(collect().pci.functions.back().is_vf);
}

TEST_F(Collector, AFileInPlaceOfADirectoryIsSeen) {
    tree.write("run", "");
    const HostFacts facts = collect();
    EXPECT_TRUE(facts.run_dir.exists);
    EXPECT_FALSE(facts.run_dir.has_expected_type);
}

TEST_F(Collector, AsksQemuForItsVersion) {
    sources.qemu = tree.write("qemu", "#!/bin/sh\necho QEMU emulator version 10.1.0\necho more\n");
    std::filesystem::permissions(sources.qemu, std::filesystem::perms(0755));
    EXPECT_EQ(collect().qemu_version, "QEMU emulator version 10.1.0");
}

}  // namespace
}  // namespace vgpu::cli
