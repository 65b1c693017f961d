// SPDX-License-Identifier: MIT
//
// HostSysfs over a directory that looks like sysfs.
#include "daemon/backend/sriov/host_sysfs.h"

#include "tests/support/stack/temp_dir.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon::sriov {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class OnThisHost : public ::testing::Test {
protected:
    OnThisHost() {
        fs::create_directories(directory.file("pf"));
        std::ofstream(directory.file("pf/sriov_totalvfs")) << "7\n";
    }

    test::TempDir directory;
    HostSysfs files{directory.file("")};
};

TEST_F(OnThisHost, AFileIsReadWithoutItsLineFeedAndWrittenAsItIs) {
    EXPECT_EQ(files.read("pf/sriov_totalvfs"), "7");
    ASSERT_TRUE(files.write("pf/sriov_totalvfs", "3"));
    EXPECT_EQ(files.read("pf/sriov_totalvfs"), "3");
}

TEST_F(OnThisHost, ALinkIsTheNameOfItsTarget) {
    fs::create_symlink("../../../bus/pci/drivers/igb", directory.file("pf/driver"));
    EXPECT_EQ(files.link("pf/driver"), "igb");
    EXPECT_EQ(files.link("pf/none").error().code, ENOENT);
    EXPECT_THAT(*files.list("pf"), ElementsAre("driver", "sriov_totalvfs"));
}

TEST_F(OnThisHost, AnErrorNamesFileAndText) {
    EXPECT_EQ(error_of(files.write("pf/none", "3").error()).cause,
              "cannot write '3' to pf/none: No such file or directory");
    EXPECT_THAT(error_of(files.read("pf").error()).cause, HasSubstr("cannot read pf: Is a dir"));
}

TEST_F(OnThisHost, ModesAreTheFilesOwn) {
    ::chmod(directory.file("pf/sriov_totalvfs").c_str(), 0444);
    EXPECT_EQ(files.mode("pf/sriov_totalvfs"), 0444u);
    EXPECT_FALSE(files.is_writable("pf/sriov_totalvfs"));
    EXPECT_FALSE(files.has("pf/none"));
}

}  // namespace
}  // namespace vgpu::daemon::sriov
