// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/claims.h"

#include "tests/unit/kubernetes/fake_cluster.h"
#include "text/whole_file.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace vgpu::kubernetes::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ClaimReference kClaim{.name_space = "default", .name = "train", .uid = kUid};
const std::string kOwner = "k8s:lab:" + kUid + ".0";

class KubernetesClaims : public ::testing::Test {
protected:
    KubernetesClaims() { api.add(kClaim, {"gpu0-vf2", "gpu0-vf3"}); }
    ~KubernetesClaims() override { fs::remove_all(root); }

    [[nodiscard]] std::string cdi_file() const {
        return root + "/cdi/vgpu.org-vf-" + kUid + ".json";
    }
    [[nodiscard]] std::vector<std::string> owners() const {
        std::vector<std::string> all;
        for (const HostVf& vf : vgpud.host) all.push_back(vf.owner);
        return all;
    }
    [[nodiscard]] std::vector<std::string> files() const {
        std::vector<std::string> all;
        for (const auto& entry : fs::recursive_directory_iterator(root))
            if (entry.is_regular_file()) all.push_back(entry.path().filename().string());
        std::ranges::sort(all);
        return all;
    }
    void expect_claimed() const { EXPECT_THAT(owners(), ElementsAre("", kOwner, kOwner, "")); }

    std::string root = fs::temp_directory_path() / fmt::format("vgpu-dra-test.{}", ::getpid());
    FakeApi api;
    FakeVgpud vgpud;
    FakePci pci;
    Claims claims{api, vgpud, pci, ClaimFiles(root + "/state", root + "/cdi"),
                  Claims::Host{.node = kNode, .cluster = "lab", .user = {}}};
};

TEST_F(KubernetesClaims, PrepareGivesTheVfsThatTheAllocationNames) {
    const auto devices = claims.prepare(kClaim);
    ASSERT_TRUE(devices) << devices.error().cause;
    ASSERT_THAT(*devices, SizeIs(2));
    EXPECT_EQ(devices->front().vf.name, "small-2");
    expect_claimed();
    const json spec = json::parse(text::whole_file(cdi_file()).value());
    EXPECT_THAT(spec["devices"], SizeIs(3));
    const std::string metadata = spec["devices"][2]["containerEdits"]["mounts"][0]["hostPath"];
    EXPECT_EQ(json::parse(text::whole_file(metadata).value())["metadata"]["uid"], kUid);
}

TEST_F(KubernetesClaims, PrepareAndUnprepareMayBeRepeated) {
    ASSERT_TRUE(claims.prepare(kClaim));
    const auto before = files();
    ASSERT_TRUE(claims.prepare(kClaim));
    EXPECT_EQ(files(), before);
    expect_claimed();
    ASSERT_TRUE(claims.unprepare(kClaim));
    ASSERT_TRUE(claims.unprepare(kClaim));
    EXPECT_THAT(owners(), ElementsAre("", "", "", ""));
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(KubernetesClaims, AClaimThatVanishedIsAnErrorAndClaimsNothing) {
    api.claims.clear();
    const auto devices = claims.prepare(kClaim);
    ASSERT_FALSE(devices);
    EXPECT_THAT(devices.error().cause, HasSubstr("default/train: there is no such claim"));
    EXPECT_THAT(owners(), ElementsAre("", "", "", ""));
}

TEST_F(KubernetesClaims, ADeviceThatIsGoneOrTakenIsNamed) {
    vgpud.host[1].owner = "libvirt:vm1";
    EXPECT_THAT(claims.prepare(kClaim).error().cause, HasSubstr("belongs to 'libvirt:vm1'"));
    vgpud.host.erase(vgpud.host.begin() + 1);
    EXPECT_THAT(claims.prepare(kClaim).error().cause,
                HasSubstr("this host has no device gpu0-vf2"));
}

TEST_F(KubernetesClaims, UnprepareNeedsNoApiServer) {
    ASSERT_TRUE(claims.prepare(kClaim));
    api.outage = "no route to host";
    EXPECT_TRUE(claims.unprepare(kClaim));
    EXPECT_THAT(owners(), ElementsAre("", "", "", ""));
}

TEST_F(KubernetesClaims, UnprepareWithoutVgpudFailsAndKeepsTheRecord) {
    ASSERT_TRUE(claims.prepare(kClaim));
    vgpud.is_away = true;
    EXPECT_FALSE(claims.unprepare(kClaim));
    vgpud.is_away = false;
    api.claims.clear();
    EXPECT_THAT(claims.reconcile(), ElementsAre(HasSubstr("ended the claim of default/train")));
    EXPECT_THAT(owners(), ElementsAre("", "", "", ""));
}

TEST_F(KubernetesClaims, ReconcileEndsAClaimThatIsGone) {
    ASSERT_TRUE(claims.prepare(kClaim));
    EXPECT_THAT(claims.reconcile(), IsEmpty());
    expect_claimed();
    api.claims.clear();
    EXPECT_THAT(claims.reconcile(), SizeIs(1));
    EXPECT_THAT(owners(), ElementsAre("", "", "", ""));
    EXPECT_THAT(files(), IsEmpty());
}

TEST_F(KubernetesClaims, ReconcileEndsAClaimWhoseNameALaterClaimHas) {
    ASSERT_TRUE(claims.prepare(kClaim));
    ClaimReference later = kClaim;
    later.uid = "00000000-0000-0000-0000-000000000001";
    api.add(later, {"gpu0-vf1"});
    ASSERT_TRUE(claims.prepare(later));
    EXPECT_THAT(claims.reconcile(), SizeIs(1));
    EXPECT_THAT(owners(), ElementsAre("k8s:lab:" + later.uid + ".0", "", "", ""));
}

TEST_F(KubernetesClaims, ReconcileEndsNothingWithoutAnAnswerThatNamesTheClaim) {
    ASSERT_TRUE(claims.prepare(kClaim));
    api.outage = "timed out";
    EXPECT_THAT(claims.reconcile(), ElementsAre("timed out"));
    api.outage.clear();
    for (const Response& answer :
         {Response{.status = 500, .body = ""}, Response{.status = 404, .body = "page not found"},
          Response{.status = 403, .body = "{}"}, Response{.status = 200, .body = "{\"kind\":"}}) {
        api.canned = answer;
        EXPECT_THAT(claims.reconcile(),
                    ElementsAre(HasSubstr("does not say whether default/train")));
    }
    expect_claimed();
}

TEST_F(KubernetesClaims, ReconcileTakesNoVfFromAGuestThatRuns) {
    ASSERT_TRUE(claims.prepare(kClaim));
    api.claims.clear();
    vgpud.host[2].is_open = true;
    EXPECT_THAT(claims.reconcile(), IsEmpty());
    expect_claimed();
    vgpud.host[2].is_open = false;
    EXPECT_THAT(claims.reconcile(), SizeIs(1));
    EXPECT_THAT(owners(), ElementsAre("", "", "", ""));
}

TEST_F(KubernetesClaims, ReconcileReportsAClaimWithoutARecordAndLeavesIt) {
    vgpud.host[0].owner = kOwner;
    api.claims.clear();
    EXPECT_THAT(claims.reconcile(), ElementsAre(HasSubstr("which has no record on this host")));
    EXPECT_EQ(vgpud.host[0].owner, kOwner);
}

TEST_F(KubernetesClaims, ADamagedRecordIsSkipped) {
    ASSERT_TRUE(claims.prepare(kClaim));
    std::ofstream(root + "/state/claims/" + kUid + "/claim.json", std::ios::trunc) << "{\"name";
    api.claims.clear();
    EXPECT_THAT(claims.reconcile(), SizeIs(2));
    expect_claimed();
}

}  // namespace
}  // namespace vgpu::kubernetes::testing
