// SPDX-License-Identifier: MIT
#include "vf-agent/session.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace vgpu::agent {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

/// A task that ends when the test says so.
struct FakeTask final : Task {
    FakeTask(std::optional<Outcome>& outcome_, int& ended_) : outcome(outcome_), ended(ended_) {}
    ~FakeTask() override { ++ended; }
    std::optional<Outcome> poll(Nanoseconds) override { return outcome; }
    std::optional<Outcome>& outcome;
    int& ended;
};

struct FakeGuest final : Guest {
    Hello hello() override { return {}; }
    Status status() override { return {}; }
    std::unique_ptr<Task> start(Request, Nanoseconds) override {
        ++started;
        return std::make_unique<FakeTask>(outcome, ended);
    }
    Outcome thaw() override {
        ++thawed;
        return {.is_ok = true, .text = "thawed"};
    }
    void refreeze_users() override { ++held; }

    std::optional<Outcome> outcome;
    int started = 0, ended = 0, thawed = 0, held = 0;
};

struct FakeChannel final : Channel {
    std::size_t write(std::string_view bytes) override {
        const std::size_t count = std::min(bytes.size(), room);
        room -= count;
        text += bytes.substr(0, count);
        return count;
    }
    std::size_t room = SIZE_MAX;
    std::string text;
};

class AgentSession : public ::testing::Test {
protected:
    /// The types of the lines written since the last call; results with their id.
    std::vector<std::string> said() {
        std::vector<std::string> types;
        std::istringstream lines(std::exchange(channel.text, {}));
        for (std::string line; std::getline(lines, line);) {
            if (line.empty()) continue;
            const Json json = Json::parse(line);
            std::string type = json.at("type");
            if (type == "result") type += " " + json.at("id").dump() + " " + json.at("ok").dump();
            if (type == "hello" && json.at("welcomed").get<bool>()) type += " welcomed";
            types.push_back(type);
        }
        return types;
    }
    void hear(const std::string& line) { session.on_bytes(line + "\n", now); }
    void ask(int id, const std::string& what) {
        hear(R"({"type":"ask","limit_ms":1000,"id":)" + std::to_string(id) + R"(,"what":")" + what +
             "\"}");
    }
    void serve() {
        session.on_host(now);
        hear(R"({"type":"welcome","protocol":1,"status_interval_s":5})");
        static_cast<void>(said());
    }

    FakeGuest guest;
    FakeChannel channel;
    Session session{guest, channel};
    Nanoseconds now = 100s;
};

TEST_F(AgentSession, GreetsAHostAndAnswersItsWelcome) {
    session.on_host(now);
    EXPECT_THAT(said(), ElementsAre("hello"));
    hear(R"({"type":"welcome","protocol":1,"status_interval_s":5})");
    EXPECT_THAT(said(), ElementsAre("hello welcomed", "status"));
}

TEST_F(AgentSession, SendsAStatusAtTheIntervalTheHostWants) {
    serve();
    EXPECT_EQ(session.next_step(), now + 5s);
    session.step(now += 4s);
    EXPECT_THAT(said(), ElementsAre());
    session.step(now += 1s);
    EXPECT_THAT(said(), ElementsAre("status"));
    hear(R"({"type":"welcome","protocol":1,"status_interval_s":0})");
    EXPECT_THAT(said(), ElementsAre("hello welcomed", "status"));
    EXPECT_EQ(session.next_step(), std::nullopt);
    ask(1, "status");
    EXPECT_THAT(said(), ElementsAre("status"));
}

TEST_F(AgentSession, AHostThatDoesNotReadIsNeverWaitedForAndTheQueueIsBounded) {
    serve();
    channel.room = 10;
    for (int i = 0; i < 10'000; ++i) session.step(now += 5s);
    EXPECT_TRUE(session.needs_write());
    channel.room = SIZE_MAX;
    session.step(now);
    EXPECT_LE(channel.text.size(), Session::kMaxQueue + 10);
    EXPECT_EQ(channel.text.back(), '\n') << "only whole lines are left out";
}

TEST_F(AgentSession, OneTaskAtATimeAndItsResultComesOnce) {
    serve();
    ask(1, "self-test");
    ask(2, "quiesce");
    EXPECT_EQ(guest.started, 1);
    EXPECT_THAT(said(), ElementsAre("result 2 false"));
    guest.outcome = Outcome{.is_ok = true, .text = "fine"};
    session.step(now += 50ms);
    session.step(now += 50ms);
    EXPECT_THAT(said(), ElementsAre("result 1 true"));
}

TEST_F(AgentSession, AThawEndsWhatIsUnderWay) {
    serve();
    ask(1, "quiesce");
    ask(2, "thaw");
    EXPECT_EQ(guest.ended, 1);
    EXPECT_THAT(said(), ElementsAre("result 1 false", "result 2 true"));
}

TEST_F(AgentSession, LosingTheHostThawsAndEndsTheTask) {
    serve();
    ask(1, "quiesce");
    const int before = guest.thawed;
    session.on_host_gone();
    EXPECT_EQ(guest.thawed, before + 1);
    EXPECT_EQ(guest.ended, 1);
    EXPECT_EQ(session.next_step(), std::nullopt);
    session.step(now += 100s);
    EXPECT_THAT(said(), ElementsAre());
}

TEST_F(AgentSession, ANewHostOnAConnectionThatNeverBrokeThawsToo) {
    serve();
    const int before = guest.thawed;
    hear(R"({"type":"welcome","protocol":1,"status_interval_s":5})");
    EXPECT_EQ(guest.thawed, before + 1);
}

TEST_F(AgentSession, LinesMayComeInPiecesAndNonsenseIsPassedOver) {
    serve();
    session.on_bytes("garbage\n\n{\"type\":\"ask\",\"id\":1,", now);
    session.on_bytes("\"what\":\"thaw\",\"limit_ms\":1}\n", now);
    EXPECT_THAT(said(), ElementsAre("result 1 true"));
    session.on_bytes(std::string(3 * kMaxLine, 'x'), now);
    session.on_bytes("\n", now);
    ask(2, "thaw");
    EXPECT_THAT(said(), ElementsAre("result 2 true"));
}

TEST_F(AgentSession, HoldsThoseThatComeWhileQuiesced) {
    serve();
    session.step(now += 5s);
    EXPECT_EQ(guest.held, 1);
}

}  // namespace
}  // namespace vgpu::agent
