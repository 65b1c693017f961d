// SPDX-License-Identifier: MIT
#include "daemon/service/agents/agents.h"
#include "tests/unit/daemon/fake_agents.h"
#include "tests/unit/daemon/world.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using testing::FakeAgentPort;
using ::testing::HasSubstr;
using testing::hello_line;
using testing::World;

class AgentsOfGpu : public ::testing::Test {
protected:
    [[nodiscard]] Target create() {
        const Target made = world.create({}).value();
        world.step();
        agents.step();
        return made;
    }
    void connect(const std::string& path) {
        port.input.push_back({.path = path, .kind = AgentInput::Kind::Connected});
        port.input.push_back(
            {.path = path, .kind = AgentInput::Kind::Bytes, .bytes = hello_line()});
        agents.step();
    }

    World world;
    FakeAgentPort port;
    Agents agents{*world.manager, port, world.clock};
};

TEST_F(AgentsOfGpu, EachVfHasASocketBesideItsOwn) {
    const Target vf = create();
    EXPECT_TRUE(port.places.contains("/run/v/vf1.agent.sock"));
    EXPECT_EQ(agents.view(vf).socket, "/run/v/vf1.agent.sock");
    connect("/run/v/vf1.agent.sock");
    EXPECT_TRUE(agents.view(vf).is_connected);
    const auto admin_events = agents.take_admin_events();
    ASSERT_EQ(admin_events.size(), 1u);
    EXPECT_EQ(admin_events[0].vf, 1u);
}

TEST_F(AgentsOfGpu, ADestroyedVfTakesItsSocketAndItsRequestsWithIt) {
    const Target vf = create();
    connect("/run/v/vf1.agent.sock");
    std::string answer;
    agents.ask(vf, AgentRequest::SelfTest, {},
               [&answer](const Result<AgentReport>& report) { answer = text_of(report.error()); });
    ASSERT_TRUE(world.destroy(vf));
    world.pf().finish_scrub(vf.vf);
    world.step();
    agents.step();
    EXPECT_FALSE(port.places.contains("/run/v/vf1.agent.sock"));
    EXPECT_THAT(answer, HasSubstr("VGPU-305"));
    EXPECT_FALSE(agents.view(vf).is_connected);
}

TEST_F(AgentsOfGpu, AVfThatGoesTakesNoSessionButItsOwn) {
    const Target first = create(), middle = create(), last = create();
    connect("/run/v/vf3.agent.sock");
    ASSERT_TRUE(world.destroy(middle));
    world.pf().finish_scrub(middle.vf);
    world.step();
    agents.step();
    EXPECT_EQ(port.places.size(), 2u);
    EXPECT_FALSE(port.places.contains("/run/v/vf2.agent.sock"));
    EXPECT_EQ(agents.view(first).socket, "/run/v/vf1.agent.sock");
    EXPECT_TRUE(agents.view(last).is_connected);
    EXPECT_EQ(create(), middle) << "a VF of the same number";
    EXPECT_EQ(port.places.size(), 3u);
    EXPECT_TRUE(agents.view(last).is_connected);
}

/// A VF of which a guest's agent may be left when its owner has lost it.
class AgentsBetweenOwners : public AgentsOfGpu {
protected:
    void claim(const std::string& owner) {
        const auto made = world.claim(vf, owner);
        ASSERT_TRUE(made) << made.error().cause;
        claimed = *made;
        agents.step();
    }
    void release(const std::string& owner) {
        ASSERT_TRUE(world.release(vf, owner, claimed));
        agents.step();
    }
    void connect_guest() { connect("/run/v/vf1.agent.sock"); }
    [[nodiscard]] bool is_connected() const { return agents.view(vf).is_connected; }

    Target vf = create();
    std::uint64_t claimed = 0;
};

TEST_F(AgentsBetweenOwners, TheEndOfAClaimEndsItsGuestsSession) {
    claim("a");
    connect_guest();
    std::string answer;
    agents.ask(vf, AgentRequest::SelfTest, {},
               [&answer](const Result<AgentReport>& report) { answer = text_of(report.error()); });
    release("a");
    EXPECT_FALSE(is_connected());
    EXPECT_THAT(answer, HasSubstr("VGPU-305"));
    EXPECT_EQ(agents.view(vf).version, "") << "nothing of it is the next owner's";
    EXPECT_TRUE(port.places.contains("/run/v/vf1.agent.sock")) << "for the next";
}

TEST_F(AgentsBetweenOwners, AGuestThatComesBackAfterItsClaimIsNotTheNextOwners) {
    claim("a");
    release("a");
    connect_guest();
    claim("b");
    EXPECT_FALSE(is_connected());
    connect_guest();
    EXPECT_TRUE(is_connected()) << "the next owner's";
}

TEST_F(AgentsBetweenOwners, AGuestOfBeforeTheScrubIsNotTheEmptyVfs) {
    ASSERT_TRUE(world.set_vf(vf, {{"scrub_on_release", true}}));
    claim("a");
    release("a");
    connect_guest();
    world.pf().finish_scrub(vf.vf);
    world.pass(std::chrono::seconds(2));
    agents.step();
    EXPECT_FALSE(is_connected());
}

TEST_F(AgentsBetweenOwners, AFirstClaimAndItsRenewalLeaveTheGuestThatIsThere) {
    connect_guest();
    claim("a");
    EXPECT_TRUE(is_connected());
    claim("a");
    EXPECT_TRUE(is_connected());
}

TEST_F(AgentsOfGpu, OptionsAreChecked) {
    const Target vf = create();
    connect("/run/v/vf1.agent.sock");
    const auto error_of = [&](const Options& options) {
        std::string text;
        agents.ask(vf, AgentRequest::SelfTest, options, [&text](const Result<AgentReport>& report) {
            text = report ? "" : text_of(report.error());
        });
        return text;
    };
    EXPECT_THAT(error_of({{"timeout", std::uint64_t{1000}}}), HasSubstr("VGPU-101"));
    EXPECT_THAT(error_of({{"timeout_ms", std::uint64_t{99}}}), HasSubstr("VGPU-103"));
    EXPECT_THAT(error_of({{"timeout_ms", std::string("x")}}), HasSubstr("VGPU-102"));
}

TEST_F(AgentsOfGpu, ASocketThatCannotBeMadeIsNotifiedOnceAndHoldsUpNothing) {
    port.is_full = true;
    const Target vf = create();
    agents.step();
    const auto admin_events = agents.take_admin_events();
    ASSERT_EQ(admin_events.size(), 1u);
    EXPECT_EQ(admin_events[0].kind, EventKind::NoAgentSocket);
    EXPECT_FALSE(agents.view(vf).is_connected);
}

TEST_F(AgentsOfGpu, NobodyIsAnsweredAfterTheEnd) {
    const Target vf = create();
    connect("/run/v/vf1.agent.sock");
    bool is_answered = false;
    agents.ask(vf, AgentRequest::Thaw, {}, [&](const Result<AgentReport>&) { is_answered = true; });
    agents.end();
    EXPECT_FALSE(is_answered);
    EXPECT_TRUE(port.places.empty());
}

}  // namespace
}  // namespace vgpu::daemon
