// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/fault_plan.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace vgpu::softgpu::iov {
namespace {

TEST(FaultPlan, AFaultHappensAsOftenAsPlannedAndOnlyToItsVf) {
    FaultPlan plan;
    ASSERT_TRUE(plan.add({VfId{3}, FaultPoint::Idle, FaultEffect::Lost, 2}));
    EXPECT_FALSE(plan.take(VfId{2}, FaultPoint::Idle));
    EXPECT_FALSE(plan.take(VfId{3}, FaultPoint::Save));
    EXPECT_TRUE(plan.take(VfId{3}, FaultPoint::Idle));
    EXPECT_TRUE(plan.take(VfId{3}, FaultPoint::Idle));
    EXPECT_FALSE(plan.take(VfId{3}, FaultPoint::Idle));
    EXPECT_EQ(plan.injected(), 2u);
}

TEST(FaultPlan, ALossOfTheDeviceLastsUntilThePlanIsCleared) {
    FaultPlan plan;
    EXPECT_FALSE(plan.holds(kPf, FaultPoint::Device));
    ASSERT_TRUE(plan.add({kPf, FaultPoint::Device, FaultEffect::Lost}));
    EXPECT_TRUE(plan.holds(kPf, FaultPoint::Device));
    EXPECT_TRUE(plan.holds(kPf, FaultPoint::Device));
    EXPECT_EQ(plan.injected(), 1u);
    plan.clear();
    EXPECT_FALSE(plan.holds(kPf, FaultPoint::Device));
}

TEST(FaultPlan, EveryUseSaysInjected) {
    std::ostringstream text;
    const auto before = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
    FaultPlan plan;
    ASSERT_TRUE(plan.add({VfId{3}, FaultPoint::Run, FaultEffect::Wrong}));
    (void)plan.take(VfId{3}, FaultPoint::Run);
    spdlog::set_default_logger(before);
    EXPECT_NE(text.str().find("VF3: run wrong (injected)"), std::string::npos) << text.str();
}

TEST(FaultPlan, RefusesWhatCannotHappen) {
    FaultPlan plan;
    EXPECT_FALSE(plan.add({VfId{1}, FaultPoint::Sdma, FaultEffect::Late}));
    EXPECT_FALSE(plan.add({VfId{1}, FaultPoint::Interrupt, FaultEffect::Wrong}));
    EXPECT_FALSE(plan.add({VfId{1}, FaultPoint::Idle, FaultEffect::Lost, 0}));
    EXPECT_FALSE(plan.add({VfId{1}, FaultPoint::Device, FaultEffect::Lost}));
    EXPECT_FALSE(plan.add({kPf, FaultPoint::Device, FaultEffect::Late}));
}

TEST(FaultPlan, RefusesPointsThatThePfNeverReaches) {
    FaultPlan plan;
    for (const FaultPoint point : {FaultPoint::Idle, FaultPoint::Save, FaultPoint::Load,
                                   FaultPoint::Run, FaultPoint::Sdma, FaultPoint::Flr})
        EXPECT_FALSE(plan.add({kPf, point})) << FaultPlan::name(point);
    EXPECT_TRUE(plan.add({kPf, FaultPoint::Interrupt}));
    EXPECT_TRUE(plan.take(kPf, FaultPoint::Interrupt));
}

TEST(FaultPlan, IsBounded) {
    FaultPlan plan;
    for (std::size_t i = 0; i < FaultPlan::kMaxRows; ++i)
        ASSERT_TRUE(plan.add({VfId{1}, FaultPoint::Idle}));
    EXPECT_FALSE(plan.add({VfId{1}, FaultPoint::Idle}));
    plan.clear();
    EXPECT_FALSE(plan.take(VfId{1}, FaultPoint::Idle));
    EXPECT_TRUE(plan.add({VfId{1}, FaultPoint::Idle}));
}

TEST(FaultPlan, NamesAreParsedAndWrongOnesExplained) {
    EXPECT_EQ(FaultPlan::parse_point("irq"), FaultPoint::Interrupt);
    EXPECT_EQ(FaultPlan::parse_point("flr"), FaultPoint::Flr);
    EXPECT_EQ(FaultPlan::parse_effect("late"), FaultEffect::Late);
    EXPECT_NE(FaultPlan::parse_point("gpu").error().message.find("idle, save, load"),
              std::string::npos);
    EXPECT_FALSE(FaultPlan::parse_effect(""));
}

}  // namespace
}  // namespace vgpu::softgpu::iov
