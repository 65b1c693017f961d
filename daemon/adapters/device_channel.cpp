// SPDX-License-Identifier: MIT
#include "daemon/adapters/device_channel.h"

#include "daemon/adapters/event_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace vgpu::daemon::adapters {

namespace {

/// As VGPU_PF_IOC, for a struct whose size is known only at run time.
unsigned long ioctl_code(vgpu_pf_op op, std::size_t bytes) {
    return _IOC(_IOC_READ | _IOC_WRITE, VGPU_PF_IOC_TYPE, op, bytes);
}

/// Interrupts a system call of this thread by a signal after `limit`. Repeats the signal, because a
/// signal before the call has no effect. Uses a signal, because poll() cannot limit the time of an
/// ioctl, and a helper thread could stay blocked in the ioctl.
class Deadline {
public:
    explicit Deadline(std::chrono::milliseconds limit) {
        struct sigaction action {};
        action.sa_handler = [](int) {};  // no SA_RESTART: the call ends with EINTR
        ::sigaction(kSignal, &action, nullptr);
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = kSignal;
        event._sigev_un._tid = ::gettid();
        is_armed_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
        if (!is_armed_) return;
        itimerspec when{};
        when.it_value = to_timespec(std::max(limit, kSignalInterval));  // 0 would disarm
        when.it_interval = to_timespec(kSignalInterval);
        ::timer_settime(timer_, 0, &when, nullptr);
    }
    ~Deadline() {
        if (is_armed_) ::timer_delete(timer_);
    }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;

private:
    static constexpr int kSignal = SIGURG;  // ignored by default: a late signal is harmless
    static constexpr std::chrono::milliseconds kSignalInterval{50};

    static timespec to_timespec(std::chrono::milliseconds time) {
        return {.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
    }

    timer_t timer_{};
    bool is_armed_ = false;
};

/// True if the channel is of no further use: the device is gone, interrupt() has cancelled the
/// requests of the file, the PF core did not answer in time, or the driver does not know the ioctl.
bool is_channel_lost(int error) {
    return error == ENODEV || error == ECANCELED || error == EINTR || error == ENOTTY;
}

}  // namespace

tl::unexpected<Error> DeviceChannel::lost(std::string_view what, int code) const {
    return fail_errno(ErrorId::PfLost, code, fmt::format("{}: {}", path_, what));
}

Result<std::unique_ptr<UapiChannel>> DeviceChannel::open(const std::string& path,
                                                         const Wakeup& interrupted) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!fd.is_open())
        return fail_errno(ErrorId::PfLost, errno, fmt::format("{}: cannot open", path));
    std::unique_ptr<DeviceChannel> channel(new DeviceChannel(path, std::move(fd)));
    // UapiClient::interrupt() may have been called before the channel existed
    pollfd raised{.fd = interrupted.fd(), .events = POLLIN, .revents = 0};
    if (::poll(&raised, 1, 0) == 1) channel->interrupt();
    return std::unique_ptr<UapiChannel>(std::move(channel));
}

std::string DeviceChannel::error_text() const {
    vgpu_pf_error error{};
    error.size = sizeof error;
    if (::ioctl(device_.get(), ioctl_code(VGPU_PF_OP_GET_ERROR, sizeof error), &error) != 0)
        return "";
    error.message[sizeof error.message - 1] = '\0';
    return error.message;
}

Result<UapiReply> DeviceChannel::exchange(const UapiRequest& request) {
    UapiReply reply{.body = {request.body.begin(), request.body.end()}, .fds = {}};
    const Deadline deadline(request.limit);
    const int result =
        ::ioctl(device_.get(), ioctl_code(request.op, request.body.size()), reply.body.data());
    const int error = errno;
    if (result == 0) return reply;
    const std::string words = error_text();
    if (error == EINTR) return lost("no answer from vgpu_pf", ETIMEDOUT);
    if (is_channel_lost(error)) return lost(words.empty() ? "vgpu_pf" : words, error);
    return refused(-error, words);
}

Result<std::unique_ptr<EventPort>> DeviceChannel::open_events() {
    vgpu_pf_event_ring_info info{};
    info.size = sizeof info;
    TRY(const UapiReply reply,
        exchange({.op = VGPU_PF_OP_GET_EVENT_RING,
                  .body = std::as_bytes(std::span<vgpu_pf_event_ring_info, 1>(&info, 1)),
                  .limit = kRingLimit}));
    std::memcpy(&info, reply.body.data(), sizeof info);
    UniqueFd memory(::fcntl(device_.get(), F_DUPFD_CLOEXEC, 0));
    UniqueFd wakeup(::fcntl(device_.get(), F_DUPFD_CLOEXEC, 0));
    if (!memory.is_open() || !wakeup.is_open()) return lost("no file descriptors left", errno);
    auto ring = EventRing::map(info, std::move(memory), std::move(wakeup));
    if (!ring) return lost(ring.error().cause, EPROTO);
    return std::unique_ptr<EventPort>(std::move(*ring));
}

std::vector<std::string> present_pf_devices() {
    constexpr std::string_view kPrefix = "vgpu-pf";
    constexpr std::string_view kDigits = "0123456789";
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
        const std::string name = entry.path().filename();
        const bool is_pf = name.starts_with(kPrefix) && name.size() > kPrefix.size() &&
                           name.find_first_not_of(kDigits, kPrefix.size()) == std::string::npos;
        if (is_pf && entry.is_character_file(error)) found.push_back(entry.path());
    }
    // sort by number: a longer name has a larger number
    std::ranges::sort(found, {},
                      [](const std::string& path) { return std::pair(path.size(), path); });
    return found;
}

void DeviceChannel::interrupt() {
    vgpu_pf_cancel cancel{};
    cancel.size = sizeof cancel;
    (void)::ioctl(device_.get(), ioctl_code(VGPU_PF_OP_CANCEL, sizeof cancel), &cancel);
}

}  // namespace vgpu::daemon::adapters
