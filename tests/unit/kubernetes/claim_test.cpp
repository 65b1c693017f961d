// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/claim.h"

#include "tests/unit/kubernetes/fake_cluster.h"

#include <gmock/gmock.h>

namespace vgpu::kubernetes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ClaimReference kClaim{.name_space = "default", .name = "train", .uid = kUid};

Response ok(const json& body) {
    return {.status = 200, .body = body.dump()};
}

std::string cause_of(const Response& response) {
    const auto claim = claim_in(response, kClaim, kNode);
    return claim ? "" : claim.error().cause;
}

TEST(KubernetesClaim, HasTheDevicesOfThisDriverInTheirOrder) {
    json object = claim_object(kClaim, {"gpu0-vf2", "gpu0-vf1"});
    json& results = object["status"]["allocation"]["devices"]["results"];
    results.push_back({{"driver", "nic.example.com"}, {"pool", "x"}, {"device", "eth1"}});
    results[1]["request"] = "gpu/large";
    const auto claim = claim_in(ok(object), kClaim, kNode);
    ASSERT_TRUE(claim);
    EXPECT_THAT(claim->devices,
                ElementsAre(AllocatedDevice{.request = "gpu", .device = "gpu0-vf2"},
                            AllocatedDevice{.request = "gpu/large", .device = "gpu0-vf1"}));
    EXPECT_EQ(base_request("gpu/large"), "gpu");
}

TEST(KubernetesClaim, ThatIsGoneIsNamed) {
    const Response gone{.status = 404,
                        .body = status_object(404, "NotFound", "resourceclaims", "train").dump()};
    EXPECT_EQ(cause_of(gone), "ResourceClaim default/train: there is no such claim (any more)");
}

TEST(KubernetesClaim, WithAnotherUidIsALaterClaim) {
    ClaimReference later = kClaim;
    later.uid = "00000000-0000-0000-0000-000000000001";
    EXPECT_THAT(cause_of(ok(claim_object(later, {"gpu0-vf1"}))),
                HasSubstr("was deleted and recreated"));
}

TEST(KubernetesClaim, WithoutADeviceHereIsRefused) {
    EXPECT_THAT(cause_of(ok(claim_object(kClaim, {}))), HasSubstr("no device of the driver"));
    json object = claim_object(kClaim, {"gpu0-vf1"});
    object["status"]["allocation"]["devices"]["results"][0]["pool"] = "worker-2";
    EXPECT_THAT(cause_of(ok(object)), HasSubstr("in pool 'worker-2', but this host is pool"));
    object["status"].erase("allocation");
    EXPECT_THAT(cause_of(ok(object)), HasSubstr("no device of the driver"));
}

TEST(KubernetesClaim, ThatAsksForWhatAVfLacksIsRefused) {
    json object = claim_object(kClaim, {"gpu0-vf1"});
    json& devices = object["status"]["allocation"]["devices"];
    devices["config"] = {{{"opaque", {{"driver", "gpu.vgpu.org"}, {"parameters", {{"a", 1}}}}}}};
    EXPECT_THAT(cause_of(ok(object)), HasSubstr("which accepts none"));
    devices.erase("config");
    devices["results"][0]["adminAccess"] = true;
    EXPECT_THAT(cause_of(ok(object)), HasSubstr("administrative access"));
}

TEST(KubernetesClaim, NamesThatAreNoPartsOfPathsAreRefused) {
    json object = claim_object(kClaim, {"../../etc/passwd"});
    EXPECT_THAT(cause_of(ok(object)), HasSubstr("not a name that Kubernetes allows"));
    object = claim_object(kClaim, {"gpu0-vf1"});
    object["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] = "a/../b";
    EXPECT_THAT(cause_of(ok(object)), HasSubstr("is not a label"));
    EXPECT_TRUE(check_reference(kClaim));
    EXPECT_FALSE(check_reference({.name_space = "..", .name = "train", .uid = kUid}));
    EXPECT_FALSE(check_reference({.name_space = "default", .name = "train/x", .uid = kUid}));
    EXPECT_FALSE(check_reference({.name_space = "default", .name = "train", .uid = ""}));
}

TEST(KubernetesClaim, AnyOtherAnswerSaysNothingOfItsExistence) {
    const json claim = claim_object(kClaim, {"gpu0-vf1"});
    const std::string whole = claim.dump();
    EXPECT_EQ(existence_in(ok(claim), kClaim), Existence::Exists);
    for (const Response& answer :
         {Response{.status = 404, .body = "404 page not found\n"},
          Response{.status = 404, .body = status_object(404, "NotFound", "pods", "train").dump()},
          Response{.status = 404,
          .body = status_object(404, "NotFound", "resourceclaims", "other").dump()},
          Response{.status = 500, .body = "train"}, Response{.status = 401, .body = ""},
          Response{.status = 200, .body = whole.substr(0, whole.size() / 2)},
          Response{.status = 200, .body = "[]"}, Response{.status = 200, .body = "{}"},
          Response{.status = 200, .body = R"({"kind":"ResourceClaim","metadata":7})"}})
        EXPECT_EQ(existence_in(answer, kClaim), Existence::Unknown) << answer.body;
}

TEST(KubernetesClaim, AnAnswerInPartsIsAnErrorThatQuotesIt) {
    EXPECT_THAT(cause_of({.status = 200, .body = R"({"kind":"Resou)"}),
                HasSubstr(R"(does not show it (status 200: {"kind":"Resou))"));
    EXPECT_THAT(
        cause_of({.status = 403,
                  .body = status_object(403, "Forbidden", "resourceclaims", "train").dump()}),
        HasSubstr(R"(status 403: resourceclaims "train": Forbidden)"));
}

}  // namespace
}  // namespace vgpu::kubernetes::testing
