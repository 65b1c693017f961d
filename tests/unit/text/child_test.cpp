// SPDX-License-Identifier: MIT
//
// Children as real processes: what they are given, and which bounds they have.
#include "text/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

namespace vgpu::text {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr std::size_t kMax = 1000;

Finished run_script(const std::string& script, std::chrono::milliseconds limit = 10s) {
    return run_child({"sh", "-c", script}, limit, kMax);
}

TEST(Child, OutputErrorsAndStatusAreTheProgramsOwn) {
    const Finished ran = run_script("cat; echo out; echo err >&2; exit 3");
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.out, "out\n");
    EXPECT_EQ(ran.err, "err\n");
    EXPECT_EQ(run_script("kill -9 $$").status, kSignal + SIGKILL);
}

TEST(Child, AProgramThatNeverStopsWritingIsStopped) {
    EXPECT_EQ(run_script("while :; do echo more; done").status, kTimedOut);
}

TEST(Child, AProgramThatHangsIsStoppedAtTheLimit) {
    EXPECT_EQ(run_script("echo half; exec sleep 60", 50ms).status, kTimedOut);
}

TEST(Child, AProgramThatClosesItsOutputAndGoesOnIsStoppedAtTheLimit) {
    EXPECT_EQ(run_script("exec >&- 2>&-; exec sleep 60", 50ms).status, kTimedOut);
}

TEST(Child, AMissingProgramIsAnErrorOfTheStart) {
    EXPECT_EQ(start_child({.command = {"/nonexistent/program"}}), -ENOENT);
    const Finished ran = run_child({"/nonexistent/program"}, 10s, kMax);
    EXPECT_EQ(ran.status, kNotStarted);
    EXPECT_EQ(ran.err, "No such file or directory");
}

TEST(Child, TheStreamsAreRightAlsoIfTheCallerHasNoStandardInput) {
    const int input = ::open("/dev/null", O_RDONLY);
    const int kept = ::dup(STDIN_FILENO);
    ::close(STDIN_FILENO);
    const pid_t child = start_child({.command = {"sh", "-c", "echo text"}, .input = input});
    ::dup2(kept, STDIN_FILENO);
    ::close(kept);
    ::close(input);
    ASSERT_GT(child, 0);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "the output is /dev/null, not the input";
}

TEST(Child, NoOtherDescriptorAndNoBlockedSignalIsInherited) {
    const int open = ::open("/dev/null", O_RDONLY);
    sigset_t blocked, before;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &blocked, &before);
    const Finished ran = run_script("ls /proc/$$/fd; grep SigBlk /proc/self/status");
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::close(open);
    EXPECT_EQ(ran.out, "0\n1\n2\nSigBlk:\t0000000000000000\n");
}

}  // namespace
}  // namespace vgpu::text
