// SPDX-License-Identifier: MIT
#include "daemon/engines/kubernetes/socket_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <array>
#include <cerrno>
#include <cstring>

namespace vgpu::kubernetes {

Result<std::unique_ptr<SocketWatch>> SocketWatch::start(const std::string& directory,
                                                        const std::string& name,
                                                        std::function<void()> on_appearance) {
    daemon::adapters::UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!fd.is_open() ||
        ::inotify_add_watch(fd.get(), directory.c_str(), IN_CREATE | IN_MOVED_TO) < 0)
        return fail_errno(ErrorId::System, errno, "cannot watch " + directory);
    return std::unique_ptr<SocketWatch>(
        new SocketWatch(std::move(fd), name, std::move(on_appearance)));
}

SocketWatch::SocketWatch(daemon::adapters::UniqueFd fd, std::string name,
                         std::function<void()> on_appearance)
    : fd_(std::move(fd)),
      name_(std::move(name)),
      on_appearance_(std::move(on_appearance)),
      thread_([this] { run(); }) {}

SocketWatch::~SocketWatch() {
    end_.raise();
    thread_.join();
}

void SocketWatch::read_events() {
    std::array<char, 4096> buffer{};
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    bool has_appeared = false;
    for (ssize_t at = 0; at < size;) {
        inotify_event event{};
        const char* const start = buffer.data() + at;
        // a copy, because the buffer may not be aligned for an inotify_event
        std::memcpy(&event, start, sizeof event);
        has_appeared |= event.len > 0 && name_ == start + sizeof event;
        at += static_cast<ssize_t>(sizeof event + event.len);
    }
    if (has_appeared) on_appearance_();
}

void SocketWatch::run() {
    std::array<pollfd, 2> fds{{{.fd = end_.fd(), .events = POLLIN, .revents = 0},
                               {.fd = fd_.get(), .events = POLLIN, .revents = 0}}};
    for (;;) {
        ::poll(fds.data(), fds.size(), -1);
        if (fds[0].revents != 0) return;
        if (fds[1].revents != 0) read_events();
    }
}

}  // namespace vgpu::kubernetes
