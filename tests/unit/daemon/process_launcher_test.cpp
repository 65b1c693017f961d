// SPDX-License-Identifier: MIT
//
// The process launcher with real processes.
#include "daemon/adapters/process_launcher.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace vgpu::daemon::adapters {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class ProcessLauncherTest : public ::testing::Test {
protected:
    ProcessLauncherTest() {
        std::string pattern = (fs::temp_directory_path() / "vgpu-XXXXXX").string();
        directory = ::mkdtemp(pattern.data());
    }
    ~ProcessLauncherTest() override {
        for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "VGPU_TEST"})
            ::unsetenv(name);
        fs::remove_all(directory);
    }

    [[nodiscard]] ProcessSpec spec(const std::string& script) const {
        return {.label = "child", .directory = directory, .command = {"sh", "-c", script}};
    }
    /// Runs a shell script as a child to its end; what it wrote.
    std::string output_of(const std::string& script) {
        const auto id = launcher.start(spec(script));
        if (!id) return "not started";
        ::waitpid(id->pid, nullptr, 0);
        std::ifstream log(directory + "/child.log");
        return {std::istreambuf_iterator<char>(log), {}};
    }

    std::string directory;
    ProcessLauncher launcher;
};

TEST_F(ProcessLauncherTest, AChildDoesNotSpeakToTheServiceManagerInOurName) {
    ::setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
    ::setenv("WATCHDOG_USEC", "30000000", 1);
    ::setenv("WATCHDOG_PID", "1", 1);
    ::setenv("VGPU_TEST", "inherited", 1);
    const std::string seen = output_of("env");
    EXPECT_THAT(seen, Not(HasSubstr("NOTIFY_SOCKET")));
    EXPECT_THAT(seen, Not(HasSubstr("WATCHDOG_")));
    EXPECT_THAT(seen, HasSubstr("VGPU_TEST=inherited\n"));
}

TEST_F(ProcessLauncherTest, AChildHasASessionOfItsOwnAndNoOtherDescriptors) {
    const std::string seen = output_of("cut -d ' ' -f 6 /proc/$$/stat; ls /proc/$$/fd");
    EXPECT_THAT(seen, Not(::testing::StartsWith(std::to_string(::getsid(0)) + "\n")));
    EXPECT_THAT(seen, ::testing::EndsWith("\n0\n1\n2\n"));
}

TEST_F(ProcessLauncherTest, AProgramThatCannotBeRunIsNamedWithTheReason) {
    const auto started = launcher.start(
        {.label = "child", .directory = directory, .command = {"/nonexistent/softgpu"}});
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().cause, HasSubstr("cannot run '/nonexistent/softgpu'"));
    EXPECT_THAT(started.error().cause, HasSubstr("No such file or directory"));
    EXPECT_FALSE(launcher.find(spec("")));
}

TEST_F(ProcessLauncherTest, AChildThatCannotBeRecordedDoesNotRunAndLeavesNoZombie) {
    fs::create_directory(directory + "/child.pid");
    const auto started = launcher.start(spec("echo it runs"));
    ASSERT_FALSE(started);
    EXPECT_THAT(started.error().cause, HasSubstr("child.pid"));
    EXPECT_LE(::waitpid(-1, nullptr, WNOHANG), 0);
    std::ifstream log(directory + "/child.log");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}), "");
}

TEST_F(ProcessLauncherTest, TheEndOfAChildTellsHowItEnded) {
    const auto end_of = [this](const std::string& script) {
        const auto id = launcher.start(spec(script));
        siginfo_t ended{};
        ::waitid(P_PID, static_cast<id_t>(id->pid), &ended, WEXITED | WNOWAIT);
        return launcher.end_of(*id).value_or("it runs");
    };
    EXPECT_EQ(end_of("exit 3"), "with exit status 3");
    EXPECT_EQ(end_of("kill -9 $$"), "by signal 9 (Killed)");
}

TEST_F(ProcessLauncherTest, ALogHasABoundWhileItIsWrittenTo) {
    const std::string log = directory + "/child.log";
    const auto id = launcher.start(spec("exec sleep 1000"));
    ASSERT_TRUE(id);
    std::ofstream(log, std::ios::app) << std::string(ProcessLauncher::kMaxLogBytes, 'a') << "tail";
    launcher.trim_log(spec(""));
    EXPECT_EQ(fs::file_size(log), 0u);
    std::ifstream old(log + ".1");
    const std::string kept{std::istreambuf_iterator<char>(old), {}};
    EXPECT_EQ(kept.size(), ProcessLauncher::kMaxLogBytes);
    EXPECT_THAT(kept, ::testing::EndsWith("tail"));
    ::kill(id->pid, SIGKILL);
    ::waitpid(id->pid, nullptr, 0);
    EXPECT_EQ(output_of("echo last"), "last\n") << "appended to";
    launcher.trim_log(spec(""));
    EXPECT_EQ(fs::file_size(log), 5u) << "short enough";
}

TEST_F(ProcessLauncherTest, AChildBeginsItsLogOnALineOfItsOwn) {
    EXPECT_EQ(output_of("printf 'error: dev'"), "error: dev");
    EXPECT_EQ(output_of("echo attached"), "error: dev\nattached\n");
    EXPECT_EQ(output_of("echo again"), "error: dev\nattached\nagain\n");
}

TEST_F(ProcessLauncherTest, AChildIsFoundByItsNoteUntilItEnds) {
    const auto id = launcher.start(spec("exec sleep 1000"));
    ASSERT_TRUE(id);
    ProcessLauncher next;
    const auto found = next.find(spec(""));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->pid, id->pid);
    EXPECT_EQ(found->start_time, id->start_time);
    ::kill(id->pid, SIGKILL);
    ::waitpid(id->pid, nullptr, 0);
    EXPECT_FALSE(next.find(spec("")));
}

/// A device that was taken over could name any process as its own, which vgpud then stops.
TEST_F(ProcessLauncherTest, ALinkInPlaceOfANoteIsNotRead) {
    const auto id = launcher.start(spec("exec sleep 1000"));
    ASSERT_TRUE(id);
    const std::string note = directory + "/child.pid", moved = directory + "/moved";
    fs::rename(note, moved);
    fs::create_symlink(moved, note);
    EXPECT_FALSE(ProcessLauncher().find(spec("")));
    fs::remove(note);
    fs::create_hard_link(moved, note);
    EXPECT_FALSE(ProcessLauncher().find(spec("")));
    fs::remove(moved);
    EXPECT_TRUE(ProcessLauncher().find(spec("")));
    ::kill(id->pid, SIGKILL);
    ::waitpid(id->pid, nullptr, 0);
}

/// Children run as nobody, which only root can arrange.
class DeviceUserTest : public ProcessLauncherTest {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root starts children as another user";
        fs::permissions(directory, fs::perms(0755));
        const auto user = device_user("nobody");
        ASSERT_TRUE(user) << text_of(user.error());
        launcher = ProcessLauncher(*user);
    }
};

TEST_F(DeviceUserTest, AChildHasNoRightsOfRoot) {
    const std::string seen = output_of("id -u; id -G; grep -E 'Cap(Prm|Eff)' /proc/self/status");
    EXPECT_THAT(seen, ::testing::StartsWith("65534\n65534\n"));
    EXPECT_THAT(seen, Not(::testing::ContainsRegex("Cap...:\t0*[1-9a-f]")));
    EXPECT_THAT(seen, HasSubstr("CapPrm"));
}

TEST_F(DeviceUserTest, AChildMakesAndRemovesItsFilesButNoneOfVgpud) {
    std::ofstream(directory + "/vf1.agent.sock") << "of vgpud";
    const std::string seen =
        output_of("cd " + directory +
                  "; touch made gone; rm -f gone vf1.agent.sock child.log child.pid; "
                  "mv child.log x");
    EXPECT_TRUE(fs::exists(directory + "/made")) << seen;
    EXPECT_FALSE(fs::exists(directory + "/gone")) << seen;
    for (const char* name : {"/vf1.agent.sock", "/child.log", "/child.pid"})
        EXPECT_TRUE(fs::exists(directory + name)) << name << seen;
}

TEST_F(DeviceUserTest, WhatAChildPutsInPlaceOfALogIsNotFollowed) {
    const std::string victim = directory + "/victim";
    std::ofstream(victim) << "kept";
    ASSERT_EQ(output_of("ln -s " + victim + " " + directory + "/child.log.1"), "");
    std::ofstream(directory + "/child.log") << std::string(ProcessLauncher::kMaxLogBytes + 1, 'a');
    launcher.trim_log(spec("true"));
    fs::remove(directory + "/child.log");
    fs::create_symlink(victim, directory + "/child.log");
    const auto started = launcher.start(spec("true"));
    ASSERT_FALSE(started);
    EXPECT_THAT(text_of(started.error()), HasSubstr("child.log"));
    EXPECT_EQ(fs::file_size(victim), 4u);
}

TEST(DeviceUser, IsAnExistingUserOtherThanRoot) {
    EXPECT_THAT(text_of(device_user("no-such-user").error()), HasSubstr("no user 'no-such-user'"));
    EXPECT_THAT(text_of(device_user("root").error()), HasSubstr("'root' is root"));
}

}  // namespace
}  // namespace vgpu::daemon::adapters
