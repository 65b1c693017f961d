// SPDX-License-Identifier: MIT
//
// Session: the agent's side of the conversation with the host.
//
//            host is there: hello                  welcome: hello again, status every N s
//   Alone ─────────────────────────────▶ Greeted ─────────────────────────────▶ Serving
//     ▲                                     │ gone                                 │ gone: thaw,
//     └─────────────────────────────────────┴──────────────────────────────────────┘ end the task
//
// The host may read late. Lines that do not fit the bounded queue are dropped; the agent never
// waits for the host. There is one task (self-test, quiesce) at a time; Thaw ends it. The caller
// passes the time. Runs in one thread.
#pragma once

#include "vf-agent/messages.h"

#include <memory>

namespace vgpu::agent {

using Nanoseconds = std::chrono::nanoseconds;

/// A self-test or quiesce under way. The destructor ends it, which may take a moment.
class Task {
public:
    virtual ~Task() = default;
    /// None until the task ends. A task that exceeds the deadline fails. Blocks at most 100 ms, to
    /// kill a child.
    virtual std::optional<Outcome> poll(Nanoseconds now) = 0;
};

/// The machine in which the agent runs; a fake in tests.
class Guest {
public:
    virtual ~Guest() = default;
    virtual Hello hello() = 0;
    virtual Status status() = 0;
    /// Starts SelfTest or Quiesce, which must end by `deadline`. Never null. One task at a time.
    virtual std::unique_ptr<Task> start(Request request, Nanoseconds deadline) = 0;
    /// Resumes the stopped processes, if any.
    virtual Outcome thaw() = 0;
    /// If the VF is quiesced, also stops new users of the VF.
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
    static constexpr Nanoseconds kTaskInterval = std::chrono::milliseconds(50);

    Session(Guest& guest, Channel& channel) : guest_(guest), channel_(channel) {}

    /// The host has connected, perhaps not the same one as before: restarts the conversation and
    /// sends a hello.
    void on_host(Nanoseconds now);
    /// The host has disconnected: thaws, ends the task, and drops lines. Also called when the agent
    /// ends.
    void on_host_gone();
    /// Handles received bytes. Ignores a line longer than kMaxLine.
    void on_bytes(std::string_view bytes, Nanoseconds now);
    /// Polls the task and sends a status, each if it is due, and writes lines.
    void step(Nanoseconds now);

    /// True if the caller must wait for room in the channel before the next step().
    [[nodiscard]] bool needs_write() const { return !queue_.empty(); }
    /// None: no step is due until the host sends something.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

private:
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
    std::string line_;  ///< incomplete input line
    bool is_too_long_ = false;
    /// Whole lines; the first may be written in part.
    std::string queue_;
    Nanoseconds interval_{0}, next_status_{0};
    std::unique_ptr<Task> task_;
    std::uint64_t task_id_ = 0;
    /// While there is a task: its begin and its next poll.
    Nanoseconds task_since_{0}, next_poll_{0};
};

}  // namespace vgpu::agent
