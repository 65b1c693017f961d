// SPDX-License-Identifier: MIT
#include "daemon/service/views/event_log.h"

#include "daemon/service/views/event_fold.h"

#include <gtest/gtest.h>

namespace vgpu::daemon {
namespace {

AdminEvent admin_event(std::string text) {
    return {.gpu = "gpu0", .vf = 3, .kind = EventKind::Hang, .text = std::move(text)};
}

TEST(EventLog, KeepsWhatWasSaidWithANumberAndATime) {
    EventLog log;
    log.add(admin_event("a"), 1'000'000);
    log.add(admin_event("b"), 2'000'000);
    const auto all = log.since(0, 10);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0], (LoggedEvent{.seq = 1,
                                   .time_us = 1'000'000,
                                   .gpu = "gpu0",
                                   .vf = 3,
                                   .kind = EventKind::Hang,
                                   .text = "a"}));
    EXPECT_EQ(all[1].seq, 2u);
}

TEST(EventLog, AnswersOnlyWhatIsNewAndTheNewestOfThat) {
    EventLog log;
    for (int i = 0; i < 10; ++i) log.add(admin_event(std::to_string(i)), 0);
    EXPECT_TRUE(log.since(10, 10).empty());
    EXPECT_EQ(log.since(7, 10).size(), 3u);
    const auto newest = log.since(2, 4);
    ASSERT_EQ(newest.size(), 4u);
    EXPECT_EQ(newest.front().seq, 7u);
    EXPECT_EQ(newest.back().seq, 10u);
}

TEST(EventLog, IsBoundedInEventsAndInTheBytesOfEach) {
    EventLog log;
    for (std::size_t i = 0; i < EventLog::kCapacity + 5; ++i)
        log.add(admin_event(std::string(1 << 20, 'x')), 0);
    const auto all = log.since(0, SIZE_MAX);
    ASSERT_EQ(all.size(), EventLog::kCapacity);
    EXPECT_EQ(all.front().seq, 6u) << "a gap tells a reader what it missed";
    EXPECT_EQ(all.front().text.size(), EventLog::kMaxText);
    log.add(admin_event(std::string(EventLog::kMaxText - 1, 'x') + "\u00e9"), 0);
    EXPECT_EQ(log.since(0, 1).front().text, std::string(EventLog::kMaxText - 1, 'x'));
}

TEST(EventLog, KeepsWhatOthersSaidWhateverOneRepeats) {
    EventLog log;
    log.add({.gpu = "gpu0", .vf = 2, .kind = EventKind::Hang, .text = "of another VF"}, 0);
    log.add({.gpu = "gpu0", .vf = 3, .kind = EventKind::Guard, .text = "of its own guard"}, 0);
    for (std::size_t i = 0; i < 4 * EventLog::kCapacity; ++i)
        log.add(admin_event(std::to_string(i)), 0);
    const auto all = log.since(0, SIZE_MAX);
    ASSERT_EQ(all.size(), EventLog::kCapacity);
    EXPECT_EQ(all[0].text, "of another VF");
    EXPECT_EQ(all[1].text, "of its own guard");
    EXPECT_EQ(all.back().seq, 2 + 4 * EventLog::kCapacity) << "and the newest of what is repeated";
}

TEST(EventFold, TellsTheFirstFewAndThenANumber) {
    EventFold fold;
    Nanoseconds now{0};
    std::vector<std::string> reported;
    for (int i = 0; i < 6000; ++i) {
        now += std::chrono::milliseconds(20);
        for (const AdminEvent& due : fold.take_due(now)) reported.push_back(due.text);
        if (fold.admits(admin_event("a " + std::to_string(i)), now)) reported.push_back("told");
    }
    EXPECT_EQ(fold.next_due(), std::optional(Nanoseconds(std::chrono::milliseconds(120'020))));
    ASSERT_EQ(reported.size(), 2 * EventFold::kReported + 1) << ::testing::PrintToString(reported);
    EXPECT_EQ(reported[EventFold::kReported], "a 2999 (the last of 2992 more within 60 s)");
    ASSERT_EQ(fold.take_due(std::chrono::hours(1)).size(), 1u);
    EXPECT_FALSE(fold.next_due()) << "nothing is kept of a window that is over";
}

TEST(EventFold, FoldsPerVfAndKindAndOnlyWhatGuestsCause) {
    EventFold fold;
    const auto count_reported = [&fold](const AdminEvent& one) {
        int reported = 0;
        for (int i = 0; i < 100; ++i) reported += fold.admits(one, Nanoseconds{0}) ? 1 : 0;
        return reported;
    };
    for (const EventKind kind :
         {EventKind::Hang, EventKind::ResetDone, EventKind::Guard, EventKind::GuestError,
          EventKind::Revoked, EventKind::AgentMisbehaved})
        for (const std::uint32_t vf : {1u, 2u})
            EXPECT_EQ(count_reported({.gpu = "gpu0", .vf = vf, .kind = kind, .text = "x"}), 8)
                << name_of(kind);
    EXPECT_EQ(count_reported({.gpu = "gpu0", .vf = 1, .kind = EventKind::Released, .text = "x"}),
              100);
    EXPECT_EQ(count_reported({.gpu = "gpu0", .vf = 0, .kind = EventKind::PfLost, .text = "x"}),
              100);
}

}  // namespace
}  // namespace vgpu::daemon
