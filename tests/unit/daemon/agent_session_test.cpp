// SPDX-License-Identifier: MIT
#include "daemon/service/agents/session.h"
#include "tests/unit/daemon/fake_agents.h"
#include "tests/unit/daemon/fake_pf.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::hello_line;
using testing::result_line;
using testing::status_line;
using std::chrono_literals::operator""ns;
using std::chrono_literals::operator""s;

class AgentOfVf : public ::testing::Test {
protected:
    AgentOfVf() { static_cast<void>(session.listen()); }

    void connect() { session.on_input({.path = kPath, .kind = AgentInput::Kind::Connected}); }
    void emit(const std::string& bytes) {
        session.on_input({.path = kPath, .kind = AgentInput::Kind::Bytes, .bytes = bytes});
    }
    void serve() {
        connect();
        emit(hello_line() + status_line());
        ASSERT_TRUE(session.view().is_connected);
    }
    void ask(AgentRequest request = AgentRequest::SelfTest) {
        session.ask(request, 10s, [this](const Result<AgentReport>& report) {
            answers.push_back(report ? report->text : text_of(report.error()));
        });
    }
    void pass(Nanoseconds time) {
        clock.advance(time);
        session.step();
    }
    [[nodiscard]] testing::FakeAgentPort::Place& place() { return port.places[kPath]; }
    /// It was disconnected, and is counted once.
    void expect_shut() {
        EXPECT_TRUE(place().is_cut);
        EXPECT_FALSE(place().is_accepting);
        EXPECT_FALSE(session.view().is_connected);
        EXPECT_EQ(session.view().misbehaved, 1u);
    }

    static constexpr const char* kPath = "/run/v/vf1.agent.sock";
    std::vector<std::string> answers;
    testing::VirtualClock clock;
    testing::FakeAgentPort port;
    AgentSession session{"gpu0/vf1", kPath, port, clock};
};

TEST_F(AgentOfVf, IsWelcomedAndConnectedOnceItHasAnsweredThat) {
    connect();
    EXPECT_THAT(place().sent, HasSubstr(R"("type":"welcome")"));
    emit(hello_line("false"));
    EXPECT_FALSE(session.view().is_connected);
    emit(hello_line());
    EXPECT_TRUE(session.view().is_connected);
    const auto changes = session.take_changes();
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].first, EventKind::AgentConnected);
}

TEST_F(AgentOfVf, ItsWordsAreShown) {
    serve();
    const AgentView view = session.view();
    EXPECT_EQ(view.version, "0.1.0");
    EXPECT_EQ(view.driver, "amdgpu AB");
    EXPECT_EQ(view.health, "ok");
    EXPECT_EQ(view.vram_used_bytes, 512u);
    EXPECT_EQ(view.processes, 40u);
    EXPECT_THAT(view.process_list, ElementsAre("412 256 2 matmul"));
    clock.advance(3s);
    EXPECT_EQ(session.view().last_seen_ms, 3000u);
}

TEST_F(AgentOfVf, ItsWordsAreClippedAndPrintable) {
    connect();
    emit(hello_line() + status_line("a\\u001b[31m\\u00e9" + std::string(5000, 'x')));
    ASSERT_EQ(session.view().process_list.size(), 1u);
    const std::string process = session.view().process_list[0];
    EXPECT_LT(process.size(), 100u);
    EXPECT_TRUE(process.starts_with("412 256 2 a?[31m\u00e9xxx"));
}

TEST_F(AgentOfVf, BytesMayComeOneByOne) {
    connect();
    for (const char letter : hello_line() + "\n" + status_line()) emit(std::string(1, letter));
    EXPECT_EQ(session.view().health, "ok");
}

TEST_F(AgentOfVf, EveryWrongLineIsMisbehaviour) {
    const std::string deep(5000, '[');
    std::string many = "{\"type\":[0";
    for (int i = 0; i < 2000; ++i) many += ",0";
    for (const std::string& wrong : std::vector<std::string>{
             "garbage", "[]", "{}", R"({"type":"shell"})", R"({"type":"hello","protocol":1})",
             R"({"type":"result","id":"1","ok":true,"text":"","duration_ms":0})", deep, many + "]}",
             "\xff\xfe", std::string(1, '\0')}) {
        AgentSession one("gpu0/vf1", kPath, port, clock);
        one.on_input({.path = kPath, .kind = AgentInput::Kind::Connected});
        one.on_input({.path = kPath, .kind = AgentInput::Kind::Bytes, .bytes = wrong + "\n"});
        EXPECT_EQ(one.view().misbehaved, 1u) << wrong.substr(0, 60);
    }
}

TEST_F(AgentOfVf, ALineWithoutEndIsMisbehaviour) {
    serve();
    for (int i = 0; i < 8 && !place().is_cut; ++i) emit(std::string(16 * 1024, 'x'));
    expect_shut();
}

TEST_F(AgentOfVf, MoreLinesThanAllowedAreMisbehaviourEvenIfEachIsRight) {
    serve();
    std::string flood;
    for (std::uint64_t i = 0; i < AgentSession::kBurstLines; ++i) flood += status_line();
    emit(flood);
    expect_shut();
}

TEST_F(AgentOfVf, AnswersToRequestsAreNeverTooMany) {
    serve();
    for (int id = 1; id <= 2 * static_cast<int>(AgentSession::kBurstLines); ++id) {
        ask();
        emit(result_line(id));
    }
    EXPECT_EQ(answers.size(), 2 * AgentSession::kBurstLines);
    EXPECT_TRUE(session.view().is_connected);
    std::string unasked;
    for (std::uint64_t i = 0; i < AgentSession::kBurstLines; ++i) unasked += result_line(1);
    emit(unasked);
    expect_shut();
}

TEST_F(AgentOfVf, LinesBelowTheAllowedRateAreNeverMisbehaviour) {
    serve();
    const auto each = 1900ms / AgentSession::kLinesPerSecond;
    for (std::uint64_t i = 0; i < 4 * AgentSession::kBurstLines; ++i) {
        pass(each);
        emit(i % 2 == 0 ? status_line() : status_line() + status_line());
    }
    EXPECT_EQ(session.view().misbehaved, 0u);
}

TEST_F(AgentOfVf, OneThatComesAndGoesDoesNotFillTheListOfEvents) {
    constexpr int kTimes = 200;
    serve();
    for (int i = 0; i < kTimes; ++i) {
        pass(1s);
        emit(hello_line(i % 2 == 0 ? "false" : "true"));
    }
    const auto changes = session.take_changes();
    EXPECT_GE(changes.size(), AgentSession::kBurstChanges);
    EXPECT_LE(changes.size(), AgentSession::kBurstChanges + 1);
    pass(AgentSession::kChangeEvery);
    emit(hello_line("false"));
    emit(hello_line());
    const auto later = session.take_changes();
    ASSERT_FALSE(later.empty());
    EXPECT_THAT(later[0].second, HasSubstr("earlier events were not reported"));
}

TEST_F(AgentOfVf, AStatusEachIntervalIsNeverTooMuch) {
    serve();
    for (int i = 0; i < 10'000; ++i) {
        pass(std::chrono::seconds(AgentSession::kStatusIntervalS));
        emit(status_line());
    }
    EXPECT_TRUE(session.view().is_connected);
}

TEST_F(AgentOfVf, ThePauseAfterMisbehaviourDoublesAndEnds) {
    Nanoseconds pause = AgentSession::kFirstPause;
    for (int i = 0; i < 10; ++i) {
        connect();
        emit("garbage\n");
        EXPECT_FALSE(place().is_accepting);
        EXPECT_EQ(session.next_step(), clock.now() + pause);
        pass(pause - 1ns);
        EXPECT_FALSE(place().is_accepting);
        pass(1ns);
        EXPECT_TRUE(place().is_accepting);
        pause = std::min(2 * pause, AgentSession::kLongestPause);
    }
    EXPECT_EQ(session.view().misbehaved, 10u);
}

TEST_F(AgentOfVf, AnswersAreGivenByNumberAndOnce) {
    serve();
    ask(AgentRequest::SelfTest);
    ask(AgentRequest::Thaw);
    EXPECT_THAT(place().sent, HasSubstr(R"("what":"self-test")"));
    emit(result_line(2));
    emit(result_line(2) + result_line(77));
    EXPECT_THAT(answers, ElementsAre("fine"));
    emit(result_line(1));
    EXPECT_THAT(answers, ElementsAre("fine", "fine"));
}

TEST_F(AgentOfVf, WithoutAnAgentNothingCanBeAsked) {
    ask();
    connect();
    ask();
    ASSERT_EQ(answers.size(), 2u);
    for (const std::string& answer : answers) EXPECT_THAT(answer, HasSubstr("VGPU-305: gpu0/vf1"));
}

TEST_F(AgentOfVf, AnAnswerThatDoesNotComeIsATimeOut) {
    serve();
    ask();
    for (int i = 0; i < 15; ++i) {
        pass(1s);
        emit(status_line());
    }
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_THAT(answers[0], HasSubstr("VGPU-604: gpu0/vf1: self-test: no answer"));
    emit(result_line(1));
    EXPECT_EQ(answers.size(), 1u);
    EXPECT_TRUE(session.view().is_connected);
}

TEST_F(AgentOfVf, LossSilenceMisbehaviourAndANewAgentAllEndWhatWasAsked) {
    const std::vector<std::function<void()>> ends{
        [this] { session.on_input({.path = kPath, .kind = AgentInput::Kind::Gone}); },
        [this] { pass(AgentSession::kSilence); }, [this] { emit(hello_line("false")); },
        [this] { emit("garbage\n"); }};
    for (const auto& end : ends) {
        serve();
        session.ask(AgentRequest::Quiesce, 300s, [this](const Result<AgentReport>& report) {
            answers.push_back(text_of(report.error()));
        });
        std::ignore = session.take_changes();
        end();
        EXPECT_FALSE(session.view().is_connected);
        EXPECT_EQ(session.take_changes().back().first, EventKind::AgentLost);
    }
    ASSERT_EQ(answers.size(), 4u);
    for (const std::string& answer : answers) EXPECT_THAT(answer, HasSubstr("VGPU-305"));
    EXPECT_EQ(session.view().kernel, "6.12.57") << "the last one seen is still named";
    EXPECT_EQ(session.view().health, "");
}

TEST_F(AgentOfVf, OneThatWasSilentIsWelcomedAgainWhenItSpeaks) {
    serve();
    pass(AgentSession::kSilence);
    EXPECT_FALSE(session.view().is_connected);
    place().sent.clear();
    emit(status_line());
    EXPECT_THAT(place().sent, HasSubstr("welcome"));
    emit(hello_line());
    EXPECT_TRUE(session.view().is_connected);
    EXPECT_EQ(session.view().misbehaved, 0u);
}

TEST_F(AgentOfVf, RequestsAreBounded) {
    serve();
    for (std::size_t i = 0; i <= AgentSession::kMaxOpenRequests; ++i) ask();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_THAT(answers[0], HasSubstr("VGPU-304"));
}

TEST_F(AgentOfVf, AsManyThawsHaveRoomBesideThem) {
    serve();
    for (std::size_t i = 0; i < AgentSession::kMaxOpenRequests; ++i) ask(AgentRequest::Quiesce);
    for (std::size_t i = 0; i < AgentSession::kMaxOpenRequests; ++i) ask(AgentRequest::Thaw);
    EXPECT_TRUE(answers.empty());
    ask(AgentRequest::Thaw);
    EXPECT_EQ(answers.size(), 1u);
}

TEST_F(AgentOfVf, AClientThatDoesNotReadIsDisconnected) {
    serve();
    port.is_read = false;
    ask();
    expect_shut();
    EXPECT_EQ(answers.size(), 1u);
}

}  // namespace
}  // namespace vgpu::daemon
