// SPDX-License-Identifier: MIT
//
// The one way to a PF core: whatever operation meets its loss, the loss is noticed by it.
#include "daemon/service/gpu/pf_link.h"

#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>
#include <functional>
#include <vector>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using testing::FakePfPort;
using ::testing::HasSubstr;
using testing::VirtualClock;
using testing::World;

struct Request {
    std::string name;
    std::function<Result<>(GpuModel&)> ask;
};

template <typename T> Result<> without_value(const Result<T>& result) {
    return result ? Result<>{} : Result<>(tl::make_unexpected(result.error()));
}

std::vector<Request> requests() {
    constexpr std::uint64_t kMiB = FakePf::kMiB;
    return {
        {"create",
         [](GpuModel& gpu) { return without_value(gpu.create({.spec = {.name = "b"}})); }},
        {"destroy", [](GpuModel& gpu) { return gpu.destroy(1, Force::Yes); }},
        {"reset", [](GpuModel& gpu) { return gpu.control(1, VGPU_PF_RESET, Force::Yes); }},
        {"resize",
         [](GpuModel& gpu) { return gpu.resize(1, {.vram_bytes = 128 * kMiB}, Force::Yes); }},
        {"inventory", [](GpuModel& gpu) { return without_value(gpu.inventory()); }},
        {"dump", [](GpuModel& gpu) { return gpu.dump(-1); }},
        {"look", [](GpuModel& gpu) { return gpu.refresh_now(1); }},
    };
}

TEST(PfLink, ALossIsNoticedByWhateverRequestMeetsIt) {
    for (const Request& request : requests()) {
        World world;
        ASSERT_TRUE(world.create({{"name", std::string("a")}}));
        const GpuRecord before = world.manager->store().gpu("gpu0");
        world.pf().is_there = false;
        const auto met = request.ask(world.gpu());
        ASSERT_FALSE(met) << request.name;
        EXPECT_EQ(met.error().id, ErrorId::PfLost) << request.name;
        EXPECT_EQ(world.gpu().state(), GpuState::PfLost) << request.name;
        EXPECT_EQ(world.manager->store().gpu("gpu0"), before) << request.name;
        const auto next = world.gpu().create({.spec = {.name = "c"}});
        ASSERT_FALSE(next) << request.name;
        EXPECT_THAT(next.error().cause, ::testing::MatchesRegex("gpu0: [a-z_]+: gone"))
            << request.name;
        const auto admin_events = world.gpu().take_admin_events();
        EXPECT_EQ(
            std::count_if(admin_events.begin(), admin_events.end(),
                          [](const AdminEvent& event) { return event.kind == EventKind::PfLost; }),
            1)
            << request.name;
        world.pf().is_there = true;
        world.pass(std::chrono::seconds(10));
        EXPECT_EQ(world.gpu().state(), GpuState::Ok) << request.name;
    }
}

TEST(PfLink, ALossIsNotifiedOnceAndOnlyOfAPfCoreThatWasAttached) {
    VirtualClock clock;
    FakePf pf(clock);
    std::vector<std::string> losses;
    PfLink link(std::make_unique<FakePfPort>(pf),
                [&losses](const Error& error) { losses.push_back(error.cause); });
    ASSERT_TRUE(link.connect());
    pf.is_there = false;
    EXPECT_FALSE(link.ask(&Backend::get_vf, 1u));
    EXPECT_TRUE(losses.empty()) << "the attempt to attach fails";
    pf.is_there = true;
    ASSERT_TRUE(link.connect());
    link.attached();
    pf.refuse = "get_info";
    EXPECT_FALSE(link.ask(&Backend::get_info));
    EXPECT_TRUE(losses.empty()) << "refused, not lost";
    pf.is_there = false;
    EXPECT_FALSE(link.ask(&Backend::get_vf, 1u));
    EXPECT_FALSE(link.ask(&Backend::get_info));
    EXPECT_THAT(losses, ::testing::ElementsAre("get_vf: gone"));
}

}  // namespace
}  // namespace vgpu::daemon
