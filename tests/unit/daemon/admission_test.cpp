// SPDX-License-Identifier: MIT
#include "daemon/dbus/admission.h"

#include <gtest/gtest.h>
#include <optional>
#include <vector>

namespace vgpu::daemon::dbus {
namespace {

TEST(Admission, OneCallerGetsSoManyAndTheOthersTheirs) {
    Admission admission;
    std::vector<Admission::Ticket> held;
    for (std::size_t i = 0; i < Admission::kMostPerSender; ++i)
        held.push_back(admission.admit(":1.7").value());
    const auto refused = admission.admit(":1.7");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::TooManyRequests);
    EXPECT_EQ(refused.error().cause, "32 requests of this caller are under way");
    EXPECT_TRUE(admission.admit(":1.8"));
}

TEST(Admission, ARequestThatIsOverMakesRoom) {
    Admission admission;
    std::vector<Admission::Ticket> held;
    for (std::size_t i = 0; i < Admission::kMostPerSender; ++i)
        held.push_back(admission.admit(":1.7").value());
    held.pop_back();
    EXPECT_TRUE(admission.admit(":1.7"));
    held.clear();
    EXPECT_EQ(admission.under_way(), 0u);
}

TEST(Admission, AllCallersTogetherAreBounded) {
    Admission admission;
    std::vector<Admission::Ticket> held;
    for (std::size_t i = 0; i < Admission::kMost; ++i)
        held.push_back(admission.admit(":1." + std::to_string(i)).value());
    const auto refused = admission.admit(":1.9999");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, "256 requests of all callers are under way");
}

TEST(Admission, ATicketMayOutliveIt) {
    std::optional<Admission> admission(std::in_place);
    Admission::Ticket ticket = admission->admit(":1.7").value();
    admission.reset();
    ticket.reset();
}

}  // namespace
}  // namespace vgpu::daemon::dbus
