// SPDX-License-Identifier: MIT
#include "daemon/service/agents/session.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace vgpu::daemon {

namespace {

constexpr std::array<std::string_view, 3> kRequests{"self-test", "quiesce", "thaw"};

/// State of the VF's driver in the guest.
std::string_view health_of(const AgentStatus& status) {
    if (status.driver.empty()) return "no-driver";
    if (status.render_node.empty()) return "no-render-node";
    return "ok";
}

}  // namespace

std::string_view name_of(AgentRequest request) {
    return kRequests.at(static_cast<std::size_t>(request));
}

void AgentSession::Bucket::refill(Nanoseconds now) {
    constexpr Nanoseconds kLongest = std::chrono::hours(1);  // keeps the product in `gained` small
    const auto ms = [](Nanoseconds time) {
        return static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
    };
    const std::uint64_t gained = ms(std::min(now - since, kLongest)) * more / ms(every);
    if (gained == 0) return;
    left = std::min(max, left + gained);
    // keep the part of the time that gained nothing yet
    const auto used = std::chrono::milliseconds((gained * ms(every) + more - 1) / more);
    since = left == max ? now : since + used;
}

bool AgentSession::Bucket::take(std::uint64_t count) {
    if (count > left) return false;
    left -= count;
    return true;
}

AgentSession::AgentSession(std::string target, std::string path, AgentPort& port,
                           const Clock& clock)
    : target_(std::move(target)), path_(std::move(path)), port_(port), clock_(clock) {
    bytes_.since = lines_.since = report_bucket_.since = clock_.now();
}

AgentSession::~AgentSession() {
    fail_all(ErrorId::NoAgent, "the VF is gone or was replaced");
    port_.close(path_);
}

/// In Shut, drops input that was read before the disconnect.
void AgentSession::on_input(const AgentInput& input) {
    if (state_ == State::Shut) return;
    if (input.kind == AgentInput::Kind::Connected) {
        line_.clear();
        return enter_welcomed();
    }
    if (input.kind == AgentInput::Kind::Bytes) return handle_bytes(input.bytes);
    end_connection("the guest is gone");
    state_ = State::Listening;
}

void AgentSession::enter_welcomed() {
    state_ = State::Welcomed;
    if (!port_.send(path_, encode_agent_welcome(kStatusIntervalS))) misbehave("it does not read");
}

void AgentSession::handle_bytes(std::string_view bytes) {
    bytes_.refill(clock_.now());
    if (!bytes_.take(bytes.size())) return misbehave("it sends more than is allowed");
    // After a wrong line the state is Shut, and the remaining bytes are dropped.
    while (!bytes.empty() && state_ != State::Shut) {
        const std::size_t end = bytes.find('\n');
        line_ += bytes.substr(0, end);
        if (line_.size() >= kMaxAgentLine) return misbehave("it sent a line that is too long");
        if (end == std::string_view::npos) return;
        bytes.remove_prefix(end + 1);
        handle_line(std::exchange(line_, {}));
    }
}

/// Ignores an empty line: an agent that starts sends one, to end a line that an earlier agent may
/// have left incomplete.
void AgentSession::handle_line(std::string_view line) {
    if (line.empty()) return;
    auto message = parse_agent_line(line);
    if (!message) return misbehave("it sent " + message.error());
    lines_.refill(clock_.now());
    // vgpud causes the answers, so they must not use up the agent's limit
    if (!is_answer(*message) && !lines_.take(1))
        return misbehave("it sends more lines than are allowed");
    seen_at_ = clock_.now();
    std::visit([this](auto& one) { handle(std::move(one)); }, *message);
}

/// True if the message answers an open request.
bool AgentSession::is_answer(const AgentMessage& message) const {
    const auto* result = std::get_if<AgentResult>(&message);
    return result != nullptr && open_requests_.contains(result->id);
}

/// An agent whose hello does not answer vgpud's welcome has restarted, and has lost all requests.
void AgentSession::handle(AgentHello hello) {
    if (!hello.is_welcomed) {
        end_connection("the agent has restarted");
        return enter_welcomed();
    }
    const bool is_new = state_ != State::Serving;
    const bool is_same_agent = hello.agent == hello_.agent && hello.kernel == hello_.kernel;
    hello_ = std::move(hello);
    state_ = State::Serving;
    if (is_new) connected_since_ = clock_.now();
    if (is_new || !is_same_agent)
        report(EventKind::AgentConnected,
               fmt::format("vgpu-agent {}, Linux {}", hello_.agent, hello_.kernel));
}

/// Outside Serving, the status comes from an agent that was silent for too long, or that sent no
/// hello. AgentSession then sends another welcome.
void AgentSession::handle(AgentStatus status) {
    if (state_ != State::Serving) return enter_welcomed();
    status_ = std::move(status);
    // The next pause becomes short again only if the last pause ended more than kLongestPause ago.
    // Otherwise one good line between two bad lines would keep the pauses short.
    if (misbehaved_ == 0 || clock_.now() - pause_end_ > kLongestPause) pause_ = kFirstPause;
}

/// The request is erased before it is answered, because the answer may call ask().
void AgentSession::handle(AgentResult result) {
    const auto at = open_requests_.find(result.id);
    if (at == open_requests_.end()) return;  // the result is late, or nobody asked for it
    const OpenRequest asked = std::move(at->second);
    open_requests_.erase(at);
    asked.done(AgentReport{
        .is_ok = result.is_ok, .text = std::move(result.text), .duration_ms = result.duration_ms});
}

void AgentSession::misbehave(const std::string& what) {
    ++misbehaved_;
    port_.disconnect(path_);
    port_.accept_clients(path_, false);
    report(EventKind::AgentMisbehaved,
           fmt::format("disconnected for {} s: {}",
                       std::chrono::ceil<std::chrono::seconds>(pause_).count(), what));
    end_connection("the agent broke the protocol");
    state_ = State::Shut;
    pause_end_ = clock_.now() + pause_;
    pause_ = std::min(pause_ * 2, kLongestPause);
}

void AgentSession::end_connection(const std::string& why) {
    if (state_ == State::Serving) report(EventKind::AgentLost, why);
    line_.clear();
    status_ = {};
    fail_all(ErrorId::NoAgent, why);
}

void AgentSession::fail_all(ErrorId id, const std::string& why) {
    for (auto& [number, asked] : std::exchange(open_requests_, {}))
        asked.done(fail(id, fmt::format("{}: {}: {}", target_, name_of(asked.request), why)));
}

void AgentSession::report(EventKind kind, std::string text) {
    report_bucket_.refill(clock_.now());
    if (!report_bucket_.take(1)) {
        ++unreported_;
        return;
    }
    if (unreported_ > 0)
        text += fmt::format("; {} earlier events were not reported",
                            std::exchange(unreported_, std::uint64_t{0}));
    changes_.emplace_back(kind, std::move(text));
}

void AgentSession::step() {
    const Nanoseconds now = clock_.now();
    if (state_ == State::Shut && now >= pause_end_) {
        port_.accept_clients(path_, true);
        state_ = State::Listening;
    }
    if (state_ == State::Serving && now >= seen_at_ + kSilence) {
        // Keep the connection, because a suspended guest uses it again when it is resumed.
        end_connection("the agent is silent");
        state_ = State::Welcomed;
    }
    // Late requests are collected first, because an answer may call ask() and change
    // open_requests_.
    std::vector<OpenRequest> late;
    for (auto at = open_requests_.begin(); at != open_requests_.end();) {
        const bool is_late = now >= at->second.deadline;
        if (is_late) late.push_back(std::move(at->second));
        at = is_late ? open_requests_.erase(at) : std::next(at);
    }
    for (const OpenRequest& one : late)
        one.done(fail(ErrorId::TimedOut, fmt::format("{}: {}: no answer from the agent", target_,
                                                     name_of(one.request))));
}

std::optional<Nanoseconds> AgentSession::next_step() const {
    std::optional<Nanoseconds> next;
    if (state_ == State::Shut) next = pause_end_;
    if (state_ == State::Serving) next = seen_at_ + kSilence;
    for (const auto& [id, asked] : open_requests_)
        next = next ? std::min(*next, asked.deadline) : asked.deadline;
    return next;
}

void AgentSession::ask(AgentRequest request, std::chrono::milliseconds limit, Done done) {
    if (state_ != State::Serving)
        return done(fail(ErrorId::NoAgent, fmt::format("{}: no agent is connected", target_)));
    if (open_requests_.size() >=
        (request == AgentRequest::Thaw ? 2 * kMaxOpenRequests : kMaxOpenRequests))
        return done(fail(ErrorId::WrongState, fmt::format("{}: its agent has {} pending requests",
                                                          target_, open_requests_.size())));
    const std::uint64_t id = next_id_++;
    const auto limit_ms = static_cast<std::uint64_t>(limit.count());
    if (!port_.send(path_, encode_agent_ask(id, name_of(request), limit_ms))) {
        misbehave("it does not read");
        return done(
            fail(ErrorId::NoAgent, fmt::format("{}: its agent takes no requests", target_)));
    }
    open_requests_[id] = {
        .request = request, .deadline = clock_.now() + limit + kGrace, .done = std::move(done)};
}

AgentView AgentSession::view() const {
    const bool is_connected = state_ == State::Serving;
    AgentView view;
    view.socket = path_;
    view.is_connected = is_connected;
    view.connected_since = connected_since_;
    view.misbehaved = misbehaved_;
    if (hello_.agent.empty()) return view;
    view.version = hello_.agent;
    view.kernel = hello_.kernel;
    view.driver = hello_.driver;
    view.rocr = hello_.rocr;
    view.pci_address = hello_.pci_address;
    view.unique_id = hello_.unique_id;
    view.last_seen_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - seen_at_).count());
    if (!is_connected) return view;
    view.health = health_of(status_);
    view.last_error = status_.last_error;
    view.resets = status_.resets;
    view.errors = status_.errors;
    view.vram_total_bytes = status_.vram_total_bytes;
    view.vram_used_bytes = status_.vram_used_bytes;
    view.processes = status_.process_count;
    for (const AgentProcess& one : status_.processes)
        view.process_list.push_back(
            fmt::format("{} {} {} {}", one.pid, one.vram_bytes, one.queues, one.comm));
    view.is_quiesced = status_.is_quiesced;
    return view;
}

std::vector<std::pair<EventKind, std::string>> AgentSession::take_changes() {
    return std::exchange(changes_, {});
}

}  // namespace vgpu::daemon
