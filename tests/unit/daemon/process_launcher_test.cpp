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

}  // namespace
}  // namespace vgpu::daemon::adapters
