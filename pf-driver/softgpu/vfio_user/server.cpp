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
#include <map>
#include <mutex>
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

// Maximum number of connections per socket that have not agreed on a version yet.
constexpr std::size_t kMaxNegotiating = 8;

// The socket's name in the file system. The destructor removes the file unless another socket has
// taken the name.
class SocketName {
public:
    explicit SocketName(std::string path) : path_(std::move(path)) { record_inode(); }
    SocketName(SocketName&& other) noexcept
        : path_(std::move(other.path_)), number_(std::exchange(other.number_, 0)) {}
    SocketName& operator=(SocketName&&) = delete;
    ~SocketName() {
        if (number_ != 0 && is_unchanged()) ::unlink(vgpu_sealed(path_.c_str()));
    }

    [[nodiscard]] const std::string& path() const { return path_; }
    // True if the name still leads to the file of record_inode().
    [[nodiscard]] bool is_unchanged() const { return number() == number_; }
    void record_inode() { number_ = number(); }

private:
    [[nodiscard]] std::uint64_t number() const {
        return vgpu_socket_number(vgpu_sealed(path_.c_str()));
    }

    std::string path_;
    std::uint64_t number_ = 0;  // inode of the socket's file; 0: none
};

/// All state belongs to the io thread, except is_stopping_ and posted_.
class EpollServer final : public Server {
public:
    EpollServer(OwnedFd epoll, OwnedFd wake_up, OwnedFd names, OwnedFd reserve,
                ServerOptions options)
        : epoll_(std::move(epoll)),
          wake_up_(std::move(wake_up)),
          names_(std::move(names)),
          reserve_(std::move(reserve)),
          options_(options) {
        context_.dma_limits = options.dma_limits;
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
    // Identifies the source of an epoll event. Never reused, so a stale event finds no source.
    using SourceId = std::uint64_t;
    struct Watch {
        int fd = -1;
        std::function<void()> readable;
    };
    struct Listener {
        OwnedFd socket;
        SocketName name;
        Port port;
    };
    struct Client {
        Listener* listener = nullptr;
        std::unique_ptr<Session> session;
        bool is_scheduled = false;  // the next slice of the session is posted
    };

    Result<SourceId> add_watch(int fd, std::function<void()> readable);
    void dispatch(const epoll_event& event);
    void serve(SourceId id, std::uint32_t events);
    void schedule(SourceId id, Client& client);
    void serve_backlog(SourceId id);
    void resume_blocked();
    [[nodiscard]] std::optional<Nanoseconds> longest_sleep(const RtThread& rt_thread) const;
    void drop(SourceId id);
    [[nodiscard]] Channel::Loop loop_of(SourceId id, int fd);
    Result<> watch_listener(Listener& listener);
    void rebind_removed_sockets();
    void hang_up_now(const Device& device);
    void accept_from(Listener& listener);
    void refuse_without_fds(int listener);
    void add_client(Listener& listener, OwnedFd socket);
    void drop_oldest_negotiating(const Listener& listener);
    void run_posted(RtThread& rt_thread);

    const OwnedFd epoll_;
    const OwnedFd wake_up_;
    const OwnedFd names_;  // readable when a socket's file may have been removed
    OwnedFd reserve_;      // closed to accept and refuse a client when no descriptor is left
    const ServerOptions options_;
    SessionContext context_;
    SourceId next_id_ = 1;
    std::unordered_map<SourceId, Watch> watches_;
    std::vector<std::unique_ptr<Listener>> listeners_;
    std::unordered_map<SourceId, Client> clients_;
    // for each blocked client: the time at which it is served again; nearly always empty
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

/// Duplicates a descriptor that is open, because a confined process cannot open a file.
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
    return watch(names_.get(), [this] { rebind_removed_sockets(); });
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
    auto listener = std::make_unique<Listener>(
        Listener{std::move(socket), SocketName(path), Port{device, nullptr, limiter, path}});
    TRY_VOID(watch_listener(*listener));
    listeners_.push_back(std::move(listener));
    return {};
}

/// Watches a socket that was just bound: its file and its connections.
Result<> EpollServer::watch_listener(Listener& listener) {
    const std::string& path = listener.name.path();
    if (const int error = vgpu_sealed_watch(names_.get(), path.c_str()); error != 0)
        return fail_errno(-error, fmt::format("cannot watch the directory of {}", path));
    return watch(listener.socket.get(), [this, &listener] { accept_from(listener); });
}

/// Makes new sockets for names whose file was removed, because new clients could not connect.
/// Connected clients stay.
void EpollServer::rebind_removed_sockets() {
    vgpu_socket_watch_clear(names_.get());
    for (const auto& listener : listeners_) {
        if (listener->name.is_unchanged()) continue;
        const std::string name = listener->port.device.name();
        const std::string& path = listener->name.path();
        auto socket = listen_at(path);
        Result<> served = socket ? Result<>{} : tl::make_unexpected(socket.error());
        if (socket) {
            unwatch(listener->socket.get());
            listener->socket = std::move(*socket);
            listener->name.record_inode();
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
        if (&listener->port.device != &device) continue;
        while (accept_client(listener->socket.get())) continue;
        std::vector<SourceId> open;
        for (const auto& [id, client] : clients_)
            if (client.listener == listener.get()) open.push_back(id);
        if (!open.empty()) log::warn("{}: disconnected {} client(s)", device.name(), open.size());
        for (const SourceId id : open) drop(id);
    }
}

/// Runs posted work after the events of each epoll_wait(): a session's socket must not starve the
/// work that the session posts.
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
    // epoll reports EPOLLHUP and EPOLLERR even if nothing is watched, as long as they last.
    const bool has_hung_up = (events & (EPOLLHUP | EPOLLERR)) != 0;
    if (has_hung_up && session.blocked_until()) session.close();
    if ((events & EPOLLOUT) != 0) session.on_writable();
    if ((has_hung_up || (events & EPOLLIN) != 0) && !client.is_scheduled) session.on_readable();
    schedule(id, client);
}

/// The next slice comes after the events of other clients and the work that they post.
void EpollServer::schedule(SourceId id, Client& client) {
    const Session& session = *client.session;
    if (session.state() == Session::State::Closed) return drop(id);
    if (const auto until = session.blocked_until()) blocked_clients_.insert_or_assign(id, *until);
    if (!session.has_backlog() || client.is_scheduled) return;
    client.is_scheduled = true;
    post([this, id] { serve_backlog(id); });
}

void EpollServer::serve_backlog(SourceId id) {
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

// Removes the socket from epoll itself, because the device may keep the session's channel, and so
// the socket, open for a while.
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

// Uses the reserved descriptor to accept and close the connection. Otherwise the listening socket
// would stay readable for ever.
void EpollServer::refuse_without_fds(int listener) {
    log::error("out of descriptors: a client is refused; raise the limit of open files");
    context_.counters->refused_clients++;
    reserve_.reset();
    (void)accept_client(listener);
    reserve_ = reserve_of(wake_up_);
}

/// A client that connects and sends nothing must not keep others out for ever.
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

/// Finds the session by id, not by pointer: the session may be gone when the posted work runs.
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

/// Watches the socket before the session gets its loop, so that changes of interest find it.
void EpollServer::add_client(Listener& listener, OwnedFd socket) {
    drop_oldest_negotiating(listener);
    const SourceId id = next_id_++;
    auto session = std::make_unique<Session>(std::move(socket), listener.port, context_);
    const int fd = session->channel().fd();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return;
    session->channel().set_loop(loop_of(id, fd));
    clients_.emplace(id, Client{&listener, std::move(session)});
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(ServerOptions options) {
    OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return fail_errno(errno, "cannot create an epoll instance");
    OwnedFd wake_up(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_up) return fail_errno(errno, "cannot create an eventfd");
    OwnedFd names(vgpu_socket_watch_open());
    if (!names) return fail_errno(errno, "cannot watch the directories of sockets");
    OwnedFd reserve = reserve_of(wake_up);
    auto server = std::make_unique<EpollServer>(std::move(epoll), std::move(wake_up),
                                                std::move(names), std::move(reserve), options);
    TRY_VOID(server->start());
    return server;
}

}  // namespace vgpu::softgpu::vfio_user
