// SPDX-License-Identifier: MIT
#include "vf-agent/linux_guest.h"

#include "vf-agent/child_task.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>

namespace vgpu::agent {

namespace {

/// The task of a request that cannot start: fails at the first poll().
class FailedTask final : public Task {
public:
    explicit FailedTask(std::string why) : why_(std::move(why)) {}
    std::optional<Outcome> poll(Nanoseconds) override {
        return Outcome{.is_ok = false, .text = why_};
    }

private:
    std::string why_;
};

}  // namespace

/// Freezes the processes that use the VF. Each poll() also freezes processes that have begun to use
/// the VF since the last poll(). Succeeds when all these processes have stopped, and a poll() has
/// found no more of them. If the task fails or is destroyed early, the destructor thaws the
/// processes. After a success, the host waits until the device has no work of the VF.
class LinuxGuest::Quiesce final : public Task {
public:
    Quiesce(LinuxGuest& guest, Nanoseconds deadline) : guest_(guest), deadline_(deadline) {}
    ~Quiesce() override {
        if (!is_done_) static_cast<void>(guest_.thaw());
    }

    std::optional<Outcome> poll(Nanoseconds now) override {
        const auto found = guest_.freeze_users();
        if (!found) return Outcome{.is_ok = false, .text = found.error()};
        // a process may have forked between the scan and its move; a later scan finds the child
        if (*found == 0 && guest_.freezer_.is_frozen()) {
            is_done_ = true;
            return Outcome{.is_ok = true,
                           .text = fmt::format("{} processes are stopped", guest_.freezer_.size())};
        }
        if (now < deadline_) return {};
        return Outcome{.is_ok = false, .text = "a process did not stop in time; all continue"};
    }

private:
    LinuxGuest& guest_;
    Nanoseconds deadline_;
    bool is_done_ = false;
};

Hello LinuxGuest::hello() {
    return {.agent = VGPU_VERSION,
            .kernel = facts_.kernel_release(),
            .rocr = facts_.rocr_version(),
            .driver = facts_.driver(),
            .vf = facts_.vf(),
            .is_welcomed = false};
}

Status LinuxGuest::status() {
    log_.read();
    return {.driver = facts_.driver(),
            .vf = facts_.vf(),
            .resets = log_.resets(),
            .errors = log_.errors(),
            .last_error = log_.last_error(),
            .processes = facts_.processes(),
            .is_quiesced = is_quiesced_};
}

std::unique_ptr<Task> LinuxGuest::start(Request request, Nanoseconds deadline) {
    if (request == Request::SelfTest) {
        if (is_quiesced_) return std::make_unique<FailedTask>("the VF is quiesced: thaw it first");
        return std::make_unique<ChildTask>(
            std::vector<std::string>{"/proc/self/exe", "--self-test"}, deadline);
    }
    if (!freezer_.is_available())
        return std::make_unique<FailedTask>("this guest has no cgroup v2 freezer");
    is_quiesced_ = true;
    return std::make_unique<Quiesce>(*this, deadline);
}

tl::expected<std::size_t, std::string> LinuxGuest::freeze_users() {
    std::optional<std::vector<int>> users = facts_.users();
    if (!users)
        return tl::make_unexpected(
            std::string("too many processes or open files to find all users of the VF"));
    // an agent that has frozen itself cannot thaw
    std::erase(*users, ::getpid());
    return freezer_.freeze(*users);
}

void LinuxGuest::refreeze_users() {
    if (is_quiesced_) static_cast<void>(freeze_users());
}

Outcome LinuxGuest::thaw() {
    const std::size_t count = freezer_.size();
    freezer_.thaw();
    is_quiesced_ = false;
    return {.is_ok = true, .text = fmt::format("{} processes resumed", count)};
}

}  // namespace vgpu::agent
