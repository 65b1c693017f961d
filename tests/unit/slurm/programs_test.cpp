// SPDX-License-Identifier: MIT
//
// Programs as processes, and the file of what Slurm was told.
#include "daemon/engines/slurm/programs.h"
#include "daemon/engines/slurm/published_file.h"
#include "tests/support/stack/temp_dir.h"

#include <gmock/gmock.h>
#include <filesystem>

namespace vgpu::slurm {
namespace {

using ::testing::HasSubstr;

TEST(Programs, ReportsOutputErrorsAndStatus) {
    Programs programs("/bin");
    const ProgramResult ran = programs.run({"sh", "-c", "echo out; echo err >&2; exit 3"});
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.out, "out\n");
    EXPECT_EQ(ran.err, "err\n");
}

TEST(Programs, AProgramThatDoesNotEndIsStopped) {
    Programs programs("", std::chrono::milliseconds(50));
    const ProgramResult ran = programs.run({"sleep", "60"});
    EXPECT_EQ(ran.status, 124);
}

TEST(Programs, AProgramThatIsMissingIsNamedByItsError) {
    Programs programs("/nonexistent");
    const ProgramResult ran = programs.run({"squeue"});
    EXPECT_EQ(ran.status, 127);
    EXPECT_THAT(ran.err, HasSubstr("No such file"));
}

TEST(Note, LastsUntilItIsTooOldOrForgotten) {
    test::TempDir directory;
    const std::string path = directory.file("a/published");
    PublishedFile published(path);
    EXPECT_FALSE(published.load(std::chrono::minutes(1)));
    published.save("vgpu:small:8\n");
    EXPECT_EQ(published.load(std::chrono::minutes(1)), "vgpu:small:8\n");
    namespace fs = std::filesystem;
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(2));
    EXPECT_FALSE(published.load(std::chrono::minutes(1)));
    fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::minutes(2));
    EXPECT_FALSE(published.load(std::chrono::minutes(1))) << "the clock went back";
    published.save("again");
    published.forget();
    EXPECT_FALSE(published.load(std::chrono::minutes(1)));
}

}  // namespace
}  // namespace vgpu::slurm
