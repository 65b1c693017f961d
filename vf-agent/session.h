// SPDX-License-Identifier: MIT
//
// Session: the agent's side of the conversation with the host.
//
//         host connects: hello            welcome: hello again, status every N s
//   Alone ─────────────────────▶ Greeted ───────────────────────────────────────▶ Serving
//     ▲                             │                                                │
//     └─────────────────────────────┴────────────────────────────────────────────────┘
//                    host disconnects: thaw, end the task
//
// The agent never waits for the host. If the host does not read, the session drops lines that do
// not fit into its queue. There is at most one task (self-test or quiesce) at a time. A request to
// thaw ends the task. A welcome while Serving also ends the task and thaws, because the host has
// then abandoned its earlier requests. The caller passes the time. Runs in one thread.
#pragma once

#include "vf-agent/messages.h"

#include <memory>

namespace vgpu::agent {

using Nanoseconds = std::chrono::nanoseconds;

/// A running self-test or quiesce. The destructor ends it, which may take 100 ms.
class Task {
public:
    virtual ~Task() = default;
    /// The task's result; none until the task ends. A task that exceeds its deadline fails. Blocks
    /// at most 100 ms, to kill a child.
    virtual std::optional<Outcome> poll(Nanoseconds now) = 0;
};

/// The machine in which the agent runs; a fake in tests.
class Guest {
public:
    virtual ~Guest() = default;
    virtual Hello hello() = 0;
    virtual Status status() = 0;
    /// Starts SelfTest or Quiesce. The task fails if it has not ended by `deadline`. Never null.
    /// Call start() only while no other task exists.
    virtual std::unique_ptr<Task> start(Request request, Nanoseconds deadline) = 0;
    /// Resumes all stopped processes.
    virtual Outcome thaw() = 0;
    /// If the VF is quiesced, also stops processes that have begun to use the VF since then.
    virtual void refreeze_users() = 0;
};

/// The connection to the host. write() accepts the bytes that fit and returns their number.
class Channel {
public:
    virtual ~Channel() = default;
    virtual std::size_t write(std::string_view bytes) = 0;
};

/// `guest` and `channel` must outlive the session. All times are of one monotonic clock.
class Session {
public:
    /// Limit of queued bytes, for a host that does not read.
    static constexpr std::size_t kMaxQueue = 4 * kMaxLine;
    /// Time between two polls of the task.
    static constexpr Nanoseconds kTaskInterval = std::chrono::milliseconds(50);

    Session(Guest& guest, Channel& channel) : guest_(guest), channel_(channel) {}

    /// The host has connected. Restarts the conversation with a hello, because another vgpud may
    /// have connected.
    void on_host(Nanoseconds now);
    /// The host has disconnected: thaws, ends the task, and drops queued lines. Also called when
    /// the agent ends.
    void on_host_gone();
    /// Handles bytes from the host. Ignores a line longer than kMaxLine.
    void on_bytes(std::string_view bytes, Nanoseconds now);
    /// Polls the task if its poll is due, sends a status if it is due, and writes queued lines.
    void step(Nanoseconds now);

    /// True if lines are queued. The caller must then call step() when the channel has room.
    [[nodiscard]] bool needs_write() const { return !queue_.empty(); }
    /// The time of the next step() that is due; none if no step is due until the host sends
    /// something.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

private:
    /// The session answers requests in Greeted and in Serving.
    enum class State { Alone, Greeted, Serving };

    void handle_line(std::string_view line, Nanoseconds now);
    void welcome(const Welcome& from_host, Nanoseconds now);
    void serve(const Ask& ask, Nanoseconds now);
    void answer(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took);
    void send_status(Nanoseconds now);
    void send(const std::string& line);
    void flush();

    Guest& guest_;
    Channel& channel_;
    State state_ = State::Alone;
    std::string line_;          ///< incomplete input line
    bool is_too_long_ = false;  ///< true if the current input line is longer than kMaxLine
    /// Whole lines; the first may be written in part.
    std::string queue_;
    Nanoseconds interval_{0}, next_status_{0};
    std::unique_ptr<Task> task_;
    std::uint64_t task_id_ = 0;
    Nanoseconds task_since_{0};  ///< when the task began
    Nanoseconds next_poll_{0};   ///< when the next poll of the task is due
};

}  // namespace vgpu::agent
