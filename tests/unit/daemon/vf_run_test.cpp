// SPDX-License-Identifier: MIT
//
// Requests for one VF as jobs, over a PF core and an agent in memory.
#include "tests/unit/daemon/fake_agents.h"
#include "tests/unit/daemon/jobs_fixture.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using testing::FakeAgentPort;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBefore;
using ::testing::Not;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

class VfJobs : public testing::JobsOnAFakePf {
protected:
    VfJobs() {
        world.pf().scrubs_at_once = false;
        turn();
    }

    void turn() {
        agents.step();
        step();
    }
    Result<std::uint32_t> start(VfJob job, const Options& options = {}) {
        return jobs->start(services, job, vf, options);
    }
    /// The number of a job that was not refused.
    std::uint32_t started(VfJob job) {
        const auto id = start(job);
        EXPECT_TRUE(id) << id.error().cause;
        return id.value_or(0);
    }
    [[nodiscard]] std::string state(std::uint32_t id) const { return view(id).state; }
    void agent_says(const std::string& line) {
        port.input.push_back({.path = socket, .kind = AgentInput::Kind::Bytes, .bytes = line});
        turn();
    }
    void connect_agent() {
        port.input.push_back({.path = socket, .kind = AgentInput::Kind::Connected});
        agent_says(testing::hello_line());
    }
    [[nodiscard]] const std::string& asked() { return port.places[socket].sent; }
    void set_work(std::uint32_t has_work) {
        world.pf().vfs.at(vf.vf).has_work = has_work;
        world.pass(2s);
    }

    const std::string socket = "/run/v/vf1.agent.sock";
    const Target vf = world.create({}).value();
    FakeAgentPort port;
    Agents agents{*world.manager, port, world.clock};
    VfRun::Services services{*world.manager, agents, world.clock};
};

TEST_F(VfJobs, ADestroyIsOverWhenTheScrubIs) {
    const auto id = started(VfJob::Destroy);
    turn();
    EXPECT_EQ(view(id).kind, "destroy");
    EXPECT_EQ(state(id), "running");
    EXPECT_EQ(view(id).step, "gpu0/vf1: its VRAM is scrubbed");
    EXPECT_EQ(jobs->next_step(), world.clock.now() + 1h) << "the scrub wakes it";
    world.pf().finish_scrub(vf.vf);
    world.step();
    turn();
    EXPECT_EQ(state(id), "done");
    EXPECT_EQ(view(id).progress, 1.0);
    EXPECT_EQ(view(id).step, "");
    EXPECT_FALSE(view(id).report) << "it asked no agent";
    EXPECT_EQ(jobs->next_step(), world.clock.now() + Jobs::kKeepFor);
}

TEST_F(VfJobs, ADestroyOfAVfThatIsReleasedAlreadyWaitsForTheSameScrub) {
    const auto first = started(VfJob::Destroy), second = started(VfJob::Destroy);
    turn();
    EXPECT_EQ(state(second), "running");
    world.pf().finish_scrub(vf.vf);
    world.step();
    turn();
    EXPECT_EQ(state(first), "done");
    EXPECT_EQ(state(second), "done");
}

TEST_F(VfJobs, AScrubThatDoesNotEndIsATimeOut) {
    const auto id = started(VfJob::Destroy);
    turn();
    world.pass(1h);
    turn();
    EXPECT_EQ(state(id), "failed");
    EXPECT_EQ(view(id).error->id, ErrorId::TimedOut);
    EXPECT_EQ(view(id).error->cause, "gpu0/vf1 is still being scrubbed");
}

TEST_F(VfJobs, AResetIsOverWhenTheVfIsInServiceAgain) {
    world.pf().holds_resets = true;
    for (const VfJob job : {VfJob::Reset, VfJob::Resume}) {
        ASSERT_TRUE(world.control(vf, VGPU_PF_STOP, {}));
        const auto id = started(job);
        turn();
        EXPECT_EQ(state(id), "running");
        world.pf().set_state(vf.vf, VGPU_PF_VF_READY);
        world.step();
        turn();
        EXPECT_EQ(state(id), "done") << kind_of(job);
    }
}

TEST_F(VfJobs, AResetThatDoesNotEndIsATimeOut) {
    world.pf().holds_resets = true;
    const auto id = started(VfJob::Reset);
    world.pass(30s);
    turn();
    EXPECT_EQ(view(id).error->id, ErrorId::TimedOut);
    EXPECT_EQ(view(id).error->cause, "gpu0/vf1 is still resetting");
}

TEST_F(VfJobs, WhatTheDeviceHasBegunCannotBeCancelled) {
    const auto id = started(VfJob::Destroy);
    const auto cancelled = jobs->cancel(id);
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().cause,
              fmt::format("job {} is a destroy, which cannot be rolled back", id));
    EXPECT_FALSE(view(id).can_cancel);
    turn();
    EXPECT_EQ(state(id), "running");
}

TEST_F(VfJobs, WhatIsRefusedAtOnceIsNoJob) {
    EXPECT_EQ(start(VfJob::SelfTest).error().id, ErrorId::NoAgent);
    for (const char* option : {"no_wait", "forse"})
        EXPECT_EQ(start(VfJob::Destroy, {{option, true}}).error().id, ErrorId::UnknownOption);
    EXPECT_EQ(start(VfJob::Resume, {{"force", true}}).error().id, ErrorId::UnknownOption);
    EXPECT_THAT(jobs->list(), IsEmpty());
}

TEST_F(VfJobs, ASelfTestHasTheReportOfTheAgent) {
    connect_agent();
    const auto id = started(VfJob::SelfTest);
    turn();
    EXPECT_EQ(state(id), "running");
    EXPECT_FALSE(view(id).report);
    agent_says(testing::result_line(1));
    EXPECT_EQ(state(id), "done");
    ASSERT_TRUE(view(id).report);
    EXPECT_EQ(view(id).report->text, "fine");
}

TEST_F(VfJobs, ACancelledSelfTestIsOverAtOnceAndItsAnswerDoesNotCount) {
    connect_agent();
    const auto id = started(VfJob::SelfTest);
    ASSERT_TRUE(jobs->cancel(id));
    turn();
    EXPECT_EQ(state(id), "cancelled");
    EXPECT_EQ(view(id).error->id, ErrorId::Cancelled);
    agent_says(testing::result_line(1));
    EXPECT_EQ(state(id), "cancelled");
    EXPECT_FALSE(view(id).report);
}

TEST_F(VfJobs, AQuiesceIsOverWhenTheDeviceHasNoWork) {
    connect_agent();
    set_work(1);
    const auto id = started(VfJob::Quiesce);
    agent_says(testing::result_line(1));
    EXPECT_EQ(state(id), "running");
    EXPECT_FALSE(view(id).report) << "not before the device";
    set_work(0);
    turn();
    EXPECT_EQ(state(id), "done");
    EXPECT_TRUE(view(id).report->is_ok);
    EXPECT_THAT(asked(), Not(HasSubstr("thaw")));
}

TEST_F(VfJobs, AQuiesceThatFailsLetsTheProcessesContinue) {
    connect_agent();
    set_work(1);
    const auto late = started(VfJob::Quiesce);
    agent_says(testing::result_line(1));
    world.clock.advance(30s);
    step();
    EXPECT_EQ(view(late).error->id, ErrorId::TimedOut);
    EXPECT_FALSE(view(late).report);
    EXPECT_THAT(asked(), HasSubstr("thaw"));
}

TEST_F(VfJobs, AQuiesceWithoutAnAnswerLetsTheProcessesContinueLater) {
    connect_agent();
    const auto id = start(VfJob::Quiesce, {{"timeout_ms", std::uint64_t{100}}});
    ASSERT_TRUE(id);
    turn();
    world.clock.advance(6s);
    turn();
    EXPECT_EQ(view(*id).error->id, ErrorId::TimedOut);
    EXPECT_THAT(asked(), HasSubstr("thaw"));
}

TEST_F(VfJobs, AQuiesceFailsIfTheAgentRestartsMeanwhile) {
    connect_agent();
    set_work(1);
    const auto id = started(VfJob::Quiesce);
    agent_says(testing::result_line(1));
    EXPECT_EQ(state(id), "running");
    agent_says(testing::hello_line("false") + testing::hello_line());
    set_work(0);
    turn();
    EXPECT_EQ(state(id), "failed");
    EXPECT_EQ(view(id).error->id, ErrorId::NoAgent);
}

TEST_F(VfJobs, ACancelledQuiesceLetsTheProcessesContinue) {
    connect_agent();
    const auto id = started(VfJob::Quiesce);
    ASSERT_TRUE(jobs->cancel(id));
    turn();
    EXPECT_EQ(state(id), "cancelled");
    EXPECT_THAT(asked(), HasSubstr("thaw"));
}

TEST_F(VfJobs, NeitherWaitForAnApplyNorHoldOneUp) {
    connect_agent();
    world.pf().scrubs_at_once = true;
    const auto id = started(VfJob::SelfTest);
    EXPECT_EQ(apply(kBefore, {{"dry_run", true}}).state, "done");
    EXPECT_EQ(state(id), "running");
}

TEST_F(VfJobs, MoreOfOneKindThanMayBeUnderWayAreBusyAndOthersAreNot) {
    for (std::size_t i = 0; i < Jobs::kMaxOfKind; ++i) started(VfJob::Destroy);
    const auto more = start(VfJob::Destroy);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().id, ErrorId::Busy);
    EXPECT_EQ(more.error().cause, "gpu0/vf1: 4 jobs of kind destroy are under way");
    connect_agent();
    EXPECT_TRUE(start(VfJob::SelfTest));
    world.pf().finish_scrub(vf.vf);
    world.step();
    turn();
    EXPECT_NE(start(VfJob::Destroy).error().id, ErrorId::Busy);
}

TEST_F(VfJobs, KeepTheNewestOfTheirOwn) {
    apply(kBefore, {{"dry_run", true}});
    for (std::size_t i = 0; i < Jobs::kKeepOfVfs + 5; ++i) {
        ASSERT_TRUE(world.control(vf, VGPU_PF_PAUSE, {}));
        started(VfJob::Resume);
        step();
    }
    EXPECT_EQ(jobs->list().size(), Jobs::kKeepOfVfs + 1) << "and the apply";
}

TEST_F(VfJobs, AnAnswerThatComesWhenTheJobsHaveGoneHarmsNobody) {
    connect_agent();
    started(VfJob::SelfTest);
    jobs.reset();
    port.input.push_back(
        {.path = socket, .kind = AgentInput::Kind::Bytes, .bytes = testing::result_line(1)});
    agents.step();
}

}  // namespace
}  // namespace vgpu::daemon
