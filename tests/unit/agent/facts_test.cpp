// SPDX-License-Identifier: MIT
#include "vf-agent/facts.h"
#include "tests/unit/agent/fake_tree.h"
#include "vf-agent/freezer.h"
#include "vf-agent/kernel_log.h"
#include "vf-agent/modprobe.h"

#include <gmock/gmock.h>

namespace vgpu::agent {
namespace {

using ::testing::ElementsAre;
using testing::FakeTree;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(Facts, NothingThereIsEmptyNotAnError) {
    const FakeTree tree;
    const Facts facts(tree.root);
    EXPECT_EQ(facts.vf().pci_address, "");
    EXPECT_EQ(facts.driver().name, "");
    EXPECT_EQ(facts.rocr_version(), "");
    EXPECT_THAT(facts.processes(), IsEmpty());
    EXPECT_THAT(facts.users(), Optional(IsEmpty()));
}

TEST(Facts, TheVfItsDriverAndItsVram) {
    const FakeTree tree;
    tree.add_vf();
    tree.link("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1", "libhsa-runtime64.so.1.13.0");
    const Facts facts(tree.root);
    const VfFacts vf = facts.vf();
    EXPECT_EQ(vf.pci_address, "0000:00:05.0");
    EXPECT_EQ(vf.unique_id, "1d2c3b4a59687706");
    EXPECT_EQ(vf.render_node, "/dev/dri/renderD128");
    EXPECT_EQ(vf.vram_total_bytes, 512u << 20);
    EXPECT_EQ(vf.vram_used_bytes, 16u << 20);
    EXPECT_EQ(facts.driver().name, "amdgpu");
    EXPECT_EQ(facts.driver().srcversion, "ABCDEF");
    EXPECT_EQ(facts.rocr_version(), "1.13.0");
    EXPECT_EQ(facts.kernel_release(), "6.12.57+deb13-amd64");
}

TEST(Facts, AVfIsPreferredToAnotherGpu) {
    const FakeTree tree;
    tree.file("sys/bus/pci/devices/0000:00:02.0/vendor", "0x1002\n");
    tree.file("sys/bus/pci/devices/0000:00:02.0/device", "0x7480\n");
    tree.file("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    tree.add_vf();
    EXPECT_EQ(Facts(tree.root).vf().pci_address, "0000:00:05.0");
    EXPECT_EQ(Facts(tree.root, "0000:00:02.0").vf().pci_address, "0000:00:02.0");
}

TEST(Facts, ProcessesCountTheirQueuesOnThisGpuOnly) {
    const FakeTree tree;
    tree.add_vf();
    const auto processes = Facts(tree.root).processes();
    ASSERT_EQ(processes.size(), 1u);
    EXPECT_EQ(processes[0].pid, 412);
    EXPECT_EQ(processes[0].comm, "matmul");
    EXPECT_EQ(processes[0].vram_bytes, 3u << 20);
    EXPECT_EQ(processes[0].queues, 2u);
}

TEST(Facts, ADrmClientCountsOnceAndNotBesideKfd) {
    const FakeTree tree;
    tree.add_vf();
    const std::string fdinfo =
        "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:00:05.0\n"
        "drm-memory-vram:\t8192 KiB\n";
    for (const char* pid : {"412", "500"})
        for (const char* fd : {"5", "6"}) {
            tree.link(std::string("proc/") + pid + "/fd/" + fd, "/dev/dri/renderD128");
            tree.file(std::string("proc/") + pid + "/fdinfo/" + fd, fdinfo);
        }
    tree.link("proc/600/fd/3", "/dev/kfd");
    const auto processes = Facts(tree.root).processes();
    ASSERT_EQ(processes.size(), 2u);
    EXPECT_EQ(processes[0].vram_bytes, 8u << 20);
    EXPECT_EQ(processes[1].vram_bytes, 8u << 20);
    EXPECT_THAT(Facts(tree.root).users(), Optional(ElementsAre(412, 500, 600)));
}

TEST(Facts, AScanThatLeavesOutFilesHasNoUsers) {
    const FakeTree tree;
    tree.link("proc/412/fd/0", "/dev/kfd");
    for (int fd = 1; fd < 8192; ++fd)
        fs::create_symlink("/dev/null", tree.root / "proc/412/fd" / std::to_string(fd));
    EXPECT_FALSE(Facts(tree.root).users());
}

TEST(KernelLog, CountsResetsAndErrorsOfAmdgpuOnly) {
    KernelLog log("/nonexistent");
    log.read();
    log.count_record("6,339,5140900,-;amdgpu 0000:00:05.0: amdgpu: GPU reset(1) succeeded!\n");
    log.count_record(
        "3,340,5140901,-;amdgpu 0000:00:05.0: [drm:amdgpu_ib_test] *ERROR* ring failed\n K=V");
    log.count_record("3,341,5140902,-;usb 1-1: error\n");
    log.count_record("nonsense");
    log.count_record("");
    EXPECT_EQ(log.resets(), 1u);
    EXPECT_EQ(log.errors(), 1u);
    EXPECT_THAT(log.last_error(), HasSubstr("*ERROR* ring failed"));
}

TEST(Modprobe, OnlyTheReleaseWithTheBugGetsTheMask) {
    EXPECT_THAT(modprobe_line("6.12.57+deb13-amd64"),
                HasSubstr("\noptions amdgpu ip_block_mask=0xdf\n"));
    for (const char* release : {"7.0.3", "6.1.0-26-amd64", "6.120.1", "", "x"})
        EXPECT_TRUE(modprobe_line(release).starts_with("# ")) << release;
    EXPECT_EQ(modprobe_line("7.0.3").find("options"), std::string::npos);
}

const std::string kOrigin = "sys/fs/cgroup/user slice/";
const std::string kGroup = kOrigin + "vgpu-agent.frozen/";

/// The files of a group, which the kernel makes with the directory.
void add_group(const FakeTree& tree, const std::string& group) {
    tree.file(group + "cgroup.procs", "");
    tree.file(group + "cgroup.freeze", "0");
}

/// Pid 412 in a cgroup, and the group of this cgroup.
void add_cgroups(const FakeTree& tree) {
    tree.file("sys/fs/cgroup/cgroup.controllers", "");
    tree.file("sys/fs/cgroup/cgroup.procs", "");
    tree.file(kOrigin + "cgroup.procs", "");
    add_group(tree, kGroup);
    tree.file("proc/412/cgroup", "1:x:/y\n0::/user slice\n");
}

TEST(Freezer, AProcessStopsInsideItsCgroupAndASuccessorPutsItBack) {
    const FakeTree tree;
    add_cgroups(tree);
    {
        Freezer freezer(tree.root);
        ASSERT_TRUE(freezer.is_available());
        EXPECT_EQ(freezer.freeze({412}).value_or(9), 1u);
        EXPECT_EQ(line_of(tree.root / kGroup / "cgroup.freeze"), "1");
        EXPECT_EQ(line_of(tree.root / kGroup / "cgroup.procs"), "412");
        EXPECT_EQ(freezer.size(), 1u);
        EXPECT_FALSE(freezer.is_frozen());
        tree.file(kGroup + "cgroup.events", "populated 1\nfrozen 1\n");
        EXPECT_TRUE(freezer.is_frozen());
        tree.file("proc/412/cgroup", "0::/user slice/vgpu-agent.frozen\n");
        EXPECT_EQ(freezer.freeze({412}).value_or(9), 0u) << "it is stopped already";
    }
    Freezer successor(tree.root);
    EXPECT_EQ(successor.size(), 1u);
    successor.thaw();
    EXPECT_EQ(line_of(tree.root / kOrigin / "cgroup.procs"), "412");
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/cgroup.procs"), "");
    EXPECT_EQ(line_of(tree.root / kGroup / "cgroup.freeze"), "0");
}

TEST(Freezer, ProcessesOfTwoCgroupsEachGoBackToTheirOwn) {
    const FakeTree tree;
    add_cgroups(tree);
    add_group(tree, "sys/fs/cgroup/vgpu-agent.frozen/");
    tree.file("proc/413/cgroup", "0::/\n");
    Freezer freezer(tree.root);
    EXPECT_EQ(freezer.freeze({412, 413}).value_or(9), 2u);
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/vgpu-agent.frozen/cgroup.procs"), "413");
    tree.file(kGroup + "cgroup.events", "frozen 1\n");
    EXPECT_FALSE(freezer.is_frozen()) << "the other group is not";
    freezer.thaw();
    EXPECT_EQ(line_of(tree.root / kOrigin / "cgroup.procs"), "412");
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/cgroup.procs"), "413");
}

TEST(Freezer, NobodyIsMovedIntoAGroupThatIsNotFrozen) {
    const FakeTree tree;
    add_cgroups(tree);
    fs::remove(tree.root / kGroup / "cgroup.freeze");
    EXPECT_FALSE(Freezer(tree.root).freeze({412}));
    EXPECT_EQ(line_of(tree.root / kGroup / "cgroup.procs"), "");
}

TEST(Freezer, AProcessThatCannotBeMovedIsAnErrorUnlessItHasEnded) {
    const FakeTree tree;
    add_cgroups(tree);
    fs::remove(tree.root / kGroup / "cgroup.procs");
    fs::create_directory(tree.root / kGroup / "cgroup.procs");
    Freezer freezer(tree.root);
    const auto frozen = freezer.freeze({412});
    ASSERT_FALSE(frozen);
    EXPECT_EQ(frozen.error(),
              "process 412 in cgroup /user slice cannot be stopped: Is a directory");
    EXPECT_EQ(freezer.freeze({999}).value_or(9), 1u) << "the next scan does not find it";
}

TEST(Freezer, AChildBornInAGroupGoesWhereItsParentCameFrom) {
    const FakeTree tree;
    add_cgroups(tree);
    tree.file("proc/414/cgroup", "0::/user slice/vgpu-agent.frozen\n");
    Freezer freezer(tree.root);
    EXPECT_EQ(freezer.freeze({412, 414}).value_or(9), 1u);
    tree.file(kGroup + "cgroup.procs", "0\n414\n");
    EXPECT_FALSE(freezer.is_frozen());
    freezer.thaw();
    EXPECT_EQ(line_of(tree.root / kOrigin / "cgroup.procs"), "414");
}

}  // namespace
}  // namespace vgpu::agent
