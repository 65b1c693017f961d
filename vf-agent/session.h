// SPDX-License-Identifier: MIT
//
// Session: the agent's side of the conversation with the host.
//
//            host is there: hello                  welcome: hello again, status every N s
//   Alone ─────────────────────────────▶ Greeted ─────────────────────────────▶ Serving
//     ▲                                     │ gone                                 │ gone: thaw,
//     └─────────────────────────────────────┴──────────────────────────────────────┘ end the task
//
// The host is trusted with the VF but not to read in time: what does not fit into a bounded queue
// is left out, nothing ever waits. One task (self-test, quiesce) at a time; Thaw ends it. Time is
// passed in. main.cpp feeds it; one thread.
#pragma once

#include "vf-agent/messages.h"

#include <memory>

namespace vgpu::agent {

using Nanoseconds = std::chrono::nanoseconds;

/// Something under way; destroying it ends it, which may take a moment (a child is killed).
class Task {
public:
    virtual ~Task() = default;
    /// How it ended, once it has.
    /// Never blocks. Its deadline is the task's own: past it, the outcome is a failure.
    virtual std::optional<Outcome> poll(Nanoseconds now) = 0;
};

/// The machine that the agent serves. Tests bring one without files and processes.
class Guest {
public:
    virtual ~Guest() = default;
    virtual Hello hello() = 0;
    virtual Status status() = 0;
    /// Act::SelfTest or Act::Quiesce, to end by `deadline`. Never null; Session has at most one
    /// task at a time.
    virtual std::unique_ptr<Task> start(Act act, Nanoseconds deadline) = 0;
    /// Ends being quiesced; without effect if nothing is.
    virtual Outcome thaw() = 0;
    /// A turn while quiesced: stops those that came since.
    virtual void hold() = 0;
};

/// The way to the host. write() takes what there is room for and returns how much that was.
class Channel {
public:
    virtual ~Channel() = default;
    virtual std::size_t write(std::string_view bytes) = 0;
};

/// `guest` and `channel` outlive it. All times are of one monotonic clock, whose start is nobody's
/// business.
class Session {
public:
    /// Bytes that may wait for a host that does not read.
    static constexpr std::size_t kMaxQueue = 4 * kMaxLine;
    static constexpr Nanoseconds kTaskInterval = std::chrono::milliseconds(50);

    Session(Guest& guest, Channel& channel) : guest_(guest), channel_(channel) {}

    /// The other end was opened, perhaps by another host: everything begins anew.
    void on_host(Nanoseconds now);
    /// Also at the end of the agent: ends the task, thaws, forgets what was not written.
    void on_host_gone();
    /// In pieces of any size. A line beyond kMaxLine is left out as a whole.
    void on_bytes(std::string_view bytes, Nanoseconds now);
    /// Statuses that are due, the end of a task, what is left to write.
    void step(Nanoseconds now);

    /// The loop should wait until the channel has room, then call step().
    [[nodiscard]] bool wants_write() const { return !queue_.empty(); }
    /// When step() has something to do next; nothing: only when the host speaks.
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
    std::string line_;  ///< begun, not ended
    bool is_too_long_ = false;
    /// Whole lines, but for the first, which may have been written in part.
    std::string queue_;
    Nanoseconds interval_{0}, next_status_{0};
    std::unique_ptr<Task> task_;
    std::uint64_t task_id_ = 0;
    /// Only with a task: when it began, and when to ask it again.
    Nanoseconds task_since_{0}, next_poll_{0};
};

}  // namespace vgpu::agent
