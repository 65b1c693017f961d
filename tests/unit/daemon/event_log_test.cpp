// SPDX-License-Identifier: MIT
#include "daemon/service/event_log.h"

#include <gtest/gtest.h>

namespace vgpu::daemon {
namespace {

Notice notice(std::string text) {
    return {.gpu = "gpu0", .vf = 3, .kind = "hang", .text = std::move(text)};
}

TEST(EventLog, KeepsWhatWasSaidWithANumberAndATime) {
    EventLog log;
    log.add(notice("a"), 1'000'000);
    log.add(notice("b"), 2'000'000);
    const auto all = log.since(0, 10);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(
        all[0],
        (LoggedEvent{
            .seq = 1, .time_us = 1'000'000, .gpu = "gpu0", .vf = 3, .kind = "hang", .text = "a"}));
    EXPECT_EQ(all[1].seq, 2u);
    EXPECT_EQ(log.count(), 2u);
}

TEST(EventLog, AnswersOnlyWhatIsNewAndTheNewestOfThat) {
    EventLog log;
    for (int i = 0; i < 10; ++i) log.add(notice(std::to_string(i)), 0);
    EXPECT_TRUE(log.since(10, 10).empty());
    EXPECT_EQ(log.since(7, 10).size(), 3u);
    const auto newest = log.since(2, 4);
    ASSERT_EQ(newest.size(), 4u);
    EXPECT_EQ(newest.front().seq, 7u);
    EXPECT_EQ(newest.back().seq, 10u);
}

TEST(EventLog, IsBoundedInEventsAndInTheBytesOfEach) {
    EventLog log;
    for (std::size_t i = 0; i < EventLog::kKept + 5; ++i)
        log.add(notice(std::string(1 << 20, 'x')), 0);
    const auto all = log.since(0, SIZE_MAX);
    ASSERT_EQ(all.size(), EventLog::kKept);
    EXPECT_EQ(all.front().seq, 6u) << "a gap tells a reader what it missed";
    EXPECT_EQ(all.front().text.size(), EventLog::kMaxText);
    log.add(notice(std::string(EventLog::kMaxText - 1, 'x') + "\u00e9"), 0);
    EXPECT_EQ(log.since(0, 1).front().text, std::string(EventLog::kMaxText - 1, 'x'));
}

}  // namespace
}  // namespace vgpu::daemon
