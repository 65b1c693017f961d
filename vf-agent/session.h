// SPDX-License-Identifier: MIT
//
// Session: the agent's side of the conversation with the host.
//
//            host is there: hello                  welcome: hello again, status every N s
//   Alone ─────────────────────────────▶ Greeted ─────────────────────────────▶ Serving
//     ▲                                     │ gone                                 │ gone: thaw,
//     └─────────────────────────────────────┴──────────────────────────────────────┘ end the task
//
// The host is trusted with the VF, but may read late: a line that does not fit into the bounded
// queue is dropped, and nothing ever waits. One task (self-test, quiesce) at a time; Thaw ends it.
// Time is passed in. main.cpp drives it; one thread.
#pragma once

#include "vf-agent/messages.h"

#include <memory>

namespace vgpu::agent {

using Nanoseconds = std::chrono::nanoseconds;

/// An act under way. The destructor ends it, which may take a moment (a child is killed).
class Task {
public:
    virtual ~Task() = default;
    /// The outcome once the task has ended, else empty.
    /// Never blocks. The task knows its deadline; after it the outcome is a failure.
    virtual std::optional<Outcome> poll(Nanoseconds now) = 0;
};

/// The machine that the agent serves. Tests provide one without files and processes.
class Guest {
public:
    virtual ~Guest() = default;
    virtual Hello hello() = 0;
    virtual Status status() = 0;
    /// Starts Act::SelfTest or Act::Quiesce, which must end by `deadline`. Never null; Session has
    /// at most one task at a time.
    virtual std::unique_ptr<Task> start(Act act, Nanoseconds deadline) = 0;
    /// Resumes a quiesced guest; without effect otherwise.
    virtual Outcome thaw() = 0;
    /// If quiesced, stops processes that have opened the VF since.
    virtual void hold() = 0;
};

/// The way to the host. write() takes as many bytes as there is room for and returns their number.
class Channel {
public:
    virtual ~Channel() = default;
    virtual std::size_t write(std::string_view bytes) = 0;
};

/// `guest` and `channel` must outlive it. All times are from one monotonic clock with any start.
class Session {
public:
    /// Bytes that may wait for a host that does not read.
    static constexpr std::size_t kMaxQueue = 4 * kMaxLine;
    static constexpr Nanoseconds kTaskInterval = std::chrono::milliseconds(50);

    Session(Guest& guest, Channel& channel) : guest_(guest), channel_(channel) {}

    /// The host side was opened, perhaps by another host: resets the session and sends a hello.
    void on_host(Nanoseconds now);
    /// Ends the task, thaws, and drops unwritten lines. Also called when the agent ends.
    void on_host_gone();
    /// Takes input in pieces of any size. Ignores a line that does not fit kMaxLine.
    void on_bytes(std::string_view bytes, Nanoseconds now);
    /// Sends a status that is due, polls the task, and writes queued lines.
    void step(Nanoseconds now);

    /// The loop should wait until the channel has room, then call step().
    [[nodiscard]] bool wants_write() const { return !queue_.empty(); }
    /// When step() has work to do next; empty: not before the host sends something.
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
    /// Whole lines, except that the first may have been written in part.
    std::string queue_;
    Nanoseconds interval_{0}, next_status_{0};
    std::unique_ptr<Task> task_;
    std::uint64_t task_id_ = 0;
    /// Valid only with a task: when it began, and when to poll it again.
    Nanoseconds task_since_{0}, next_poll_{0};
};

}  // namespace vgpu::agent
