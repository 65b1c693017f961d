// SPDX-License-Identifier: MIT
//
// Errors of the bus for requests that an older vgpud does not know, which vgpuctl must explain.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::HasSubstr;
using Dict = std::map<std::string, sdbus::Variant>;
using Words = std::vector<std::string>;

constexpr const char* kTrain = "/org/vgpu1/gpu/gpu0/vf/1";

/// A vgpud that can only resolve targets, and pause VF 2.
class OldVgpud : public BusFixture {
protected:
    OldVgpud()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = {},
                           .authority = "--no-polkit",
                           .start = Setup::Start::Later}),
          bus_(connect()),
          manager_(sdbus::createObject(*bus_, "/org/vgpu1")),
          vf_(sdbus::createObject(*bus_, "/org/vgpu1/gpu/gpu0/vf/2")) {
        manager_->registerMethod("Resolve")
            .onInterface("org.vgpu1.Manager")
            .implementedAs([](const std::string& target, const Dict&) {
                const bool has_gone = target == "gone";
                return sdbus::ObjectPath{has_gone ? kTrain : "/org/vgpu1/gpu/gpu0/vf/2"};
            });
        manager_->finishRegistration();
        vf_->registerMethod("Pause").onInterface("org.vgpu1.Vf").implementedAs([](const Dict&) {});
        vf_->finishRegistration();
        bus_->requestName("org.vgpu1");
        bus_->enterEventLoopAsync();
    }
    ~OldVgpud() override { bus_->leaveEventLoop(); }
    OldVgpud(const OldVgpud&) = delete;
    OldVgpud& operator=(const OldVgpud&) = delete;

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IObject> manager_, vf_;
};

TEST_F(OldVgpud, AMethodThatItLacksIsCalledSo) {
    ASSERT_EQ(ctl({"pause", "there"}).status, 0);
    for (const Words& words : {Words{"self-test", "there"}, Words{"export"}, Words{"create"}}) {
        const auto refused = ctl(words);
        EXPECT_EQ(refused.status, 1) << refused.out;
        EXPECT_THAT(refused.out, HasSubstr("This vgpud is older than vgpuctl")) << words.front();
    }
}

TEST_F(OldVgpud, AnObjectThatHasGoneIsNotFound) {
    const auto refused = ctl({"pause", "gone"});
    EXPECT_EQ(refused.status, 3) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("The object no longer exists: the VF was destroyed"));
}

}  // namespace
}  // namespace vgpu::daemon
