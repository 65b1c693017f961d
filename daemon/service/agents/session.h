// SPDX-License-Identifier: MIT
//
// AgentSession: the host's side of the protocol with one VF's agent, which is the client of the
// VF's agent socket. The agent may be hostile. It misbehaves if it sends a wrong line, sends faster
// than allowed, or does not read. AgentSession then disconnects the client, and accepts no client
// during a pause. The pause doubles each time, up to kLongestPause.
//
//               client: welcome         hello (welcomed)
//   Listening ──────────────────▶ Welcomed ──────▶ Serving ⟲ status, result
//     ▲  ▲                          │                 │ silent for kSilence: Welcomed again
//     │  └──────── gone ────────────┴─────────────────┤
//     │                                               │ misbehaviour (also from Welcomed)
//     └────────────── the pause is over ────────── Shut ◀┘
//
// A restart of the agent on the same connection also leads from Serving to Welcomed.
//
// Each request gets one answer: the agent's result, or an error if the agent disconnects, falls
// silent or is late. Only drop_requests() drops requests without an answer. Owned by Agents; runs
// in the main loop only.
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

/// Never blocks: a client that does not take a message at once misbehaves.
class AgentSession {
public:
    using Done = std::function<void(Result<AgentReport>)>;

    /// Interval between the agent's statuses, which the welcome requests.
    static constexpr std::uint32_t kStatusIntervalS = 2;
    /// After this time without a valid line, the agent counts as not connected (Serving ends). The
    /// time is several status intervals, because a guest may be suspended or slow.
    static constexpr Nanoseconds kSilence = std::chrono::seconds(15);
    /// ask() waits this much longer than the limit that it sends to the agent.
    static constexpr Nanoseconds kGrace = std::chrono::seconds(5);
    /// First pause after misbehaviour.
    static constexpr Nanoseconds kFirstPause = std::chrono::seconds(1);
    /// Limit of the pause after misbehaviour.
    static constexpr Nanoseconds kLongestPause = std::chrono::seconds(64);
    /// Limit of the bytes that a client may send in one burst.
    static constexpr std::uint64_t kBurstBytes = 256 * 1024;
    /// Limit of a client's rate of bytes in the long run.
    static constexpr std::uint64_t kBytesPerSecond = 32 * 1024;
    /// Limit of the lines that a client may send in one burst, without the answers to open
    /// requests.
    static constexpr std::uint64_t kBurstLines = 64;
    /// Limit of a client's rate of lines in the long run.
    static constexpr std::uint64_t kLinesPerSecond = 8;
    /// Limit of the events reported in one burst for one agent, so that a guest cannot flood the
    /// event log.
    static constexpr std::uint64_t kBurstChanges = 16;
    /// In the long run, at most one event per period of this length is reported for one agent.
    static constexpr Nanoseconds kChangeEvery = std::chrono::minutes(5);
    /// Limit of requests under way per agent. For a thaw the limit is twice as high, so that other
    /// requests cannot keep a quiesced guest from being resumed.
    static constexpr std::size_t kMaxOpenRequests = 8;

    /// `target`: "gpu0/vf3", for error texts. `path`: path of the socket, which listen() opens.
    AgentSession(std::string target, std::string path, AgentPort& port, const Clock& clock);
    /// Answers open requests with an error.
    ~AgentSession();
    AgentSession(const AgentSession&) = delete;
    AgentSession& operator=(const AgentSession&) = delete;

    [[nodiscard]] Result<> listen() { return port_.listen(path_); }
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Handles one input. Call it in the order of AgentPort::take().
    void on_input(const AgentInput& input);
    /// Ends the pause, the state Serving, or requests, if their time is over.
    void step();
    /// When to call step() if the client sends nothing; none: not needed.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

    /// Drops open requests without answers.
    void drop_requests() { open_requests_.clear(); }
    /// Asks the agent to act within `limit`. Fails with NoAgent outside Serving or when the agent
    /// is lost, with WrongState if too many requests are under way, or with TimedOut after `limit`
    /// + kGrace. May call `done` before ask() returns.
    void ask(AgentRequest request, std::chrono::milliseconds limit, Done done);

    [[nodiscard]] AgentView view() const;
    /// Events since the last call, as kind and text.
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
    [[nodiscard]] bool is_answer(const AgentMessage& message) const;
    void misbehave(const std::string& what);
    /// Reports AgentLost if the state is Serving. Forgets the incomplete line and the status, and
    /// answers all requests with NoAgent. Keeps hello_, so view() still has the versions.
    void end_connection(const std::string& why);
    void fail_all(ErrorId id, const std::string& why);
    /// Adds an event for take_changes(). Above the limits kBurstChanges and kChangeEvery, only
    /// counts the event.
    void report(EventKind kind, std::string text);

    std::string target_, path_;
    AgentPort& port_;
    const Clock& clock_;

    State state_ = State::Listening;
    std::string line_;  ///< received part of an incomplete line
    Bucket bytes_{kBurstBytes, kBytesPerSecond}, lines_{kBurstLines, kLinesPerSecond};
    AgentHello hello_;
    AgentStatus status_;
    Nanoseconds connected_since_{0};   ///< when the latest Serving began
    Nanoseconds seen_at_{0};           ///< time of the last valid line
    Nanoseconds pause_end_{0};         ///< end of the latest pause
    Nanoseconds pause_ = kFirstPause;  ///< length of the next pause
    std::uint64_t misbehaved_ = 0;     ///< number of disconnects for misbehaviour
    std::uint64_t next_id_ = 1;
    std::map<std::uint64_t, OpenRequest> open_requests_;
    std::vector<std::pair<EventKind, std::string>> changes_;
    Bucket report_bucket_{kBurstChanges, 1, kChangeEvery};
    std::uint64_t unreported_ = 0;  ///< events that were only counted since the last reported one
};

}  // namespace vgpu::daemon
