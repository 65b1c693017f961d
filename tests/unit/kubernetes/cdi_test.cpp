// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/cdi.h"

#include "tests/unit/kubernetes/fake_cluster.h"

#include <gmock/gmock.h>

namespace vgpu::kubernetes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A claim with gpu0-vf1, a softgpu VF, and gpu0-vf2, a PCI function, both of request "gpu".
struct TwoVfs {
    TwoVfs() {
        claim.reference = {.name_space = "default", .name = "train", .uid = kUid};
        const FakeVgpud vgpud;
        for (int n = 1; n <= 2; ++n)
            devices.push_back(
                {.allocated = {.request = "gpu", .device = fmt::format("gpu0-vf{}", n)},
                 .vf = vgpud.host[static_cast<std::size_t>(n - 1)]});
        devices[1].vf.socket.clear();
        devices[1].vf.address = "0000:03:00.1";
    }

    [[nodiscard]] Result<json> spec() const {
        return cdi_spec(claim, devices, {{"gpu", "/state/gpu-metadata.json"}}, FakePci());
    }

    Claim claim;
    std::vector<PreparedDevice> devices;
};

TEST(KubernetesCdi, ASoftgpuVfIsASocketAndItsPathInTheEnvironment) {
    const json edits = TwoVfs().spec().value()["devices"][0]["containerEdits"];
    EXPECT_THAT(edits["env"], ElementsAre("VGPU_SOCKET_GPU0_VF1=/run/vgpu-vf/gpu0-vf1.sock"));
    EXPECT_EQ(edits["mounts"][0]["hostPath"], "/run/vgpu/gpu0/vf1.sock");
    EXPECT_EQ(edits["mounts"][0]["containerPath"], "/run/vgpu-vf/gpu0-vf1.sock");
    EXPECT_FALSE(edits.contains("deviceNodes"));
}

TEST(KubernetesCdi, APciFunctionIsItsVfioGroup) {
    const json edits = TwoVfs().spec().value()["devices"][1]["containerEdits"];
    EXPECT_THAT(edits["env"], ElementsAre("VGPU_PCI_GPU0_VF2=0000:03:00.1"));
    EXPECT_EQ(edits["deviceNodes"], json::parse(R"([{"path":"/dev/vfio/vfio"},
                                                    {"path":"/dev/vfio/17"}])"));
}

TEST(KubernetesCdi, AFunctionWithoutAnIommuGroupIsRefused) {
    TwoVfs two;
    two.devices[1].vf.address = "0000:03:00.2";
    const auto spec = two.spec();
    ASSERT_FALSE(spec);
    EXPECT_THAT(spec.error().cause, HasSubstr("0000:03:00.2 has no IOMMU group"));
}

TEST(KubernetesCdi, EveryIdOfADeviceIsInTheSpecificationOnce) {
    const TwoVfs two;
    EXPECT_THAT(
        cdi_ids(kUid, two.devices, 0),
        ElementsAre("vgpu.org/vf=" + kUid + "-gpu0-vf1", "vgpu.org/vf=" + kUid + "-metadata-gpu"));
    EXPECT_THAT(cdi_ids(kUid, two.devices, 1), ElementsAre("vgpu.org/vf=" + kUid + "-gpu0-vf2"));
    const json spec = two.spec().value();
    EXPECT_EQ(spec["kind"], "vgpu.org/vf");
    std::vector<std::string> names;
    for (const json& device : spec["devices"]) names.push_back(device["name"]);
    EXPECT_THAT(names, ElementsAre(kUid + "-gpu0-vf1", kUid + "-gpu0-vf2", kUid + "-metadata-gpu"));
}

TEST(KubernetesCdi, MetadataNameTheFunctionAsKubeVirtReadsIt) {
    TwoVfs two;
    two.claim.pod_claim = "vgpu";
    const json file = metadata_of(two.claim, two.devices, kNode, FakePci()).at("gpu");
    EXPECT_EQ(file["apiVersion"], "metadata.resource.k8s.io/v1alpha1");
    EXPECT_EQ(file["kind"], "DeviceMetadata");
    EXPECT_EQ(file["podClaimName"], "vgpu");
    EXPECT_EQ(file["metadata"]["uid"], kUid);
    const json device = file["requests"][0]["devices"][1];
    EXPECT_EQ(device["pool"], kNode);
    EXPECT_EQ(device["name"], "gpu0-vf2");
    EXPECT_EQ(device["attributes"]["resource.kubernetes.io/pciBusID"]["string"], "0000:03:00.1");
}

TEST(KubernetesCdi, MetadataAreWhereTheProtocolPutsThem) {
    TwoVfs two;
    const std::string directory = "/var/run/kubernetes.io/dra-device-attributes/";
    EXPECT_EQ(metadata_path(two.claim, "gpu"),
              directory + "resourceclaims/train/gpu/gpu.vgpu.org-metadata.json");
    two.claim.pod_claim = "vgpu";
    EXPECT_EQ(metadata_path(two.claim, "gpu"),
              directory + "resourceclaimtemplates/vgpu/gpu/gpu.vgpu.org-metadata.json");
}

TEST(KubernetesCdi, AnAlternativeOfARequestIsNamedInItsMetadata) {
    TwoVfs two;
    two.devices.pop_back();
    two.devices[0].allocated.request = "gpu/small";
    const auto files = metadata_of(two.claim, two.devices, kNode, FakePci());
    EXPECT_EQ(files.at("gpu")["requests"][0]["name"], "gpu/small");
}

}  // namespace
}  // namespace vgpu::kubernetes::testing
