// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/allocations.h"

#include "tests/unit/kubernetes/fake_cluster.h"

#include <gmock/gmock.h>

namespace vgpu::kubernetes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kOwner2 = "k8s:lab:device-gpu0-vf2.0";

class KubernetesAllocations : public ::testing::Test {
protected:
    [[nodiscard]] std::vector<std::string> owners() const {
        std::vector<std::string> all;
        for (const HostVf& vf : vgpud.host) all.push_back(vf.owner);
        return all;
    }
    [[nodiscard]] std::vector<bool> health() const {
        std::vector<bool> all;
        const auto devices = plugin_devices(vgpud.host, "lab", pci);
        for (const PluginDevice& device : devices.value().at("small"))
            all.push_back(device.is_healthy);
        return all;
    }

    FakeVgpud vgpud;
    FakePci pci;
    Allocations allocations{vgpud, pci, "lab", SocketUser{}};
};

TEST_F(KubernetesAllocations, AContainerGetsTheVfsOfItsDevices) {
    const auto edits = allocations.allocate({"gpu0-vf2", "gpu0-vf3"});
    ASSERT_TRUE(edits) << edits.error().cause;
    EXPECT_THAT(edits->variables,
                ElementsAre(Pair("VGPU_SOCKET_GPU0_VF2", "/run/vgpu-vf/gpu0-vf2.sock"),
                            Pair("VGPU_SOCKET_GPU0_VF3", "/run/vgpu-vf/gpu0-vf3.sock")));
    EXPECT_EQ(edits->mounts.size(), 2u);
    EXPECT_THAT(owners(), ElementsAre("", kOwner2, "k8s:lab:device-gpu0-vf3.0", ""));
}

TEST_F(KubernetesAllocations, TheNextContainerGetsADeviceScrubbed) {
    ASSERT_TRUE(allocations.allocate({"gpu0-vf2"}));
    ASSERT_TRUE(allocations.allocate({"gpu0-vf2"}));
    EXPECT_EQ(vgpud.unassigned, std::vector<std::string>{kOwner2});
    EXPECT_THAT(owners(), ElementsAre("", kOwner2, "", ""));
}

TEST_F(KubernetesAllocations, ADeviceThatIsStillOpenIsNotTakenAway) {
    ASSERT_TRUE(allocations.allocate({"gpu0-vf2"}));
    vgpud.host[1].is_open = true;
    EXPECT_THAT(allocations.allocate({"gpu0-vf2"}).error().cause,
                HasSubstr("still has gpu0-vf2 open"));
    EXPECT_THAT(owners(), ElementsAre("", kOwner2, "", ""));
}

TEST_F(KubernetesAllocations, AContainerGetsAllDevicesOrNone) {
    vgpud.host[2].owner = "libvirt:vm1";
    EXPECT_THAT(allocations.allocate({"gpu0-vf2", "gpu0-vf3"}).error().cause,
                HasSubstr("belongs to 'libvirt:vm1'"));
    EXPECT_THAT(allocations.allocate({"gpu0-vf2", "gpu0-vf9"}).error().cause,
                HasSubstr("this host has no device gpu0-vf9"));
    EXPECT_THAT(owners(), ElementsAre("", "", "libvirt:vm1", ""));
}

TEST_F(KubernetesAllocations, AClusterAndAGpuWhoseNamesAreTooLongTogetherAreRefused) {
    const std::string cluster(29, 'c');
    vgpud.host[0].target = std::string(25, 'g') + "/vf1";
    EXPECT_TRUE(plugin_devices(vgpud.host, cluster, pci)) << "72 bytes";
    vgpud.host[0].target = std::string(26, 'g') + "/vf1";
    const auto devices = plugin_devices(vgpud.host, cluster, pci);
    ASSERT_FALSE(devices);
    EXPECT_EQ(devices.error().id, ErrorId::BadConfiguration);
    EXPECT_THAT(devices.error().cause, HasSubstr("would have 73 bytes, but vgpud allows 72"));
}

TEST_F(KubernetesAllocations, AVfThatCannotBeGivenIsUnhealthy) {
    vgpud.host[0].owner = "libvirt:vm1";
    vgpud.host[1].owner = kOwner2;
    vgpud.host[1].is_open = true;
    vgpud.host[2].state = "quarantined";
    EXPECT_THAT(health(), ElementsAre(false, true, false, true));
    vgpud.host[3].gpu_state = "pf-lost";
    EXPECT_THAT(health(), ElementsAre(false, true, false, false));
    vgpud.host[3].gpu_state = "read-only";
    vgpud.host[0].is_lease_over = true;
    EXPECT_THAT(health(), ElementsAre(true, true, false, false));
}

TEST_F(KubernetesAllocations, AVfThatVgpudRefusesIsUnhealthy) {
    vgpud.host[0].assignment_mode = "none";
    vgpud.host[1].state = "scrubbing";
    vgpud.host[1].condition = "its VRAM could not be scrubbed";
    vgpud.host[2].state = "paused";
    vgpud.host[3].state = "scrubbing";
    EXPECT_THAT(health(), ElementsAre(false, false, false, true));
}

TEST_F(KubernetesAllocations, AVfWithoutAProfileIsNoDevice) {
    for (HostVf& vf : vgpud.host) vf.profile.clear();
    EXPECT_TRUE(plugin_devices(vgpud.host, "lab", pci).value().empty());
}

TEST_F(KubernetesAllocations, TwoVfsCannotBeTheSameDevice) {
    vgpud.host[1].target = "GPU0/vf1";
    const auto devices = plugin_devices(vgpud.host, "lab", pci);
    ASSERT_FALSE(devices);
    EXPECT_THAT(devices.error().cause, HasSubstr("GPU0/vf1 cannot be the device 'gpu0-vf1'"));
}

}  // namespace
}  // namespace vgpu::kubernetes::testing
