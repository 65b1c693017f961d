// SPDX-License-Identifier: MIT
//
// BoundedSysfs over files whose writes sleep, as sriov_numvfs does while a VF is open.
#include "daemon/backend/sriov/bounded_sysfs.h"

#include "tests/unit/backend/fake_sysfs.h"

#include <gmock/gmock.h>
#include <cerrno>
#include <thread>

namespace vgpu::daemon::sriov {
namespace {

using daemon::testing::FakeSysfs;
using daemon::testing::kReadWrite;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Bounded : public ::testing::Test {
protected:
    /// A sleeper may outlive the test, but not the files.
    Bounded() {
        const auto sleep = [tree = files.get(), closed = is_closed](const std::string&) {
            tree->sleep_until([closed] { return *closed; });
            return 0;
        };
        const auto check = [](const std::string& text) { return text == "bad" ? EINVAL : 0; };
        files->add("/sleeps",
                   {.mode = kReadWrite, .show = [] { return std::string("3"); }, .store = sleep});
        files->add("/quick",
                   {.mode = kReadWrite, .show = [] { return std::string("1"); }, .store = check});
    }
    ~Bounded() override { close(); }
    void close() {
        files->change([this] { *is_closed = true; });
    }

    const std::shared_ptr<FakeSysfs> files = std::make_shared<FakeSysfs>();
    const std::shared_ptr<bool> is_closed = std::make_shared<bool>(false);
};

TEST_F(Bounded, AnswersAsTheFilesDo) {
    BoundedSysfs bounded(files, std::chrono::seconds(30));
    EXPECT_EQ(bounded.read_slow("/quick"), "1");
    EXPECT_TRUE(bounded.write("/quick", "2"));
    EXPECT_EQ(bounded.write("/quick", "bad").error().code, EINVAL);
    EXPECT_EQ(bounded.read_slow("/none").error().code, ENOENT);
    EXPECT_EQ(bounded.pending(), "");
}

TEST_F(Bounded, EndsItsWaitAtTheLimitAndNamesTheWrite) {
    BoundedSysfs bounded(files, milliseconds(1));
    const auto late = bounded.write("/sleeps", "0");
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, EINPROGRESS);
    EXPECT_EQ(error_of(late.error()).id, ErrorId::DriverBusy);
    EXPECT_THAT(error_of(late.error()).cause, HasSubstr("cannot write '0' to /sleeps"));
    EXPECT_EQ(bounded.pending(), "write '0' to /sleeps");
}

TEST_F(Bounded, MakesNoSecondWriteBehindOneThatSleepsAndStillReads) {
    BoundedSysfs bounded(files, milliseconds(1));
    ASSERT_FALSE(bounded.write("/sleeps", "0"));
    EXPECT_EQ(bounded.write("/quick", "2").error().code, EINPROGRESS);
    EXPECT_EQ(bounded.read("/quick"), "1");
    close();
    while (!bounded.pending().empty()) std::this_thread::yield();
    EXPECT_EQ(files->writes(), std::vector<std::string>{"/sleeps=0"});
}

TEST_F(Bounded, WritesAgainWhenTheKernelHasFinished) {
    BoundedSysfs bounded(files, std::chrono::seconds(30));
    std::thread closer([this] { close(); });
    EXPECT_TRUE(bounded.write("/sleeps", "0"));
    closer.join();
    EXPECT_TRUE(bounded.write("/quick", "2"));
}

TEST_F(Bounded, InterruptEndsAWaitAndTheEndNeverWaits) {
    auto bounded = std::make_unique<BoundedSysfs>(files, std::chrono::hours(1));
    std::thread stopper([&] {
        while (bounded->pending().empty()) std::this_thread::yield();
        bounded->interrupt();
    });
    EXPECT_EQ(bounded->write("/sleeps", "0").error().code, EINPROGRESS);
    stopper.join();
    bounded.reset();
    EXPECT_TRUE(files->writes().empty()) << "the kernel still sleeps";
}

}  // namespace
}  // namespace vgpu::daemon::sriov
