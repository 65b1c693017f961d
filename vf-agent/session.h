// SPDX-License-Identifier: MIT
//
// Session: the agent's side of the conversation with the host.
//
//            host is there: hello                  welcome: hello again, status every N s
//   Alone ─────────────────────────────▶ Greeted ─────────────────────────────▶ Serving
//     ▲                                     │ gone                                 │ gone: thaw,
//     └─────────────────────────────────────┴──────────────────────────────────────┘ end the task
//
// The host may read late: lines that do not fit the bounded queue are dropped; nothing waits. One
// task (self-test, quiesce) at a time; Thaw ends it. Time is passed in; one thread.
#pragma once

#include "vf-agent/messages.h"

#include <memory>

namespace vgpu::agent {

using Nanoseconds = std::chrono::nanoseconds;

/// An act under way. The destructor ends it, which may take a moment.
class Task {
public:
    virtual ~Task() = default;
    /// None until the end; a failure after the deadline. Never blocks.
    virtual std::optional<Outcome> poll(Nanoseconds now) = 0;
};

/// The machine of the agent; a fake in tests.
class Guest {
public:
    virtual ~Guest() = default;
    virtual Hello hello() = 0;
    virtual Status status() = 0;
    /// SelfTest or Quiesce, ending by `deadline`. Never null; one at a time.
    virtual std::unique_ptr<Task> start(Act act, Nanoseconds deadline) = 0;
    /// No effect unless quiesced.
    virtual Outcome thaw() = 0;
    /// If quiesced, stops new users of the VF.
    virtual void hold() = 0;
};

/// write() takes what fits and returns its size.
class Channel {
public:
    virtual ~Channel() = default;
    virtual std::size_t write(std::string_view bytes) = 0;
};

/// `guest` and `channel` must outlive it. One monotonic clock.
class Session {
public:
    /// For a host that does not read.
    static constexpr std::size_t kMaxQueue = 4 * kMaxLine;
    static constexpr Nanoseconds kTaskInterval = std::chrono::milliseconds(50);

    Session(Guest& guest, Channel& channel) : guest_(guest), channel_(channel) {}

    /// Perhaps another host: restarts and sends a hello.
    void on_host(Nanoseconds now);
    /// Ends the task, thaws, drops lines. Also at the agent's end.
    void on_host_gone();
    /// Ignores a line above kMaxLine.
    void on_bytes(std::string_view bytes, Nanoseconds now);
    /// Sends due status, polls the task, writes lines.
    void step(Nanoseconds now);

    /// Wait for room in the channel, then step().
    [[nodiscard]] bool wants_write() const { return !queue_.empty(); }
    /// None: not before the host sends something.
    [[nodiscard]] std::optional<Nanoseconds> next_step() const;

private:
    enum class State { Alone, Greeted, Serving };

    void take_line(std::string_view line, Nanoseconds now);
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
    /// Whole lines; the first may be partly written.
    std::string queue_;
    Nanoseconds interval_{0}, next_status_{0};
    std::unique_ptr<Task> task_;
    std::uint64_t task_id_ = 0;
    /// With a task: its begin and next poll.
    Nanoseconds task_since_{0}, next_poll_{0};
};

}  // namespace vgpu::agent
