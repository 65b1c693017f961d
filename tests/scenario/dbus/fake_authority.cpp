// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/fake_authority.h"

#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace vgpu::daemon::testing {

namespace {

constexpr const char* kPolkit = "org.freedesktop.PolicyKit1";

}  // namespace

std::string fake_authority_rules() {
    return fmt::format(R"(<policy user="{}"><allow own="{}"/></policy>
  <policy context="default"><allow send_destination="{}"/></policy>)",
                       ::geteuid(), kPolkit, kPolkit);
}

FakeAuthority::FakeAuthority(std::unique_ptr<sdbus::IConnection> bus)
    : bus_(std::move(bus)),
      object_(sdbus::createObject(*bus_, "/org/freedesktop/PolicyKit1/Authority")) {
    object_->registerMethod("CheckAuthorization")
        .onInterface("org.freedesktop.PolicyKit1.Authority")
        .implementedAs(
            [this](sdbus::Result<Answer>&& result, const Subject& subject,
                   const std::string& action, const Details&, std::uint32_t flags,
                   const std::string&) { answer(std::move(result), subject, action, flags); });
    object_->finishRegistration();
    bus_->requestName(kPolkit);
    bus_->enterEventLoopAsync();
}

FakeAuthority::~FakeAuthority() {
    bus_->leaveEventLoop();
}

void FakeAuthority::say(bool yes) {
    const std::scoped_lock lock(mutex_);
    says_yes_ = yes;
}

void FakeAuthority::keep_open(const std::string& action) {
    const std::scoped_lock lock(mutex_);
    kept_action_ = action;
}

std::size_t FakeAuthority::open_questions() {
    const std::scoped_lock lock(mutex_);
    return kept_.size();
}

void FakeAuthority::say_yes_to_open_ones() {
    const std::scoped_lock lock(mutex_);
    for (const auto& one : std::exchange(kept_, {}))
        one.returnResults(Answer{true, false, Details{}});
}

std::vector<FakeAuthority::Question> FakeAuthority::take_questions() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(questions_, {});
}

std::vector<std::string> FakeAuthority::take_actions() {
    std::vector<std::string> actions;
    for (const Question& question : take_questions()) actions.push_back(question.action);
    return actions;
}

void FakeAuthority::answer(sdbus::Result<Answer>&& result, const Subject& subject,
                           const std::string& action, std::uint32_t flags) {
    const std::scoped_lock lock(mutex_);
    const Facts& facts = subject.get<1>();
    const auto name = facts.find("name");
    questions_.push_back({.kind = subject.get<0>(),
                          .name = name == facts.end() ? "" : name->second.get<std::string>(),
                          .action = action,
                          .flags = flags});
    if (action == kept_action_)
        kept_.push_back(std::move(result));
    else
        result.returnResults(Answer{says_yes_, false, Details{}});
}

}  // namespace vgpu::daemon::testing
