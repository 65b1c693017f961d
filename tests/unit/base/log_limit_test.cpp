// SPDX-License-Identifier: MIT
#include "pf-driver/process/log_limit.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "pf-driver/softgpu/base/limited_sink.h"
#include "tests/support/virtual_clock.h"

namespace vgpu::softgpu {
namespace {

using ::testing::EndsWith;

constexpr std::uint32_t kWarning = 1, kInfo = 2;

class LogLimit : public ::testing::Test {
protected:
    bool says(const std::string& line, std::uint32_t level = kWarning) {
        return vgpu_log_admit(&limit, now_ms, level, line.data(), line.size(), &left_out);
    }
    std::uint32_t said_of(std::uint32_t lines, const std::string& line) {
        std::uint32_t said = 0;
        for (std::uint32_t i = 0; i < lines; ++i) said += says(line) ? 1 : 0;
        return said;
    }

    vgpu_log_limit limit{};
    std::uint64_t now_ms = 123'456;
    std::uint32_t left_out = 0;
};

TEST_F(LogLimit, ASubjectSaysAFewLinesAndThenTheCountOnceAPeriod) {
    EXPECT_EQ(said_of(1000, "VF3: client closed"), VGPU_LOG_BURST);
    EXPECT_EQ(left_out, 0u);
    now_ms += VGPU_LOG_PERIOD_MS;
    EXPECT_TRUE(says("VF3: client attached"));
    EXPECT_EQ(left_out, 1000 - VGPU_LOG_BURST);
    EXPECT_FALSE(says("VF3: client closed"));
}

TEST_F(LogLimit, ADayOfLinesStaysWithinItsPeriods) {
    std::uint32_t said = 0;
    for (std::uint32_t i = 0; i < 86'400; ++i, now_ms += 1000) said += says("VF3: x") ? 1 : 0;
    EXPECT_LE(said, VGPU_LOG_BURST + 86'400'000 / VGPU_LOG_PERIOD_MS);
}

TEST_F(LogLimit, OneSubjectTakesNothingFromAnotherOrFromAnotherLevel) {
    said_of(1000, "VF3: client closed");
    EXPECT_TRUE(says("VF4: client closed"));
    EXPECT_TRUE(says("VF3: attached", kInfo));
}

TEST_F(LogLimit, AQuietSubjectHasItsWholeAllowanceAgain) {
    said_of(1000, "VF3: x");
    now_ms += std::uint64_t{VGPU_LOG_BURST} * VGPU_LOG_PERIOD_MS;
    EXPECT_EQ(said_of(1000, "VF3: x"), VGPU_LOG_BURST);
}

TEST_F(LogLimit, SubjectsWithoutEndAreBoundTogether) {
    std::uint32_t said = 0;
    for (int i = 0; i < 100'000; ++i) said += says(std::to_string(i) + ": x") ? 1 : 0;
    EXPECT_LE(said, VGPU_LOG_SUBJECTS * VGPU_LOG_BURST);
}

class LimitedLog : public ::testing::Test {
protected:
    LimitedLog() {
        log.set_pattern("%l %v");
        log.set_level(spdlog::level::debug);
    }
    [[nodiscard]] std::ptrdiff_t lines() const {
        const std::string all = text.str();
        return std::count(all.begin(), all.end(), '\n');
    }

    VirtualClock clock;
    std::ostringstream text;
    spdlog::logger log{"test", std::make_shared<LimitedSink>(
                                   std::make_shared<spdlog::sinks::ostream_sink_mt>(text), clock)};
};

TEST_F(LimitedLog, TellsHowManyLinesWereLeftOut) {
    for (int i = 0; i < 100; ++i) log.warn("VF1: client closed: bad message");
    EXPECT_EQ(lines(), VGPU_LOG_BURST);
    clock.advance(std::chrono::milliseconds(VGPU_LOG_PERIOD_MS));
    log.warn("VF1: client closed: bad message");
    EXPECT_THAT(text.str(), EndsWith("warning VF1: client closed: bad message (80 more lines about "
                                     "this were left out)\n"));
}

TEST_F(LimitedLog, LinesForDebuggingAreAllWritten) {
    for (int i = 0; i < 100; ++i) log.debug("VF1: command refused");
    EXPECT_EQ(lines(), 100);
}

}  // namespace
}  // namespace vgpu::softgpu
