// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/vfio_user/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pf-driver/confine/sealed.h"
#include "pf-driver/process/socket_watch.h"
#include "pf-driver/softgpu/base/log.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/rt_thread.h"
#include "pf-driver/softgpu/vfio_user/session.h"
#include "pf-driver/softgpu/vfio_user/socket.h"

namespace vgpu::softgpu::vfio_user {
namespace {

// Maximum number of connections of one socket that have not agreed on a version yet.
constexpr std::size_t kMaxNegotiating = 8;

// The path of a socket. The destructor removes the socket's file if the path still has this file.
class SocketName {
public:
    explicit SocketName(std::string path) : path_(std::move(path)) { record_inode(); }
    SocketName(SocketName&& other) noexcept
        : path_(std::move(other.path_)), inode_(std::exchange(other.inode_, 0)) {}
    SocketName& operator=(SocketName&&) = delete;
    ~SocketName() {
        if (inode_ != 0 && is_unchanged()) ::unlink(vgpu_sealed(path_.c_str()));
    }

    [[nodiscard]] const std::string& path() const { return path_; }
    // True if the path still has the inode that record_inode() saw.
    [[nodiscard]] bool is_unchanged() const { return inode() == inode_; }
    [[nodiscard]] bool exists() const { return inode() != 0; }
    // True if `name` is the last component of the path.
    [[nodiscard]] bool is_file(std::string_view name) const {
        return path_.substr(path_.rfind('/') + 1) == name;
    }
    void record_inode() { inode_ = inode(); }

private:
    [[nodiscard]] std::uint64_t inode() const {
        return vgpu_socket_inode(vgpu_sealed(path_.c_str()));
    }

    std::string path_;
    std::uint64_t inode_ = 0;  // inode of the socket's file; 0: no socket
};

/// All state belongs to the io thread, except is_stopping_, posted_, and the counters and BusySince
/// of context_.
class EpollServer final : public Server {
public:
    EpollServer(OwnedFd epoll, OwnedFd wake_up, OwnedFd name_watch, OwnedFd reserve,
                ServerOptions options, std::shared_ptr<const BusySince> park)
        : epoll_(std::move(epoll)),
          wake_up_(std::move(wake_up)),
          name_watch_(std::move(name_watch)),
          reserve_(std::move(reserve)),
          options_(options) {
        context_.dma_limits = options.dma_limits;
        context_.park = std::move(park);
    }
    ~EpollServer() override;

    Result<> start();
    Result<> listen(const std::string& path, Device& device) override;
    void hang_up(const Device& device) override;
    Result<> watch(int fd, std::function<void()> readable) override;
    void unwatch(int fd) override;
    void run() override;
    void stop() override;
    void post(std::function<void()> work) override;
    const Counters& counters() const override { return *context_.counters; }

private:
    // Identifies the source of an epoll event. Ids are not reused, so an event of a removed source
    // finds nothing.
    using SourceId = std::uint64_t;
    struct Watch {
        int fd = -1;
        std::function<void()> readable;
    };
    struct Listener {
        OwnedFd socket;
        SocketName name;
        ServedDevice served;
        bool is_moved_away =
            false;  // true: the last inotify event says that the file was moved away
    };
    struct Client {
        Listener* listener = nullptr;
        std::unique_ptr<Session> session;
        bool is_scheduled = false;  // true: the session's next slice (session.h) is posted
    };

    Result<SourceId> add_watch(int fd, std::function<void()> readable);
    void dispatch(const epoll_event& event);
    void serve(SourceId id, std::uint32_t events);
    void schedule(SourceId id, Client& client);
    void serve_next_slice(SourceId id);
    void resume_blocked();
    [[nodiscard]] std::optional<Nanoseconds> longest_sleep(const RtThread& rt_thread) const;
    void drop(SourceId id);
    [[nodiscard]] Channel::Loop loop_of(SourceId id, int fd);
    Result<> watch_listener(Listener& listener);
    void note_moved_sockets();
    void rebind_removed_sockets();
    void hang_up_now(const Device& device);
    void accept_from(Listener& listener);
    void refuse_without_fds(int listener);
    void add_client(Listener& listener, OwnedFd socket);
    void drop_oldest_negotiating(const Listener& listener);
    void run_posted(RtThread& rt_thread);

    const OwnedFd epoll_;
    const OwnedFd wake_up_;
    const OwnedFd name_watch_;  // readable when a socket's file may have been removed
    OwnedFd reserve_;           // see refuse_without_fds()
    const ServerOptions options_;
    SessionContext context_;
    SourceId next_id_ = 1;
    std::unordered_map<SourceId, Watch> watches_;
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::unordered_map<SourceId, Client> clients_;
    // Session::blocked_until() of each blocked client; nearly always empty
    std::map<SourceId, Session::Time> blocked_clients_;
    std::atomic<bool> is_stopping_{false};
    PiMutex posted_mutex_;
    std::vector<std::function<void()>> posted_;  // guarded by posted_mutex_
};

/// The timeout of epoll_wait(), in whole milliseconds; -1 (no timeout) for nullopt.
int timeout(std::optional<Nanoseconds> longest) {
    if (!longest) return -1;
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*longest).count());
}

/// Makes a descriptor by duplication of an open one, because a confined process cannot open a file.
OwnedFd reserve_of(const OwnedFd& open) {
    return OwnedFd(::fcntl(open.get(), F_DUPFD_CLOEXEC, 0));
}

EpollServer::~EpollServer() {
    clients_.clear();
}

Result<> EpollServer::start() {
    TRY_VOID(watch(wake_up_.get(), [this] {
        eventfd_t count = 0;
        ::eventfd_read(wake_up_.get(), &count);
    }));
    return watch(name_watch_.get(), [this] { rebind_removed_sockets(); });
}

Result<EpollServer::SourceId> EpollServer::add_watch(int fd, std::function<void()> readable) {
    const SourceId id = next_id_++;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        return fail_errno(errno, fmt::format("cannot watch descriptor {}", fd));
    watches_.emplace(id, Watch{fd, std::move(readable)});
    return id;
}

Result<> EpollServer::watch(int fd, std::function<void()> readable) {
    TRY_VOID(add_watch(fd, std::move(readable)));
    return {};
}

void EpollServer::unwatch(int fd) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    std::erase_if(watches_, [fd](const auto& entry) { return entry.second.fd == fd; });
}

Result<> EpollServer::listen(const std::string& path, Device& device) {
    TRY(OwnedFd socket, listen_at(path));
    const ResetRateLimiter limiter(options_.resets);
    auto listener = std::make_unique<Listener>(Listener{
        std::move(socket), SocketName(path), ServedDevice{device, nullptr, limiter, path}});
    TRY_VOID(watch_listener(*listener));
    listeners_.push_back(std::move(listener));
    return {};
}

/// Watches a new socket for connections, and its directory for the removal of its file.
Result<> EpollServer::watch_listener(Listener& listener) {
    const std::string& path = listener.name.path();
    if (const int error = vgpu_sealed_watch(name_watch_.get(), path.c_str()); error != 0)
        return fail_errno(-error, fmt::format("cannot watch the directory of {}", path));
    return watch(listener.socket.get(), [this, &listener] { accept_from(listener); });
}

/// Reads the inotify events of the sockets' directories, and records which sockets were moved away.
void EpollServer::note_moved_sockets() {
    constexpr std::size_t kBytes = 4096;
    std::array<char, kBytes> events{};
    for (ssize_t got = 0; (got = ::read(name_watch_.get(), events.data(), kBytes)) > 0;) {
        inotify_event event{};
        for (std::size_t at = 0; at + sizeof(event) <= static_cast<std::size_t>(got);
             at += sizeof(event) + event.len) {
            std::memcpy(&event, events.data() + at, sizeof(event));
            const std::string_view name = event.len == 0 ? "" : events.data() + at + sizeof(event);
            for (const auto& listener : listeners_)
                if (listener->name.is_file(name))
                    listener->is_moved_away = (event.mask & IN_MOVED_FROM) != 0;
        }
    }
}

/// Makes a new socket for every path whose file was removed, because no client could connect to the
/// old one. Connected clients stay. Does not replace a socket that was moved away, because vgpud
/// moves a socket to withhold the VF (daemon/adapters/platform_assignment.h).
void EpollServer::rebind_removed_sockets() {
    note_moved_sockets();
    for (const auto& listener : listeners_) {
        if (listener->name.is_unchanged() || (listener->is_moved_away && !listener->name.exists()))
            continue;
        const std::string name = listener->served.device.name();
        const std::string& path = listener->name.path();
        auto socket = listen_at(path);
        Result<> served = socket ? Result<>{} : tl::make_unexpected(socket.error());
        if (socket) {
            unwatch(listener->socket.get());
            listener->socket = std::move(*socket);
            listener->name.record_inode();
            listener->is_moved_away = false;
            served = watch_listener(*listener);
        }
        if (served)
            log::warn("{}: the socket {} was removed; it was created again", name, path);
        else
            log::error(
                "{}: the socket {} was removed and cannot be created again: {}; restart softgpu",
                name, path, served.error().message);
    }
}

void EpollServer::hang_up(const Device& device) {
    post([this, &device] { hang_up_now(device); });
}

void EpollServer::hang_up_now(const Device& device) {
    for (const auto& listener : listeners_) {
        if (&listener->served.device != &device) continue;
        while (accept_client(listener->socket.get())) continue;  // the result closes the client
        std::vector<SourceId> open;
        for (const auto& [id, client] : clients_)
            if (client.listener == listener.get()) open.push_back(id);
        if (!open.empty()) log::warn("{}: disconnected {} client(s)", device.name(), open.size());
        for (const SourceId id : open) drop(id);
    }
}

/// Runs posted work after the events of each epoll_wait(), so that a busy socket cannot starve
/// posted work.
void EpollServer::run() {
    std::array<epoll_event, 64> events{};
    RtThread rt_thread;
    while (!is_stopping_) {
        context_.work->end();
        const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                       timeout(longest_sleep(rt_thread)));
        rt_thread.woke();
        for (int i = 0; i < count; i++) {
            dispatch(events[static_cast<std::size_t>(i)]);
            rt_thread.worked();
        }
        run_posted(rt_thread);
        resume_blocked();
        rt_thread.worked();
    }
}

void EpollServer::stop() {
    is_stopping_ = true;
    ::eventfd_write(wake_up_.get(), 1);
}

void EpollServer::post(std::function<void()> work) {
    {
        const std::lock_guard lock(posted_mutex_);
        posted_.push_back(std::move(work));
    }
    ::eventfd_write(wake_up_.get(), 1);
}

void EpollServer::run_posted(RtThread& rt_thread) {
    std::vector<std::function<void()>> work;
    {
        const std::lock_guard lock(posted_mutex_);
        work.swap(posted_);
    }
    for (auto& one : work) {
        context_.work->begin(BusySince::Clock::now());
        one();
        rt_thread.worked();
    }
}

void EpollServer::dispatch(const epoll_event& event) {
    const SourceId id = event.data.u64;
    context_.work->begin(BusySince::Clock::now());
    if (const auto found = watches_.find(id); found != watches_.end()) {
        const auto readable = found->second.readable;  // a copy: the callback may unwatch its fd
        return readable();
    }
    serve(id, event.events);
}

void EpollServer::serve(SourceId id, std::uint32_t events) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    Client& client = found->second;
    Session& session = *client.session;
    // epoll reports EPOLLHUP and EPOLLERR again and again, even if the socket is not watched for
    // input. So a session that serves nothing now must be closed now, or the io thread would spin.
    const bool has_hung_up = (events & (EPOLLHUP | EPOLLERR)) != 0;
    if (has_hung_up && (session.blocked_until() || session.channel().has_backlog()))
        session.close();
    if ((events & EPOLLOUT) != 0) session.on_writable();
    if ((has_hung_up || (events & EPOLLIN) != 0) && !client.is_scheduled) session.on_readable();
    schedule(id, client);
}

/// Posts the next slice, so that it comes after the events of other clients and after work posted
/// earlier.
void EpollServer::schedule(SourceId id, Client& client) {
    const Session& session = *client.session;
    if (session.state() == Session::State::Closed) return drop(id);
    if (const auto until = session.blocked_until()) blocked_clients_.insert_or_assign(id, *until);
    if (!session.has_unserved() || client.is_scheduled) return;
    client.is_scheduled = true;
    post([this, id] { serve_next_slice(id); });
}

void EpollServer::serve_next_slice(SourceId id) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    found->second.is_scheduled = false;
    serve(id, EPOLLIN);
}

void EpollServer::resume_blocked() {
    if (blocked_clients_.empty()) return;
    const auto now = std::chrono::steady_clock::now();
    std::vector<SourceId> due;
    for (const auto& [id, until] : blocked_clients_)
        if (until <= now) due.push_back(id);
    for (const SourceId id : due) {
        blocked_clients_.erase(id);
        serve(id, EPOLLIN);
    }
}

std::optional<Nanoseconds> EpollServer::longest_sleep(const RtThread& rt_thread) const {
    std::optional<Nanoseconds> longest = rt_thread.longest_sleep();
    for (const auto& [id, until] : blocked_clients_) {
        const Nanoseconds left = until - std::chrono::steady_clock::now();
        longest = std::clamp(left, Nanoseconds::zero(), longest.value_or(Nanoseconds::max()));
    }
    return longest;
}

// Removes the socket from epoll explicitly, because the device may still refer to the channel and
// so keep the socket open.
void EpollServer::drop(SourceId id) {
    const auto found = clients_.find(id);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.session->channel().fd(), nullptr);
    clients_.erase(found);
}

void EpollServer::accept_from(Listener& listener) {
    auto client = accept_client(listener.socket.get());
    if (client) return add_client(listener, std::move(*client));
    const int code = client.error().code;
    if (code == EMFILE || code == ENFILE) refuse_without_fds(listener.socket.get());
}

// Refuses one client while softgpu is out of descriptors: closes the reserved descriptor, so that
// the connection can be accepted and closed. Otherwise the listening socket would stay readable,
// and the io thread would spin.
void EpollServer::refuse_without_fds(int listener) {
    log::error("out of descriptors: a client is refused; raise the limit of open files");
    context_.counters->refused_clients++;
    reserve_.reset();
    (void)accept_client(listener);
    reserve_ = reserve_of(wake_up_);
}

/// Drops the oldest connection that still negotiates if there are kMaxNegotiating of them. So
/// connections that send nothing cannot keep other clients out.
void EpollServer::drop_oldest_negotiating(const Listener& listener) {
    std::size_t count = 0;
    SourceId oldest = next_id_;
    for (const auto& [id, client] : clients_) {
        if (client.listener != &listener || client.session->state() != Session::State::Negotiating)
            continue;
        count++;
        oldest = std::min(oldest, id);
    }
    if (count < kMaxNegotiating) return;
    context_.counters->refused_clients++;
    drop(oldest);
}

/// Refers to the session by id, not by pointer, because the session may be gone when the posted
/// work runs.
Channel::Loop EpollServer::loop_of(SourceId id, int fd) {
    const auto watch = [epoll = epoll_.get(), fd, id](Channel::Interest interest) {
        epoll_event event{};
        if (interest == Channel::Interest::Input) event.events = EPOLLIN;
        if (interest == Channel::Interest::Output) event.events = EPOLLOUT;
        event.data.u64 = id;
        ::epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
    };
    return {.watch = watch, .serve = [this, id] { post([this, id] { serve(id, EPOLLIN); }); }};
}

/// Adds the socket to epoll before the session gets its loop, because the loop modifies the epoll
/// entry.
void EpollServer::add_client(Listener& listener, OwnedFd socket) {
    drop_oldest_negotiating(listener);
    const SourceId id = next_id_++;
    auto session = std::make_unique<Session>(std::move(socket), listener.served, context_);
    const int fd = session->channel().fd();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return;
    session->channel().set_loop(loop_of(id, fd));
    clients_.emplace(id, Client{&listener, std::move(session)});
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(ServerOptions options,
                                               std::shared_ptr<const BusySince> park) {
    OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return fail_errno(errno, "cannot create an epoll instance");
    OwnedFd wake_up(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_up) return fail_errno(errno, "cannot create an eventfd");
    OwnedFd name_watch(vgpu_socket_watch_open());
    if (!name_watch) return fail_errno(errno, "cannot watch the directories of sockets");
    OwnedFd reserve = reserve_of(wake_up);
    auto server =
        std::make_unique<EpollServer>(std::move(epoll), std::move(wake_up), std::move(name_watch),
                                      std::move(reserve), options, std::move(park));
    TRY_VOID(server->start());
    return server;
}

}  // namespace vgpu::softgpu::vfio_user
