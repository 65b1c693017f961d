// SPDX-License-Identifier: MIT
#include "daemon/adapters/log_control.h"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

namespace vgpu::daemon::adapters {
namespace {

using ::testing::HasSubstr;

class Log : public ::testing::Test {
protected:
    ~Log() override { spdlog::set_level(spdlog::level::info); }
    LogControl control{"error"};
};

TEST_F(Log, BeginsOnTheConsoleAtTheLevelOfTheCommandLine) {
    EXPECT_EQ(control.level(), "err");
    EXPECT_EQ(control.target(), "console");
    EXPECT_EQ(spdlog::get_level(), spdlog::level::err);
}

TEST_F(Log, TakesEveryLevelOfSyslog) {
    const std::vector<std::pair<std::string, spdlog::level::level_enum>> levels{
        {"emerg", spdlog::level::critical}, {"alert", spdlog::level::critical},
        {"crit", spdlog::level::critical},  {"err", spdlog::level::err},
        {"warning", spdlog::level::warn},   {"notice", spdlog::level::info},
        {"info", spdlog::level::info},      {"debug", spdlog::level::debug}};
    for (const auto& [word, level] : levels) {
        EXPECT_TRUE(control.set_level(word));
        EXPECT_EQ(control.level(), word);
        EXPECT_EQ(spdlog::get_level(), level) << word;
    }
}

TEST_F(Log, OtherWordsAreRefusedAndChangeNothing) {
    const auto refused = control.set_level("loud");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::OutOfRange);
    EXPECT_THAT(refused.error().cause, HasSubstr("'loud' is not one of emerg, alert"));
    EXPECT_EQ(control.level(), "err");
    EXPECT_EQ(control.set_target("kmsg").error().id, ErrorId::OutOfRange);
    EXPECT_EQ(control.target(), "console");
}

TEST_F(Log, KeepsItsLevelWhenTheTargetChanges) {
    ASSERT_TRUE(control.set_level("debug"));
    ASSERT_TRUE(control.set_target("null"));
    EXPECT_EQ(spdlog::get_level(), spdlog::level::debug);
    EXPECT_EQ(spdlog::default_logger()->level(), spdlog::level::debug);
    ASSERT_TRUE(control.set_target("journal"));
    EXPECT_EQ(control.target(), "journal");
    ASSERT_TRUE(control.set_target("console"));
}

}  // namespace
}  // namespace vgpu::daemon::adapters
