// SPDX-License-Identifier: MIT
#include "vf-agent/port.h"
#include "tests/unit/agent/fake_tree.h"
#include "vf-agent/child_task.h"

#include <gmock/gmock.h>
#include <poll.h>

namespace vgpu::agent {
namespace {

using testing::FakeTree;
using ::testing::HasSubstr;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""s;

TEST(AgentPort, IsFoundByUdevsLinkOrByItsName) {
    const FakeTree tree;
    EXPECT_EQ(find_port(tree.root), "");
    tree.file("sys/class/virtio-ports/vport0p1/name", "org.qemu.guest_agent.0\n");
    tree.file("sys/class/virtio-ports/vport0p2/name", "org.vgpu.agent.0\n");
    EXPECT_EQ(find_port(tree.root), tree.root / "dev/vport0p2");
    tree.file("dev/virtio-ports/org.vgpu.agent.0", "");
    EXPECT_EQ(find_port(tree.root), tree.root / "dev/virtio-ports/org.vgpu.agent.0");
}

/// A child's outcome; time only passes as `now` says.
Outcome outcome_of(std::vector<std::string> command, Nanoseconds deadline = 1h,
                   Nanoseconds now = 0ns) {
    ChildTask task(std::move(command), deadline);
    for (;;) {
        if (const auto outcome = task.poll(now)) return *outcome;
        ::poll(nullptr, 0, 5);
    }
}

TEST(ChildTask, FirstLineIsTheTextAndTheStatusTheOutcome) {
    const Outcome passed = outcome_of({"/bin/sh", "-c", "echo fine; echo more"});
    EXPECT_TRUE(passed.is_ok);
    EXPECT_EQ(passed.text, "fine");
    const Outcome failed = outcome_of({"/bin/sh", "-c", "echo bad; exit 1"});
    EXPECT_FALSE(failed.is_ok);
    EXPECT_EQ(failed.text, "bad");
}

TEST(ChildTask, ACrashIsAFailureThatNamesTheSignal) {
    const Outcome outcome = outcome_of({"/bin/sh", "-c", "kill -SEGV $$"});
    EXPECT_FALSE(outcome.is_ok);
    EXPECT_THAT(outcome.text, HasSubstr("signal 11"));
}

TEST(ChildTask, IsKilledAtItsDeadline) {
    const Outcome outcome = outcome_of({"/bin/sleep", "1000"}, 1s, 2s);
    EXPECT_FALSE(outcome.is_ok);
    EXPECT_THAT(outcome.text, HasSubstr("in time"));
}

TEST(ChildTask, MuchOutputDoesNotStopIt) {
    const Outcome outcome = outcome_of({"/bin/sh", "-c", "yes | head -c 1000000"});
    EXPECT_TRUE(outcome.is_ok);
    EXPECT_EQ(outcome.text, "y");
}

TEST(ChildTask, AProgramThatIsNotThereFails) {
    EXPECT_FALSE(outcome_of({"/nonexistent/program"}).is_ok);
}

}  // namespace
}  // namespace vgpu::agent
