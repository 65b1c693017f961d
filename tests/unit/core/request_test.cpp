// SPDX-License-Identifier: MIT
//
// Requests of several clients: the policy lease, a VF that two of them ask about, the one stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

/// Two clients of the platform; 0 is the platform itself.
struct Clients : testing::Test {
    template <typename T> int ask(std::uint64_t client, std::uint32_t op, T& payload) {
        return vgpu_pf_request_run_for(rig.pf.get(), client, op, &payload, ++token_);
    }
    int lease(std::uint64_t client, std::uint32_t acquire) {
        vgpu_pf_lease request{sizeof(request), acquire};
        return ask(client, VGPU_PF_OP_LEASE, request);
    }
    int set_table(std::uint64_t client) {
        auto table = std::make_unique<vgpu_pf_run_table>();
        rig.request(VGPU_PF_OP_GET_RUN_TABLE, *table);
        ++table->generation;
        return ask(client, VGPU_PF_OP_SET_RUN_TABLE, *table);
    }
    static constexpr std::uint64_t kHome = 0, kOne = 7, kOther = 8;
    Rig rig;

private:
    std::uint64_t token_ = 5000;
};

TEST_F(Clients, OneHoldsTheLeaseAndTheOthersSetNoTable) {
    EXPECT_EQ(set_table(kOther), 0) << "nobody holds it";
    ASSERT_EQ(lease(kOne, 1), 0);
    EXPECT_TRUE(vgpu_pf_view_is_leased(rig.pf.get()));
    EXPECT_EQ(rig.get_info().lease_held, 1u);
    EXPECT_EQ(lease(kOther, 1), -EBUSY);
    EXPECT_EQ(lease(kOther, 0), -EBUSY) << "it is not its own to give up";
    EXPECT_EQ(set_table(kOther), -EBUSY);
    EXPECT_STREQ(vgpu_pf_view_message(rig.pf.get()), "another client holds the policy lease");
    EXPECT_EQ(set_table(kOne), 0);
    EXPECT_EQ(set_table(kHome), 0);
}

TEST_F(Clients, TheLeaseEndsWhenItIsGivenUpOrItsHolderHasGone) {
    ASSERT_EQ(lease(kOne, 1), 0);
    ASSERT_EQ(lease(kOne, 0), 0);
    ASSERT_EQ(lease(kOther, 1), 0);
    EXPECT_FALSE(vgpu_pf_request_client_gone(rig.pf.get(), kOne));
    EXPECT_EQ(lease(kOne, 1), -EBUSY);
    EXPECT_TRUE(vgpu_pf_request_client_gone(rig.pf.get(), kOther));
    EXPECT_EQ(rig.get_info().lease_held, 0u);
    EXPECT_EQ(lease(kOne, 1), 0);
}

TEST_F(Clients, ALeaseIsTakenOrGivenUpAndNothingElse) {
    EXPECT_EQ(lease(kOne, 2), -EINVAL);
    EXPECT_FALSE(vgpu_pf_view_is_leased(rig.pf.get()));
}

/// Its units are scrubbed first.
TEST_F(Clients, AVfThatIsBeingProvisionedIsNotVerified) {
    vgpu_pf_provision provision{};
    provision.vf = 2;
    provision.vram_bytes = 32u << 20;
    ASSERT_EQ(ask(kOne, VGPU_PF_OP_PROVISION, provision), -EINPROGRESS);
    vgpu_pf_vf_ref ref{sizeof(ref), 2, 0, 0}, other{sizeof(other), 3, 0, 0};
    EXPECT_EQ(ask(kOther, VGPU_PF_OP_VERIFY_ZERO, ref), -EBUSY);
    EXPECT_STREQ(vgpu_pf_view_message(rig.pf.get()), "VF2 is being provisioned; try again");
    EXPECT_EQ(ask(kOther, VGPU_PF_OP_VERIFY_ZERO, other), 0) << "an ABSENT one passes";
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.vf(2).state, VGPU_PF_VF_PROVISIONED);
}

TEST_F(Clients, AStreamIsOneAtATime) {
    rig.gpu.stream_room = 100;
    vgpu_pf_stream first{sizeof(first), 0, 0, 0, 0}, second = first;
    ASSERT_EQ(ask(kOne, VGPU_PF_OP_DUMP, first), -EINPROGRESS);
    EXPECT_EQ(ask(kOther, VGPU_PF_OP_DUMP, second), -EBUSY);
    rig.gpu.stream_room.reset();
    vgpu_pf_stream_ready(rig.pf.get());
    EXPECT_EQ(ask(kOther, VGPU_PF_OP_DUMP, second), -EINPROGRESS);
    rig.gpu.run_for(kMs);
}

}  // namespace
}  // namespace vgpu::test
