// SPDX-License-Identifier: MIT
//
// Answers with a source that counts, and a virtual clock.
#include "daemon/exporter/answers.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/exporter/readings.h"

#include <gmock/gmock.h>

namespace vgpu::exporter {
namespace {

using daemon::testing::VirtualClock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::some_readings;
using ::testing::StartsWith;

class AnswersOfVgpud : public ::testing::Test {
protected:
    Response open_response() { return answers.response(MetricsFormat::OpenMetrics); }

    VirtualClock clock;
    int asked = 0;
    daemon::Nanoseconds answer_takes{0};
    std::string problem;
    Answers answers{[this] {
                        ++asked;
                        clock.advance(answer_takes);
                        Readings readings = some_readings();
                        readings.problem = problem;
                        return readings;
                    },
                    clock};
};

TEST_F(AnswersOfVgpud, AreAskedForOnceByACrowd) {
    const Response response = open_response();
    for (int i = 0; i < 200; ++i) EXPECT_EQ(open_response(), response) << "the same, not a copy";
    EXPECT_THAT(*response, StartsWith("HTTP/1.0 200 OK\r\n"));
    EXPECT_THAT(*response, HasSubstr("\nvgpu_up 1\n"));
    EXPECT_EQ(asked, 1);
}

TEST_F(AnswersOfVgpud, AreUsedForASecondHoweverLongTheyTook) {
    answer_takes = std::chrono::seconds(2);
    static_cast<void>(open_response());
    clock.advance(Answers::kFresh - daemon::Nanoseconds{1});
    static_cast<void>(open_response());
    EXPECT_EQ(asked, 1);
    clock.advance(daemon::Nanoseconds{1});
    static_cast<void>(open_response());
    EXPECT_EQ(asked, 2);
}

TEST_F(AnswersOfVgpud, AreOneForBothFormats) {
    EXPECT_THAT(*open_response(), EndsWith("# EOF\n"));
    const Response plain = answers.response(MetricsFormat::Prometheus);
    EXPECT_THAT(*plain, HasSubstr("text/plain; version=0.0.4"));
    EXPECT_THAT(*plain, Not(HasSubstr("# EOF\n")));
    EXPECT_EQ(asked, 1);
}

TEST_F(AnswersOfVgpud, ThatDoesNotAnswerIsAnAnswer) {
    problem = "nobody has the name";
    EXPECT_THAT(*open_response(), HasSubstr("vgpu_up 0\n"));
    EXPECT_THAT(*open_response(), StartsWith("HTTP/1.0 200 OK\r\n"));
    EXPECT_EQ(asked, 1);
    problem.clear();
    clock.advance(Answers::kFresh);
    EXPECT_THAT(*open_response(), HasSubstr("vgpu_up 1\n"));
}

}  // namespace
}  // namespace vgpu::exporter
