// SPDX-License-Identifier: MIT
//
// tests/try as a newcomer uses it: the tutorial's commands are typed in it, and however it ends,
// nothing of it is left.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/stack/child_process.h"
#include "tests/support/stack/temp_dir.h"

namespace vgpu::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kTry = VGPU_SOURCE_DIR "/tests/try";
constexpr milliseconds kLimit{120'000};

class Try : public ::testing::Test {
protected:
    Try() {
        // for the user of OfAnotherUser, too
        fs::permissions(directory.path(), fs::perms::all);
    }

    /// Runs a line of bash in which "$try" is tests/try with this build.
    [[nodiscard]] Completed bash(const std::string& line) const {
        return run({"/bin/bash", "-c", line}, environment(), kLimit);
    }
    [[nodiscard]] std::vector<std::string> environment() const {
        return {std::string("try=") + kTry, "VGPU_TRY_BUILD=" + build,
                "TMPDIR=" + directory.path().string(), "LC_ALL=C.UTF-8"};
    }
    /// Names of what is left in TMPDIR.
    [[nodiscard]] std::vector<std::string> left() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(directory.path()))
            names.push_back(entry.path().filename());
        return names;
    }

    TempDir directory;
    std::string build = fs::path(program("vgpu-try")).parent_path().parent_path();
};

/// True if the process runs; a zombie counts as ended.
bool is_running(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string line;
    return std::getline(file, line) && line.substr(line.rfind(')'), 3) != ") Z";
}

TEST_F(Try, CommandsOfTheTutorialDoWhatItSays) {
    const auto done =
        bash("$try python3 " VGPU_SOURCE_DIR "/tests/support/doc_commands.py " VGPU_SOURCE_DIR
             "/docs/tutorial.md try");
    EXPECT_EQ(done.status, 0) << done.out;
    EXPECT_THAT(done.out, HasSubstr("15 of 15 commands agree"));
}

TEST_F(Try, ScriptsStatusIsReturnedAndNothingIsLeft) {
    const auto done = bash(R"($try <<'END'
sleep 1000 &
echo $! $VGPU_TRY/run
cat $VGPU_TRY/run/gpu0/*.pid
vgpuctl create --name one --vram 16M >made && exit 7
END
)");
    ASSERT_EQ(done.status, 7) << done.out;
    std::istringstream out(done.out);
    std::string pid, folder, line;
    out >> pid >> folder;
    EXPECT_FALSE(is_running(pid)) << "what the script has left in the background";
    EXPECT_FALSE(fs::exists(folder));
    int helpers = 0;
    for (std::getline(out, line); std::getline(out, line); ++helpers)
        EXPECT_FALSE(is_running(line.substr(0, line.find(' ')))) << "softgpu or vgpu-pf";
    EXPECT_EQ(helpers, 2) << done.out;
    EXPECT_THAT(left(), ::testing::IsEmpty());
}

TEST_F(Try, CommandIsFoundAndRunsWhereItsCallerIs) {
    const auto done = bash("cd $TMPDIR && $try vgpuctl trace record here.trace");
    EXPECT_EQ(done.status, 0) << done.out;
    EXPECT_THAT(left(), ::testing::ElementsAre("here.trace"));
}

TEST_F(Try, ShellGreetsAndKnowsVgpuctl) {
    const auto done = bash(
        R"(printf 'vgpuctl list --gpus\nexit 3\n' | SHELL=/bin/bash script -qec "$try" /dev/null)");
    EXPECT_EQ(done.status, 3) << done.out;
    EXPECT_THAT(done.out, HasSubstr("Type first: vgpuctl list"));
    EXPECT_THAT(done.out, HasSubstr("gpu0  ok"));
    EXPECT_THAT(left(), ::testing::IsEmpty());
}

TEST_F(Try, SignalEndsEverything) {
    for (const int number : {SIGINT, SIGHUP, SIGTERM}) {
        const TempDir logs;
        ChildProcess child(
            {"tests/try",
             {kTry, "/bin/bash", "-c", "cat $VGPU_TRY/run/gpu0/softgpu.pid; echo up; sleep 1000"},
             logs.file("out"),
             environment()});
        child.wait_for_output("up");
        const std::string softgpu = child.output().substr(0, child.output().find(' '));
        EXPECT_TRUE(is_running(softgpu));
        child.signal(number);
        EXPECT_EQ(child.wait_exit(), 128 + number) << child.output();
        EXPECT_FALSE(is_running(softgpu));
        EXPECT_THAT(left(), ::testing::IsEmpty());
    }
}

TEST_F(Try, PartThatDoesNotStartIsNamedAndItsLogKept) {
    const TempDir broken;
    fs::create_directory(broken.file("bin"));
    for (const auto& entry : fs::directory_iterator(build + "/bin"))
        fs::create_symlink(entry.path(), broken.path() / "bin" / entry.path().filename());
    for (const char* own : {"vgpu-try", "vgpud"}) fs::remove(broken.file("bin") + "/" + own);
    fs::copy_file(build + "/bin/vgpu-try", broken.file("bin/vgpu-try"));
    fs::create_symlink("/bin/false", broken.file("bin/vgpud"));
    build = broken.path();
    const auto done = bash("$try true");
    EXPECT_EQ(done.status, 125);
    EXPECT_THAT(done.out, HasSubstr("tests/try: vgpud ended with status 1 before"));
    ASSERT_EQ(left().size(), 1u);
    EXPECT_THAT(done.out, HasSubstr("all logs are in " + directory.file(left().front())));
}

TEST_F(Try, MissingPackagesAreNamedWithTheCommandThatInstallsThem) {
    build = directory.path();
    fs::create_directory(directory.file("stub"));
    std::ofstream(directory.file("stub/dpkg-query")) << "#!/bin/sh\necho 'ii cmake'\n";
    fs::permissions(directory.file("stub/dpkg-query"), fs::perms::owner_all);
    const auto done = bash("PATH=$TMPDIR/stub:$PATH $try true");
    EXPECT_EQ(done.status, 125);
    EXPECT_THAT(done.out, HasSubstr("apt-get install --no-install-recommends build-essential"));
    EXPECT_THAT(done.out, ::testing::Not(HasSubstr(" cmake")));
}

TEST_F(Try, RunsForAnotherUserWithoutHomeAndWhereThatOneCannotWrite) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const auto done = bash(R"(mkdir -p -m 777 $TMPDIR/$(printf %090d 0) && cd / &&
        env -u HOME TMPDIR=$TMPDIR/$(printf %090d 0) setpriv --reuid=65534 --regid=65534 \
        --clear-groups $try <<<'vgpuctl create --name one --vram 16M | tee file; echo $TMPDIR')");
    EXPECT_EQ(done.status, 0) << done.out;
    EXPECT_THAT(done.out, HasSubstr("gpu0/vf1 'one' 16 MiB"));
    EXPECT_THAT(done.out, HasSubstr(directory.path().string()));
}

}  // namespace
}  // namespace vgpu::test
