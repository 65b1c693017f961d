// SPDX-License-Identifier: MIT
#include "daemon/service/agents/agents.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace vgpu::daemon {

namespace {

constexpr std::string_view kVfSocketEnd = ".sock";
constexpr std::uint64_t kDefaultTimeoutMs = 60'000;
constexpr Range kTimeoutsMs{100, 300'000};

}  // namespace

/// Steps the sessions only if one of them may have work, because there may be hundreds.
void Agents::step() {
    const auto& gpus = manager_.gpus();
    followed_.resize(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i)
        if (gpus[i]->is_newer(followed_[i])) follow(*gpus[i]);
    for (const AgentInput& input : port_.take()) route(input);
    for (AdminEvent& due : fold_.take_due(clock_.now())) admin_events_.push_back(std::move(due));
    if (!is_step_due_ && (!next_step_ || clock_.now() < *next_step_)) return;
    for (auto& [target, agent] : agents_) {
        agent.session->step();
        for (auto& [kind, text] : agent.session->take_changes())
            report({target.gpu, target.vf, kind, std::move(text)});
    }
    is_step_due_ = false;
    next_step_ = earliest();
}

Agents::GuestIdentity Agents::identity_of(const VfView& view, const GuestIdentity& before) {
    const std::uint64_t claim = view.record.owner.generation;
    const bool was_claimed = before.vf == view.record.spec.uuid && before.was_claimed;
    return {.vf = view.record.spec.uuid,
            .generation = view.active.generation,
            .claim = claim,
            .was_claimed = was_claimed || claim != 0};
}

bool Agents::is_same_guest(const GuestIdentity& before, const GuestIdentity& now) {
    const bool has_same_owner = before.claim == now.claim || !before.was_claimed;
    return before.vf == now.vf && before.generation == now.generation && has_same_owner;
}

/// Erases a replaced session before open(), because the new session uses the same socket path.
void Agents::follow(const GpuHost& gpu) {
    const auto seen = gpu.snapshot();
    // agents_ and seen->vfs are both in the order of VF numbers, so one pass compares them
    auto agent = agents_.lower_bound({.gpu = gpu.id(), .vf = 0});
    const auto is_of_gpu = [&] { return agent != agents_.end() && agent->first.gpu == gpu.id(); };
    for (const auto& [vf, view] : seen->vfs) {
        while (is_of_gpu() && agent->first.vf < vf) agent = agents_.erase(agent);
        const bool is_known = is_of_gpu() && agent->first.vf == vf;
        const GuestIdentity before = is_known ? agent->second.guest : GuestIdentity{};
        const GuestIdentity now = identity_of(view, before);
        if (is_known && is_same_guest(before, now)) {
            agent->second.guest = now;
            ++agent;
            continue;
        }
        if (is_known) agent = agents_.erase(agent);
        if (view.socket.ends_with(kVfSocketEnd)) open({.gpu = gpu.id(), .vf = vf}, view, now);
    }
    while (is_of_gpu()) agent = agents_.erase(agent);
}

void Agents::end() {
    for (auto& [target, agent] : agents_) agent.session->drop_requests();
    agents_.clear();
}

/// If the socket cannot be opened, keeps the session without a socket, so that the failure is
/// reported only once.
void Agents::open(const Target& target, const VfView& view, const GuestIdentity& guest) {
    const std::string stem = view.socket.substr(0, view.socket.size() - kVfSocketEnd.size());
    auto session = std::make_unique<AgentSession>(fmt::format("{}/vf{}", target.gpu, target.vf),
                                                  stem + ".agent.sock", port_, clock_);
    if (const auto opened = session->listen(); !opened)
        report({target.gpu, target.vf, EventKind::NoAgentSocket, opened.error().cause});
    agents_[target] = {.guest = guest, .session = std::move(session)};
    is_step_due_ = true;
}

void Agents::route(const AgentInput& input) {
    is_step_due_ = true;
    for (auto& [target, agent] : agents_)
        if (agent.session->path() == input.path) return agent.session->on_input(input);
}

std::optional<Nanoseconds> Agents::next_step() const {
    if (is_step_due_) return clock_.now();
    const auto due = fold_.next_due();
    if (!due || !next_step_) return due ? due : next_step_;
    return std::min(*due, *next_step_);
}

void Agents::report(AdminEvent admin_event) {
    if (fold_.admits(admin_event, clock_.now())) admin_events_.push_back(std::move(admin_event));
}

std::optional<Nanoseconds> Agents::earliest() const {
    std::optional<Nanoseconds> next;
    for (const auto& [target, agent] : agents_)
        if (const auto at = agent.session->next_step()) next = next ? std::min(*next, *at) : *at;
    return next;
}

void Agents::ask(const Target& target, AgentRequest request, const Options& options,
                 AgentSession::Done done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 1> kKnown{"timeout_ms"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY(const auto timeout_ms, reader.number("timeout_ms", kTimeoutsMs));
        const auto at = agents_.find(target);
        if (at == agents_.end())
            return fail(ErrorId::NoAgent,
                        fmt::format("{}/vf{} has no socket for an agent", target.gpu, target.vf));
        is_step_due_ = true;
        at->second.session->ask(
            request, std::chrono::milliseconds(timeout_ms.value_or(kDefaultTimeoutMs)), done);
        return {};
    });
}

AgentView Agents::view(const Target& target) const {
    const auto at = agents_.find(target);
    return at == agents_.end() ? AgentView{} : at->second.session->view();
}

std::vector<AdminEvent> Agents::take_admin_events() {
    return std::exchange(admin_events_, {});
}

}  // namespace vgpu::daemon
