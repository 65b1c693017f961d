// SPDX-License-Identifier: MIT
//
// AgentSession: the host's conversation with one VF's agent. The agent may be hostile: a wrong
// line, or more input than the rate allows, is misbehaviour. AgentSession then disconnects the
// client, and accepts no client during a pause that doubles each time.
//
//               client: welcome         hello (welcomed)
//   Listening ──────────────────▶ Welcomed ──────▶ Serving ⟲ status, result
//     ▲  ▲                          │                 │ silent for kSilence: Welcomed again
//     │  └──────── gone ────────────┴─────────────────┤
//     │                                               │ misbehaviour (also from Welcomed)
//     └────────────── the pause is over ────────── Shut ◀┘
//
// An agent that restarts on the same connection also returns to Welcomed.
//
// Each request is answered once: with the agent's result, or with an error if the agent
// disconnects, falls silent or is late. Owned by Agents; runs in the main loop only.
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

enum class AgentRequest { SelfTest, Quiesce, Thaw };
std::string_view name_of(AgentRequest request);

/// Never blocks: a client that does not read at once misbehaves.
class AgentSession {
public:
    using Done = std::function<void(Result<AgentReport>)>;

    /// Interval between statuses, requested in the welcome.
    static constexpr std::uint32_t kStatusIntervalS = 2;
    /// Silence after which an agent no longer serves. This is several status intervals, because a
    /// guest may be suspended or slow.
    static constexpr Nanoseconds kSilence = std::chrono::seconds(15);
    /// Extra time for an answer, added to the limit that the agent gets.
    static constexpr Nanoseconds kGrace = std::chrono::seconds(5);
    /// First pause after misbehaviour.
    static constexpr Nanoseconds kFirstPause = std::chrono::seconds(1);
    /// Limit of the pause after misbehaviour.
    static constexpr Nanoseconds kLongestPause = std::chrono::seconds(64);
    /// Limit of the bytes that a client may send at once.
    static constexpr std::uint64_t kBurstBytes = 256 * 1024;
    /// Limit of a client's rate of bytes in the long run.
    static constexpr std::uint64_t kBytesPerSecond = 32 * 1024;
    /// Limit of the lines that a client may send at once.
    static constexpr std::uint64_t kBurstLines = 64;
    /// Limit of a client's rate of lines in the long run.
    static constexpr std::uint64_t kLinesPerSecond = 8;
    /// Limit of the changes reported at once for one agent, so that a guest cannot flood the
    /// events.
    static constexpr std::uint64_t kBurstChanges = 16;
    /// In the long run, one change is reported for an agent in each period of this length.
    static constexpr Nanoseconds kChangeEvery = std::chrono::minutes(5);
    /// Limit of requests under way per agent. A thaw is accepted up to twice this limit, so that a
    /// quiesced guest can be resumed.
    static constexpr std::size_t kMaxOpenRequests = 8;

    /// `target`: "gpu0/vf3", for messages. listen() opens the socket.
    AgentSession(std::string target, std::string path, AgentPort& port, const Clock& clock);
    /// Answers open requests with an error.
    ~AgentSession();
    AgentSession(const AgentSession&) = delete;
    AgentSession& operator=(const AgentSession&) = delete;

    [[nodiscard]] Result<> listen() { return port_.listen(path_); }
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Takes one input; call in the order of AgentPort::take().
    void on_input(const AgentInput& input);
    void step();
    /// When to call step() if the client sends nothing.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

    /// Drops open requests without answers.
    void drop_requests() { open_requests_.clear(); }
    /// Asks the agent to act within `limit`. Fails with NoAgent outside Serving or if the agent is
    /// lost, with WrongState if too many requests are under way, or with TimedOut after `limit` +
    /// kGrace. May call `done` before it returns.
    void ask(AgentRequest request, std::chrono::milliseconds limit, Done done);

    [[nodiscard]] AgentView view() const;
    /// Changes since the last call, as kind and text of events.
    std::vector<std::pair<EventKind, std::string>> take_changes();

private:
    /// As in the diagram above.
    enum class State { Listening, Welcomed, Serving, Shut };

    struct OpenRequest {
        AgentRequest request;
        Nanoseconds deadline{0};  ///< end of the agent's limit plus kGrace
        Done done;
    };
    /// Token bucket: gets `more` tokens in each period `every`, and has at most `max`.
    struct Bucket {
        std::uint64_t max, more;
        Nanoseconds every = std::chrono::seconds(1);
        std::uint64_t left = max;  ///< tokens in the bucket
        Nanoseconds since{0};      ///< time of the last refill that added tokens

        void refill(Nanoseconds now);
        [[nodiscard]] bool take(std::uint64_t count);
    };

    void enter_welcomed();
    void handle_bytes(std::string_view bytes);
    void handle_line(std::string_view line);
    void handle(AgentHello hello);
    void handle(AgentStatus status);
    void handle(AgentResult result);
    void misbehave(const std::string& what);
    /// Forgets the connection's state; version and driver stay in view().
    void end_connection(const std::string& why);
    void fail_all(ErrorId id, const std::string& why);
    /// Adds a change for take_changes(). If the limits kBurstChanges and kChangeEvery are reached,
    /// only counts the change.
    void report(EventKind kind, std::string text);

    std::string target_, path_;
    AgentPort& port_;
    const Clock& clock_;

    State state_ = State::Listening;
    std::string line_;  ///< incomplete line
    Bucket bytes_{kBurstBytes, kBytesPerSecond}, lines_{kBurstLines, kLinesPerSecond};
    AgentHello hello_;
    AgentStatus status_;
    Nanoseconds seen_at_{0};           ///< time of the last valid line
    Nanoseconds pause_end_{0};         ///< end of the latest pause
    Nanoseconds pause_ = kFirstPause;  ///< length of the next pause
    std::uint64_t misbehaved_ = 0;     ///< number of disconnects for misbehaviour
    std::uint64_t next_id_ = 1;
    std::map<std::uint64_t, OpenRequest> open_requests_;
    std::vector<std::pair<EventKind, std::string>> changes_;
    Bucket report_bucket_{kBurstChanges, 1, kChangeEvery};
    std::uint64_t unreported_ = 0;  ///< changes that were only counted since the last report
};

}  // namespace vgpu::daemon
