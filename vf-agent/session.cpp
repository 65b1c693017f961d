// SPDX-License-Identifier: MIT
#include "vf-agent/session.h"

#include <algorithm>
#include <utility>

namespace vgpu::agent {

namespace {

std::chrono::milliseconds in_ms(Nanoseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

}  // namespace

/// Sends an empty line before the hello, to end a partial line that an earlier agent may have sent.
void Session::on_host(Nanoseconds now) {
    on_host_gone();
    state_ = State::Greeted;
    send("\n");
    send(encode(guest_.hello()));
    step(now);
}

void Session::on_host_gone() {
    if (state_ != State::Alone) static_cast<void>(guest_.thaw());
    state_ = State::Alone;
    task_.reset();
    line_.clear();
    queue_.clear();
    is_too_long_ = false;
    interval_ = Nanoseconds{0};
}

void Session::on_bytes(std::string_view bytes, Nanoseconds now) {
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        const std::string_view part = bytes.substr(0, end);
        if (line_.size() + part.size() >= kMaxLine)
            is_too_long_ = true;
        else
            line_ += part;
        if (end == std::string_view::npos) return;
        bytes.remove_prefix(end + 1);
        const std::string line = std::exchange(line_, {});
        if (!std::exchange(is_too_long_, false)) handle_line(line, now);
    }
}

void Session::handle_line(std::string_view line, Nanoseconds now) {
    const auto message = parse_host_line(line);
    if (!message || state_ == State::Alone) return;
    if (const auto* from_host = std::get_if<Welcome>(&*message)) welcome(*from_host, now);
    if (const auto* ask = std::get_if<Ask>(&*message)) serve(*ask, now);
    flush();
}

void Session::welcome(const Welcome& from_host, Nanoseconds now) {
    if (state_ == State::Serving) {
        static_cast<void>(guest_.thaw());
        task_.reset();
    }
    state_ = State::Serving;
    interval_ = from_host.status_interval;
    Hello hello = guest_.hello();
    hello.is_welcomed = true;
    send(encode(hello));
    send_status(now);
}

void Session::serve(const Ask& ask, Nanoseconds now) {
    if (ask.request == Request::Status) return send_status(now);
    if (ask.request == Request::Thaw) {
        if (task_) answer(task_id_, {.is_ok = false, .text = "ended by a thaw"}, {});
        task_.reset();
        return answer(ask.id, guest_.thaw(), {});
    }
    if (task_) return answer(ask.id, {.is_ok = false, .text = "busy with another request"}, {});
    task_ = guest_.start(ask.request, now + ask.limit);
    task_id_ = ask.id;
    task_since_ = next_poll_ = now;
    step(now);
}

void Session::answer(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took) {
    send(encode(id, outcome, took));
}

void Session::send_status(Nanoseconds now) {
    next_status_ = now + interval_;
    send(encode(guest_.status()));
}

void Session::send(const std::string& line) {
    // queue only whole lines, so that a host that reads late finds no partial line
    if (queue_.size() + line.size() <= kMaxQueue) queue_ += line;
}

void Session::flush() {
    if (queue_.empty()) return;
    queue_.erase(0, std::min(queue_.size(), channel_.write(queue_)));
}

void Session::step(Nanoseconds now) {
    if (state_ == State::Alone) return;
    if (task_ && now >= next_poll_) {
        next_poll_ = now + kTaskInterval;
        if (const auto outcome = task_->poll(now)) {
            answer(task_id_, *outcome, in_ms(now - task_since_));
            task_.reset();
        }
    }
    if (interval_ > Nanoseconds{0} && now >= next_status_) {
        guest_.refreeze_users();
        send_status(now);
    }
    flush();
}

std::optional<Nanoseconds> Session::next_step() const {
    std::optional<Nanoseconds> next;
    if (state_ == State::Serving && interval_ > Nanoseconds{0}) next = next_status_;
    if (task_) next = next ? std::min(*next, next_poll_) : next_poll_;
    return next;
}

}  // namespace vgpu::agent
