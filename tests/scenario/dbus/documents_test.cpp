// SPDX-License-Identifier: MIT
//
// Runs the commands that documents show and compares their output (tests/support/doc_commands.py).
// Manual pages must have every option of their programs.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <regex>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Truly;
namespace fs = std::filesystem;

class Documents : public BusFixture {
protected:
    /// Runs the commands of one document on this bus.
    [[nodiscard]] test::Completed run_commands(const std::string& document) const {
        const std::string bin = fs::path(test::program("vgpuctl")).parent_path();
        return test::run(
            {"/usr/bin/env", "DBUS_SYSTEM_BUS_ADDRESS=" + address, "VGPUCTL_BUS=" + address,
             "PATH=" + bin + ":/usr/bin:/bin", "RUN_DIR=" + directory.file("run"), "LC_ALL=C.UTF-8",
             "/usr/bin/python3", VGPU_SOURCE_DIR "/tests/support/doc_commands.py",
             VGPU_SOURCE_DIR "/docs/" + document, "bus"},
            {}, test::milliseconds(120'000));
    }
};

TEST_F(Documents, CommandsOfTheDBusDocumentDoWhatItSays) {
    for (const char* program : {"/usr/bin/busctl", "/usr/bin/gdbus"})
        if (!fs::exists(program)) GTEST_SKIP() << program << " is not installed";
    const auto done = run_commands("dbus-api.md");
    EXPECT_EQ(done.status, 0) << done.out;
}

TEST_F(Documents, CommandsOfTheVgpuctlDocumentDoWhatItSays) {
    const auto done = run_commands("vgpuctl.md");
    EXPECT_EQ(done.status, 0) << done.out;
}

struct Page {
    const char* program;
    const char* section;
};

bool is_readable(char letter) {
    return letter == '\n' || static_cast<unsigned char>(letter) >= ' ';
}

class ManualPages : public ::testing::TestWithParam<Page> {};

TEST_P(ManualPages, KnowEveryOptionOfHelp) {
    const auto& [program, section] = GetParam();
    const std::string path = test::build_file(std::string("pages/") + program + "." + section);
    if (!fs::exists(path)) GTEST_SKIP() << "help2man is not installed";
    std::ifstream file(path);
    std::string page(std::istreambuf_iterator<char>(file), {});
    page = std::regex_replace(page, std::regex("\\\\-"), "-");
    const auto help = test::run({test::program(program), "--help"});
    ASSERT_EQ(help.status, 0) << help.out;
    const std::regex option("(--[a-z][a-z-]+)");
    int checked = 0;
    for (std::sregex_iterator at(help.out.begin(), help.out.end(), option), end; at != end; ++at) {
        EXPECT_THAT(page, HasSubstr((*at)[1].str()));
        ++checked;
    }
    EXPECT_GE(checked, 3);
    EXPECT_THAT(help.out + page, Each(Truly(is_readable)));
    EXPECT_THAT(page, HasSubstr(".SH NAME\n"));
}

INSTANTIATE_TEST_SUITE_P(Programs, ManualPages,
                         ::testing::Values(Page{"vgpuctl", "1"}, Page{"vgpud", "8"},
                                           Page{"softgpu", "8"}, Page{"vgpu-pf", "8"},
                                           Page{"vgpu-agent", "8"}),
                         [](const auto& tested) {
                             std::string name = tested.param.program;
                             std::erase(name, '-');
                             return name;
                         });

}  // namespace
}  // namespace vgpu::daemon
