// SPDX-License-Identifier: MIT
//
// What is drawn while vgpuctl waits, and where it is not drawn.
#include "cli/progress.h"
#include "tests/unit/cli/cli_fixture.h"

#include <gmock/gmock.h>
#include <condition_variable>
#include <mutex>
#include <streambuf>

namespace vgpu::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kWipe = "\r\x1b[K";

/// The lines that were drawn over each other.
std::vector<std::string> drawn(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = text.find(kWipe); at != std::string::npos;) {
        const std::size_t begin = at + kWipe.size();
        at = text.find(kWipe, begin);
        lines.push_back(text.substr(begin, at == std::string::npos ? at : at - begin));
    }
    return lines;
}

TEST(ProgressLine, IsCutBeforeTheTerminalsEdgeAndWipedInTheEnd) {
    std::ostringstream out;
    {
        ProgressLine line{ProgressOutput(out, true, 20)};
        line.draw("create gpu0/vf3 'a-long-name'");
        line.draw("done");
    }
    EXPECT_EQ(out.str(), "\r\x1b[Kcreate gpu0/vf3 'a-\r\x1b[Kdone\r\x1b[K");
}

TEST(ProgressLine, IsNothingWhereNobodyLooks) {
    std::ostringstream out;
    {
        ProgressLine line{ProgressOutput(out, false, 80)};
        line.draw("create");
        const Spinner waiting(ProgressOutput(out, false, 80), "destroy a");
    }
    EXPECT_EQ(out.str(), "");
}

/// A stream that another thread may wait for.
class Watched : public std::streambuf {
public:
    bool wait_for(const std::string& text) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(30),
                                 [&] { return text_.find(text) != std::string::npos; });
    }

private:
    int_type overflow(int_type letter) override {
        const char one = traits_type::to_char_type(letter);
        return xsputn(&one, 1) == 1 ? letter : traits_type::eof();
    }
    std::streamsize xsputn(const char* text, std::streamsize count) override {
        const std::lock_guard lock(mutex_);
        text_.append(text, static_cast<std::size_t>(count));
        changed_.notify_all();
        return count;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::string text_;
};

TEST(Spinner, GoesOnByItselfWhileACallBlocks) {
    Watched seen;
    std::ostream out(&seen);
    const Spinner waiting(ProgressOutput(out, true, 80), "destroy a", std::chrono::milliseconds(1));
    EXPECT_TRUE(seen.wait_for("| destroy a: 0 s"));
    EXPECT_TRUE(seen.wait_for("/ destroy a: "));
    EXPECT_TRUE(seen.wait_for("\\ destroy a: "));
}

class ProgressOf : public testing::Cli {};

TEST_F(ProgressOf, EveryVerbThatWaitsIsDrawnOnATerminalOnly) {
    const std::vector<std::vector<std::string>> lines{{"destroy", "gpu0/vf1"},
                                                      {"self-test", "gpu0/vf1"},
                                                      {"quiesce", "gpu0/vf1"},
                                                      {"thaw", "gpu0/vf1"},
                                                      {"reset", "gpu0/vf1"}};
    for (const std::vector<std::string>& words : lines) {
        is_terminal = false;
        EXPECT_EQ(run(words), 0);
        const std::string plain = out.str();
        EXPECT_THAT(plain, Not(HasSubstr("\r"))) << words.front();
        is_terminal = true;
        EXPECT_EQ(run(words), 0);
        EXPECT_THAT(out.str(), StartsWith("\r\x1b[K[##########          ]  50 % "));
        EXPECT_THAT(out.str(), EndsWith(std::string(kWipe) + plain)) << "the line is gone";
        std::vector<std::string> json = words;
        json.emplace_back("--json");
        EXPECT_EQ(run(json), 0);
        EXPECT_THAT(out.str(), Not(HasSubstr("\r"))) << words.front();
    }
}

TEST_F(ProgressOf, AWaitThatFailsLeavesNothingOnTheScreen) {
    is_terminal = true;
    service.job_end["State"] = std::string("failed");
    service.job_end["ErrorName"] = std::string("org.vgpu1.Error.PfLost");
    EXPECT_EQ(run({"destroy", "gpu0/vf1"}), 7);
    EXPECT_THAT(out.str(), EndsWith(kWipe));
}

TEST_F(ProgressOf, ApplyFitsTheTerminal) {
    is_terminal = true;
    service.plan_text = R"({"schema": "vgpu-plan-1", "label": "day", "is_empty": false,
        "disruption": "none", "steps": [], "gpus": []})";
    const std::string file =
        std::string(VGPU_SOURCE_DIR) + "/schemas/examples/valid/vgpu-config-two-sizes.json";
    const std::string step = "resize gpu0/vf3 '" + std::string(90, 'n') + "'";
    service.job_step = step;
    for (const std::size_t width : {30u, 80u, 200u}) {
        columns = width;
        EXPECT_EQ(run({"apply", file}), 0);
        const auto lines = drawn(out.str());
        ASSERT_GE(lines.size(), 2u);
        const std::string whole = "[##########          ]  50 % " + step;
        EXPECT_EQ(lines.front(), whole.substr(0, std::min<std::size_t>(width, 80) - 1));
    }
}

}  // namespace
}  // namespace vgpu::cli
