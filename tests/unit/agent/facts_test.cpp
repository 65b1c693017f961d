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

TEST(Facts, NothingThereIsEmptyNotAnError) {
    const FakeTree tree;
    const Facts facts(tree.root);
    EXPECT_EQ(facts.vf().pci_address, "");
    EXPECT_EQ(facts.driver().name, "");
    EXPECT_EQ(facts.rocr_version(), "");
    EXPECT_THAT(facts.processes(), IsEmpty());
    EXPECT_THAT(facts.users(), IsEmpty());
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
    EXPECT_THAT(Facts(tree.root).users(), ElementsAre(412, 500, 600));
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

const std::string kProcs = "sys/fs/cgroup/vgpu-agent.frozen/cgroup.procs";

/// The group, and pid 412 in another.
void add_cgroups(const FakeTree& tree) {
    tree.file("sys/fs/cgroup/cgroup.controllers", "");
    tree.file("sys/fs/cgroup/cgroup.procs", "");
    tree.file(kProcs, "");
    tree.file("sys/fs/cgroup/vgpu-agent.frozen/cgroup.freeze", "0");
    tree.file("sys/fs/cgroup/user slice/cgroup.procs", "");
    tree.file("proc/412/cgroup", "1:x:/y\n0::/user slice\n");
}

/// Nobody moved it into the group.
void add_born_in_group(const FakeTree& tree, int pid, int parent) {
    const std::string process = "proc/" + std::to_string(pid);
    tree.file(process + "/cgroup", "0::/vgpu-agent.frozen\n");
    tree.file(process + "/status", "Name:\tmatmul\nPPid:\t" + std::to_string(parent) + "\n");
}

TEST(Freezer, RemembersWhereEachCameFromAlsoForASuccessor) {
    const FakeTree tree;
    add_cgroups(tree);
    {
        Freezer freezer(tree.root, tree.root / "run/frozen");
        ASSERT_TRUE(freezer.is_available());
        ASSERT_TRUE(freezer.freeze({412, 413}));
        EXPECT_EQ(freezer.size(), 1u) << "413 has ended";
        EXPECT_FALSE(freezer.is_frozen());
        tree.file("sys/fs/cgroup/vgpu-agent.frozen/cgroup.events", "populated 1\nfrozen 1\n");
        EXPECT_TRUE(freezer.is_frozen());
    }
    tree.file("proc/412/cgroup", "0::/vgpu-agent.frozen\n");
    Freezer successor(tree.root, tree.root / "run/frozen");
    EXPECT_TRUE(successor.holds(412));
    successor.thaw();
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/user slice/cgroup.procs"), "412");
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/vgpu-agent.frozen/cgroup.freeze"), "0");
    EXPECT_FALSE(fs::exists(tree.root / "run/frozen"));
}

TEST(Freezer, NobodyIsMovedIntoAGroupThatIsNotFrozen) {
    const FakeTree tree;
    add_cgroups(tree);
    fs::remove(tree.root / "sys/fs/cgroup/vgpu-agent.frozen/cgroup.freeze");
    Freezer freezer(tree.root, tree.root / "run/frozen");
    EXPECT_FALSE(freezer.freeze({412}));
    EXPECT_EQ(line_of(tree.root / kProcs), "");
    EXPECT_FALSE(freezer.holds(412));
}

TEST(Freezer, AChildBornInTheGroupGoesWhereItsParentCameFrom) {
    const FakeTree tree;
    add_cgroups(tree);
    add_born_in_group(tree, 414, 412);
    Freezer freezer(tree.root, tree.root / "run/frozen");
    ASSERT_TRUE(freezer.freeze({412, 414}));
    EXPECT_EQ(freezer.size(), 1u) << "nobody comes from the group itself";
    tree.file(kProcs, "414\n");
    EXPECT_FALSE(freezer.is_frozen());
    freezer.thaw();
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/user slice/cgroup.procs"), "414");
}

TEST(Freezer, AGrandchildThatHasNotTheDeviceGoesThereToo) {
    const FakeTree tree;
    add_cgroups(tree);
    add_born_in_group(tree, 414, 412);
    add_born_in_group(tree, 416, 414);
    Freezer freezer(tree.root, tree.root / "run/frozen");
    ASSERT_TRUE(freezer.freeze({412}));
    tree.file(kProcs, "416\n");
    freezer.thaw();
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/user slice/cgroup.procs"), "416");
}

TEST(Freezer, AChildWhoseParentIsOutAlreadyFollowsIt) {
    const FakeTree tree;
    add_cgroups(tree);
    add_born_in_group(tree, 414, 412);
    tree.file("run/frozen", "414 /vgpu-agent.frozen\n");
    tree.file(kProcs, "0\n414\n");
    Freezer freezer(tree.root, tree.root / "run/frozen");
    EXPECT_FALSE(freezer.holds(414)) << "a note that names the group itself";
    freezer.thaw();
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/user slice/cgroup.procs"), "414");
}

TEST(Freezer, AMemberWhoseAncestorsHaveEndedGoesToTheRootNotToInits) {
    const FakeTree tree;
    add_cgroups(tree);
    tree.file("sys/fs/cgroup/init.scope/cgroup.procs", "");
    tree.file("proc/1/cgroup", "0::/init.scope\n");
    add_born_in_group(tree, 418, 1);
    tree.file(kProcs, "418\n");
    Freezer(tree.root, tree.root / "run/frozen").thaw();
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/cgroup.procs"), "418");
    EXPECT_EQ(line_of(tree.root / "sys/fs/cgroup/init.scope/cgroup.procs"), "");
}

}  // namespace
}  // namespace vgpu::agent
