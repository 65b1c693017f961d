// SPDX-License-Identifier: MIT
//
// AgentSession: the host's side of the conversation with the agent of one VF. The agent is hostile
// input: a wrong line, or more than the rate allows, is misbehaviour; the client is disconnected,
// counted, and not taken again before a pause that doubles each time.
//
//               client: welcome         hello (welcomed)
//   Listening ──────────────────▶ Welcomed ──────▶ Serving ⟲ status, result
//     ▲  ▲                          │                 │ silent for kSilence: Welcomed again
//     │  └──────── gone ────────────┴─────────────────┤
//     │                                               │ misbehaviour (also from Welcomed)
//     └────────────── the pause is over ────────── Shut ◀┘
//
// What was asked is answered once: with the agent's result, or an error when the agent goes, falls
// silent, or does not answer in time. Owned by Agents; main loop only; time is the Clock's.
#pragma once

#include "daemon/ports/agent_port.h"
#include "daemon/ports/clock.h"
#include "daemon/service/agents/message.h"
#include "daemon/service/views/views.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace vgpu::daemon {

enum class AgentAct { SelfTest, Quiesce, Thaw };
std::string_view name_of(AgentAct act);

/// All calls never block: what the client does not take at once is misbehaviour, not a queue.
class AgentSession {
public:
    using Done = std::function<void(Result<AgentReport>)>;

    /// Asked of the agent in the welcome.
    static constexpr std::uint32_t kStatusIntervalS = 2;
    /// Longer than several status intervals, since a guest may be suspended or slow.
    static constexpr Nanoseconds kSilence = std::chrono::seconds(15);
    /// An answer may be that much later than the limit the agent was given.
    static constexpr Nanoseconds kGrace = std::chrono::seconds(5);
    static constexpr Nanoseconds kFirstPause = std::chrono::seconds(1);
    static constexpr Nanoseconds kLongestPause = std::chrono::seconds(64);
    /// What a client may send: as a burst, and per second over time.
    static constexpr std::uint64_t kBurstBytes = 256 * 1024, kBytesPerSecond = 32 * 1024;
    static constexpr std::uint64_t kBurstLines = 64, kLinesPerSecond = 8;
    /// News of one agent, as a burst and over time: a guest must not fill the list of events.
    static constexpr std::uint64_t kBurstNews = 16;
    static constexpr Nanoseconds kNewsEvery = std::chrono::minutes(5);
    /// Requests that one agent may have to answer at the same time; beside them as many thaws, so
    /// that whatever was stopped can be let go on.
    static constexpr std::size_t kMaxAsked = 8;

    /// `target`: "gpu0/vf3", for messages. The socket is opened by listen().
    AgentSession(std::string target, std::string path, AgentPort& port, const Clock& clock);
    /// What is still asked gets an error.
    ~AgentSession();
    AgentSession(const AgentSession&) = delete;
    AgentSession& operator=(const AgentSession&) = delete;

    [[nodiscard]] Result<> listen() { return port_.listen(path_); }
    [[nodiscard]] const std::string& path() const { return path_; }

    /// In the order in which AgentPort::take() told them.
    void on_input(const AgentInput& input);
    void step();
    /// When step() has something to do next, if the client says nothing.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

    /// Nobody waits for answers any more.
    void forget_asked() { asked_.clear(); }
    /// Has the agent do something within `limit`.
    /// NoAgent unless it serves; WrongState if kMaxAsked are under way; TimedOut when `limit` and
    /// kGrace are over. `done` may be called before ask() returns.
    void ask(AgentAct act, std::chrono::milliseconds limit, Done done);

    [[nodiscard]] AgentView view() const;
    /// What an administrator should know, since the last call.
    std::vector<std::pair<std::string_view, std::string>> take_news();

private:
    /// As in the diagram above.
    enum class State { Listening, Welcomed, Serving, Shut };

    /// `deadline` is the agent's limit and kGrace.
    struct Asked {
        AgentAct act;
        Nanoseconds deadline{0};
        Done done;
    };
    /// Tokens that come back with time, `more` in each `every`.
    struct Bucket {
        std::uint64_t most, more;
        Nanoseconds every = std::chrono::seconds(1);
        std::uint64_t left = most;
        Nanoseconds since{0};

        void refill(Nanoseconds now);
        [[nodiscard]] bool take(std::uint64_t count);
    };

    void enter_welcomed();
    void take_bytes(std::string_view bytes);
    void take_line(std::string_view line);
    void take(AgentHello hello);
    void take(AgentStatus status);
    void take(AgentResult result);
    void misbehave(const std::string& what);
    /// Forgets what was only true while it was connected; version and driver stay in view.
    void lose(const std::string& why);
    void fail_all(ErrorId id, const std::string& why);
    /// Beyond kBurstNews and kNewsEvery they are only counted.
    void tell(std::string_view kind, std::string text);

    std::string target_, path_;
    AgentPort& port_;
    const Clock& clock_;

    State state_ = State::Listening;
    std::string line_;  ///< begun, not ended
    Bucket bytes_{kBurstBytes, kBytesPerSecond}, lines_{kBurstLines, kLinesPerSecond};
    AgentHello hello_;
    AgentStatus status_;
    Nanoseconds seen_at_{0}, open_at_{0};
    Nanoseconds pause_ = kFirstPause;
    std::uint64_t misbehaved_ = 0;
    std::uint64_t next_id_ = 1;
    std::map<std::uint64_t, Asked> asked_;
    std::vector<std::pair<std::string_view, std::string>> news_;
    Bucket tellings_{kBurstNews, 1, kNewsEvery};
    std::uint64_t untold_ = 0;
};

}  // namespace vgpu::daemon
