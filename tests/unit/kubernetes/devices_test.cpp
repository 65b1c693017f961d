// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/devices.h"

#include "daemon/engines/kubernetes/names.h"
#include "tests/unit/kubernetes/fake_cluster.h"

#include <gmock/gmock.h>

namespace vgpu::kubernetes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kCluster = "lab";

std::vector<Device> devices_on(const FakeVgpud& vgpud) {
    return devices_of(vgpud.host, kCluster, FakePci()).value();
}

TEST(KubernetesNames, DevicesHaveNamesThatKubernetesAllows) {
    EXPECT_EQ(device_name_of("gpu0/vf3"), "gpu0-vf3");
    EXPECT_EQ(device_name_of("Card.A/vf12"), "card-a-vf12");
    EXPECT_EQ(variable_of("VGPU_SOCKET", "gpu0-vf3"), "VGPU_SOCKET_GPU0_VF3");
}

TEST(KubernetesNames, OnlyAnOwnerOfThisClusterHasAUid) {
    EXPECT_EQ(uid_of(owner_of(kCluster, kUid), kCluster), kUid);
    EXPECT_EQ(uid_of(owner_of("other", kUid), kCluster), std::nullopt);
    EXPECT_EQ(uid_of("slurm:lab:17.0", kCluster), std::nullopt);
    EXPECT_EQ(uid_of("k8s:lab:../../etc.0", kCluster), std::nullopt);
}

TEST(KubernetesNames, AnOwnerFitsIntoTheLimitOfEngineOwners) {
    EXPECT_LE(owner_of(std::string(29, 'c'), kUid).size(), kMaxOwner);
}

TEST(KubernetesDevices, AVfIsADeviceWithItsProfileShareAndMemory) {
    const Device device = devices_on(FakeVgpud()).front();
    EXPECT_EQ(device.name, "gpu0-vf1");
    EXPECT_EQ(device.attributes.at("profile"), Attribute("small"));
    EXPECT_EQ(device.attributes.at("gpu"), Attribute("gpu0"));
    EXPECT_EQ(device.attributes.at("weight"), Attribute(100));
    EXPECT_EQ(device.attributes.at("minPct"), Attribute(12));
    EXPECT_EQ(device.capacity.at("memory"), "64Mi");
    EXPECT_THAT(device.taints, IsEmpty());
}

TEST(KubernetesDevices, NumbersThatAreNotKnownAreLeftOut) {
    FakeVgpud vgpud;
    vgpud.host[0].vram_bytes.reset();
    vgpud.host[0].weight.reset();
    vgpud.host[0].min_pct.reset();
    const Device device = devices_on(vgpud).front();
    EXPECT_FALSE(device.attributes.contains("weight"));
    EXPECT_FALSE(device.attributes.contains("minPct"));
    EXPECT_THAT(device.capacity, IsEmpty());
}

TEST(KubernetesDevices, OnlyAPciFunctionHasAnAddressAndANumaNode) {
    FakeVgpud vgpud;
    vgpud.host[1].socket.clear();
    vgpud.host[1].address = "0000:03:00.1";
    const auto devices = devices_on(vgpud);
    EXPECT_FALSE(devices[0].attributes.contains("resource.kubernetes.io/pciBusID"));
    EXPECT_EQ(devices[1].attributes.at("resource.kubernetes.io/pciBusID"),
              Attribute("0000:03:00.1"));
    EXPECT_EQ(devices[1].attributes.at("numaNode"), Attribute(1));
}

TEST(KubernetesDevices, VfsOfOthersAndVfsOutOfServiceAreNoDevices) {
    FakeVgpud vgpud;
    vgpud.host[0].owner = "libvirt:" + kUid;
    vgpud.host[1].state = "quarantined";
    vgpud.host[2].owner = owner_of(kCluster, kUid);
    vgpud.host[3].is_open = true;
    EXPECT_THAT(devices_on(vgpud), ElementsAre(::testing::Field(&Device::name, "gpu0-vf3")));
}

TEST(KubernetesDevices, VfsThatVgpudRefusesToNewOwnersAreNoDevices) {
    FakeVgpud vgpud;
    vgpud.host[0].assignment_mode = "none";
    vgpud.host[1].state = "scrubbing";
    vgpud.host[1].condition = "its VRAM could not be scrubbed";
    vgpud.host[2].state = "paused";
    vgpud.host[3].state = "scrubbing";
    EXPECT_THAT(devices_on(vgpud), ElementsAre(::testing::Field(&Device::name, "gpu0-vf4")));
    for (HostVf& vf : vgpud.host) vf.owner = owner_of(kCluster, kUid);
    EXPECT_EQ(devices_on(vgpud).size(), 4u);
}

TEST(KubernetesDevices, AVfIsADeviceAgainWhenTheLeaseOfItsOwnerIsOver) {
    FakeVgpud vgpud;
    for (HostVf& vf : vgpud.host) vf.owner = "libvirt:" + kUid;
    EXPECT_THAT(devices_on(vgpud), IsEmpty());
    for (HostVf& vf : vgpud.host) vf.is_lease_over = true;
    EXPECT_EQ(devices_on(vgpud).size(), 4u);
    for (HostVf& vf : vgpud.host) vf.is_open = true;
    EXPECT_THAT(devices_on(vgpud), IsEmpty()) << "vgpud does not take an open VF away";
}

TEST(KubernetesDevices, APciFunctionOfModeNoneIsADevice) {
    FakeVgpud vgpud;
    vgpud.host[0].assignment_mode = "none";
    vgpud.host[0].socket.clear();
    EXPECT_EQ(devices_on(vgpud).size(), 4u);
}

TEST(KubernetesDevices, OnlyALostGpuEndsPods) {
    FakeVgpud vgpud;
    for (const auto& [state, effect] :
         {std::pair{"device-lost", "NoExecute"}, std::pair{"failed", "NoExecute"},
          std::pair{"pf-lost", "NoSchedule"}, std::pair{"starting", "NoSchedule"},
          std::pair{"read-only", "NoSchedule"}}) {
        vgpud.host[0].gpu_state = state;
        EXPECT_THAT(devices_on(vgpud)[0].taints,
                    ElementsAre(Taint{.key = "vgpu.org/gpu", .value = state, .effect = effect}));
    }
}

TEST(KubernetesDevices, TwoGpusWithOneDeviceNameAreRefused) {
    FakeVgpud vgpud;
    vgpud.host[0].target = "gpu.0/vf1";
    vgpud.host[1].target = "gpu-0/vf1";
    const auto devices = devices_of(vgpud.host, kCluster, FakePci());
    ASSERT_FALSE(devices);
    EXPECT_THAT(devices.error().cause, HasSubstr("gpu-0/vf1 cannot be the device 'gpu-0-vf1'"));
}

TEST(KubernetesDevices, QuantitiesAreWrittenAsKubernetesWritesThem) {
    EXPECT_EQ(quantity_of(0), "0");
    EXPECT_EQ(quantity_of(1000), "1000");
    EXPECT_EQ(quantity_of(64ull << 20), "64Mi");
    EXPECT_EQ(quantity_of(1024ull << 20), "1Gi");
    EXPECT_EQ(quantity_of(1536ull << 20), "1536Mi");
}

TEST(KubernetesDevices, ADeviceThatIsReadBackIsTheSame) {
    FakeVgpud vgpud;
    vgpud.host[0].gpu_state = "device-lost";
    const Device device = devices_on(vgpud)[0];
    json written = json_of(device);
    written["taints"][0]["timeAdded"] = "2026-01-01T00:00:00Z";
    EXPECT_EQ(device_of(written), device);
}

}  // namespace
}  // namespace vgpu::kubernetes::testing
