// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/publisher.h"

#include "tests/unit/kubernetes/fake_cluster.h"

#include <gmock/gmock.h>

namespace vgpu::kubernetes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Device> some_devices(int count) {
    std::vector<Device> devices;
    for (int n = 0; n < count; ++n)
        devices.push_back({.name = fmt::format("gpu0-vf{}", n),
                           .attributes = {{"profile", "small"}},
                           .capacity = {{"memory", "64Mi"}},
                           .taints = {}});
    return devices;
}

std::vector<Device> lost(std::vector<Device> devices) {
    for (Device& device : devices)
        device.taints = {{.key = "vgpu.org/gpu", .value = "device-lost", .effect = "NoExecute"}};
    return devices;
}

class KubernetesPublisher : public ::testing::Test {
protected:
    [[nodiscard]] std::vector<int> generations() const {
        std::vector<int> all;
        for (const auto& [name, slice] : api.slices)
            all.push_back(slice["spec"]["pool"]["generation"]);
        return all;
    }
    json& first() { return api.slices.begin()->second; }

    FakeApi api;
    Publisher publisher{api, kNode};
};

TEST_F(KubernetesPublisher, PublishesOnePoolForTheNode) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    ASSERT_THAT(api.slices, SizeIs(1));
    const json& spec = first()["spec"];
    EXPECT_EQ(first()["metadata"]["name"], "worker-1-gpu.vgpu.org-0");
    EXPECT_EQ(spec["driver"], "gpu.vgpu.org");
    EXPECT_EQ(spec["nodeName"], kNode);
    EXPECT_EQ(spec["pool"],
              json::parse(R"({"name":"worker-1","generation":1,"resourceSliceCount":1})"));
    EXPECT_THAT(spec["devices"], SizeIs(3));
}

TEST_F(KubernetesPublisher, WritesNothingIfNothingChanged) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    EXPECT_EQ(api.writes, 1);
    Publisher restarted(api, kNode);
    ASSERT_TRUE(restarted.publish(some_devices(3)));
    EXPECT_EQ(api.writes, 1);
    EXPECT_TRUE(restarted.knows(some_devices(3)));
}

TEST_F(KubernetesPublisher, EachChangeIsANewGeneration) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    ASSERT_TRUE(publisher.publish(some_devices(2)));
    EXPECT_THAT(generations(), ElementsAre(2));
    ASSERT_TRUE(publisher.publish(lost(some_devices(2))));
    EXPECT_THAT(generations(), ElementsAre(3));
    ASSERT_TRUE(publisher.publish({}));
    EXPECT_THAT(generations(), ElementsAre(4));
    EXPECT_THAT(first()["spec"]["devices"], IsEmpty());
}

TEST_F(KubernetesPublisher, AHostWithManyVfsHasSeveralSlicesOfOneGeneration) {
    ASSERT_TRUE(publisher.publish(some_devices(300)));
    ASSERT_THAT(api.slices, SizeIs(3));
    EXPECT_THAT(generations(), ElementsAre(1, 1, 1));
    for (const auto& [name, slice] : api.slices) {
        EXPECT_EQ(slice["spec"]["pool"]["resourceSliceCount"], 3);
        EXPECT_LE(slice["spec"]["devices"].size(), kMaxDevices);
    }
}

TEST_F(KubernetesPublisher, DevicesWithTaintsNeedMoreSlices) {
    ASSERT_TRUE(publisher.publish(lost(some_devices(128))));
    EXPECT_THAT(generations(), ElementsAre(1, 1));
    ASSERT_TRUE(publisher.publish(some_devices(128)));
    EXPECT_THAT(generations(), ElementsAre(2));
}

TEST_F(KubernetesPublisher, ReadsAgainIfSomebodyElseWrote) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    int meddled = 0;
    api.before_call = [&](Method method) {
        if (method == Method::Put && meddled++ < 2) api.touch(first());
    };
    ASSERT_TRUE(publisher.publish(some_devices(2)));
    EXPECT_EQ(meddled, 3);
    EXPECT_THAT(first()["spec"]["devices"], SizeIs(2));
}

TEST_F(KubernetesPublisher, GivesUpIfSomebodyElseAlwaysWrites) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    api.before_call = [&](Method method) {
        if (method == Method::Put) api.touch(first());
    };
    const auto done = publisher.publish(some_devices(2));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().cause, HasSubstr("status 409"));
    EXPECT_FALSE(publisher.knows(some_devices(2)));
}

TEST_F(KubernetesPublisher, MakesASliceAgainThatSomebodyRemoved) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    api.slices.clear();
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    EXPECT_THAT(api.slices, SizeIs(1));
}

TEST_F(KubernetesPublisher, ANodeThatIsRegisteredAgainOwnsTheSlices) {
    api.node_uid = "old";
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    api.node_uid = "new";
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    EXPECT_EQ(first()["metadata"]["ownerReferences"][0]["uid"], "new");
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    EXPECT_EQ(api.writes, 2);
}

TEST_F(KubernetesPublisher, SlicesGetTheirOwnerAsSoonAsTheNodeCanBeRead) {
    api.node_status = 403;
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    EXPECT_FALSE(first()["metadata"].contains("ownerReferences"));
    api.node_status = 200;
    api.node_uid = "late";
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    EXPECT_EQ(first()["metadata"]["ownerReferences"][0]["uid"], "late");
    api.node_status = 403;
    ASSERT_TRUE(publisher.publish(some_devices(2)));
    EXPECT_EQ(first()["metadata"]["ownerReferences"][0]["uid"], "late");
}

TEST_F(KubernetesPublisher, WithoutItsNodeNothingIsPublishedUntilTheNodeIsBack) {
    ASSERT_TRUE(publisher.publish(some_devices(3)));
    api.node_status = 404;
    api.slices.clear();
    const auto done = publisher.publish(some_devices(2));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().id, ErrorId::System);
    EXPECT_THAT(done.error().cause, HasSubstr("Kubernetes has no node 'worker-1'"));
    EXPECT_THAT(api.slices, IsEmpty());
    EXPECT_FALSE(publisher.knows(some_devices(2)));
    api.node_status = 200;
    api.node_uid = "again";
    ASSERT_TRUE(publisher.publish(some_devices(2)));
    EXPECT_EQ(first()["metadata"]["ownerReferences"][0]["uid"], "again");
}

TEST_F(KubernetesPublisher, DoesNotWriteForEverWhatTheServerDrops) {
    api.drops_taints = true;
    ASSERT_TRUE(publisher.publish(lost(some_devices(1))));
    ASSERT_TRUE(publisher.publish(lost(some_devices(1))));
    EXPECT_EQ(api.writes, 1);
}

TEST_F(KubernetesPublisher, LeavesSlicesOfOtherNodesAndDriversAlone) {
    Publisher other(api, "worker-2");
    ASSERT_TRUE(other.publish(some_devices(2)));
    ASSERT_TRUE(publisher.publish(some_devices(1)));
    ASSERT_TRUE(publisher.withdraw());
    ASSERT_THAT(api.slices, SizeIs(1));
    EXPECT_EQ(first()["spec"]["nodeName"], "worker-2");
}

TEST_F(KubernetesPublisher, SaysWhatFailed) {
    const auto cause = [&] { return publisher.publish(some_devices(1)).error().cause; };
    api.outage = "api.example:6443: timed out";
    EXPECT_EQ(cause(), "api.example:6443: timed out");
    api.outage.clear();
    api.canned = Response{.status = 404, .body = "404 page not found"};
    EXPECT_THAT(cause(), HasSubstr("needs Kubernetes 1.34 or later"));
    api.canned = Response{.status = 200, .body = R"({"kind":"ResourceSliceList","items":[{)"};
    EXPECT_THAT(cause(), HasSubstr("is not JSON"));
    api.canned = Response{.status = 200, .body = R"({"kind":"Status"})"};
    EXPECT_THAT(cause(), HasSubstr("answers with a 'Status'"));
    api.canned =
        Response{.status = 200, .body = R"({"kind":"ResourceSliceList","items":[{"spec":{"driver":
                                  "gpu.vgpu.org","nodeName":"worker-1","pool":7}}]})"};
    EXPECT_THAT(cause(), HasSubstr("cannot be read"));
    EXPECT_EQ(api.writes, 0);
}

}  // namespace
}  // namespace vgpu::kubernetes::testing
