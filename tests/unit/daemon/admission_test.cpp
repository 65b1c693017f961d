// SPDX-License-Identifier: MIT
#include "daemon/dbus/request_limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::dbus {
namespace {

constexpr uid_t kRoot = 0, kAnna = 1000, kBert = 1001;

TEST(RequestLimits, OneCallerGetsSoManyAndTheOthersTheirs) {
    RequestLimits admission;
    std::vector<RequestLimits::Ticket> held;
    for (std::size_t i = 0; i < RequestLimits::kMaxPerSender; ++i)
        held.push_back(admission.admit(":1.7", kAnna).value());
    const auto refused = admission.admit(":1.7", kAnna);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::TooManyRequests);
    EXPECT_EQ(refused.error().cause, "32 requests of this caller are pending");
    EXPECT_TRUE(admission.admit(":1.8", kAnna));
}

TEST(RequestLimits, ARequestThatIsOverMakesRoom) {
    RequestLimits admission;
    std::vector<RequestLimits::Ticket> held;
    for (std::size_t i = 0; i < RequestLimits::kMaxPerSender; ++i)
        held.push_back(admission.admit(":1.7", kAnna).value());
    held.pop_back();
    EXPECT_TRUE(admission.admit(":1.7", kAnna));
}

/// So many requests, each kMaxPerSender of them from another connection.
std::vector<RequestLimits::Ticket> requests_of(RequestLimits& admission, uid_t user,
                                               std::size_t count) {
    std::vector<RequestLimits::Ticket> held;
    for (std::size_t i = 0; i < count; ++i) {
        const auto sender = fmt::format(":{}.{}", user, i / RequestLimits::kMaxPerSender);
        held.push_back(admission.admit(sender, user).value());
    }
    return held;
}

TEST(RequestLimits, ManyConnectionsOfOneUserAreOneUser) {
    RequestLimits admission;
    const auto held = requests_of(admission, kAnna, RequestLimits::kMaxPerUser);
    const auto refused = admission.admit(":1.9", kAnna);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::TooManyRequests);
    EXPECT_EQ(refused.error().cause, "40 requests of user 1000 are pending");
    EXPECT_TRUE(admission.admit(":1.10", kBert));
    EXPECT_TRUE(admission.admit(":1.11", kRoot));
}

TEST(RequestLimits, RootIsServedWhenTheUsersHaveTakenAllTheyCan) {
    RequestLimits admission;
    std::vector<std::vector<RequestLimits::Ticket>> held;
    for (uid_t user = kAnna; user < kAnna + 2; ++user)
        held.push_back(requests_of(admission, user, RequestLimits::kMaxPerUser));
    const auto refused = admission.admit(":1.9", kAnna + 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "80 requests of all callers are pending");
    held.push_back(requests_of(admission, kRoot, RequestLimits::kReserve));
    EXPECT_FALSE(admission.admit(":1.10", kRoot)) << "root is bounded, too";
    held.clear();
    held.push_back(requests_of(admission, kRoot, RequestLimits::kMax));
    EXPECT_FALSE(admission.admit(":1.10", kRoot)) << "no more than before";
}

TEST(RequestLimits, ATicketMayOutliveIt) {
    std::optional<RequestLimits> admission(std::in_place);
    RequestLimits::Ticket ticket = admission->admit(":1.7", kAnna).value();
    admission.reset();
    ticket.reset();
}

}  // namespace
}  // namespace vgpu::daemon::dbus
