// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/uapi_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace vgpu::daemon::testing {

namespace {

constexpr std::size_t kEventsOffset = 4096;
constexpr std::size_t kRingBytes = kEventsOffset + UapiServer::kRingEntries * sizeof(vgpu_pf_event);

template <typename T> T body_as(const std::vector<std::byte>& body) {
    T value{};
    std::memcpy(&value, body.data(), std::min(sizeof value, body.size()));
    return value;
}

template <typename T> void put(std::vector<std::byte>& body, const T& value) {
    body.resize(sizeof value);
    std::memcpy(body.data(), &value, sizeof value);
}

/// 0 or the errno of a refusal, its words in `message`; a value replaces the body.
template <typename T>
int settle(const Result<T>& result, std::vector<std::byte>& body, std::string& message) {
    if (!result) {
        message = result.error().cause;
        return -EINVAL;
    }
    if constexpr (!std::is_void_v<T>) put(body, *result);
    return 0;
}

template <typename Facts> auto core_of(const Facts& facts) {
    return *facts.core;
}

void must(bool is_so, const char* what) {
    if (!is_so) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

UapiServer::UapiServer(std::string path) : path_(std::move(path)), pf_(clock_), port_(pf_) {
    ring_memory_ = adapters::UniqueFd(::memfd_create("ring", MFD_CLOEXEC));
    must(::ftruncate(ring_memory_.get(), static_cast<off_t>(kRingBytes)) == 0, "ftruncate");
    void* memory =
        ::mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_memory_.get(), 0);
    must(memory != MAP_FAILED, "mmap");
    ring_ = static_cast<std::byte*>(memory);
    const vgpu_pf_event_ring_head head{
        .next_seq = 1, .entries = kRingEntries, .entry_bytes = sizeof(vgpu_pf_event), .boot_id = 1};
    std::memcpy(ring_, &head, sizeof head);
    pf_.on_event = [this](const vgpu_pf_event& event) { publish(event); };
    static_cast<void>(port_.connect());
    start();
}

UapiServer::~UapiServer() {
    stop();
    ::munmap(ring_, kRingBytes);
}

void UapiServer::start() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    const void* generic = &address;
    listener_ = adapters::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ::unlink(path_.c_str());
    must(::bind(listener_.get(), static_cast<const sockaddr*>(generic), sizeof address) == 0,
         "bind");
    must(::listen(listener_.get(), 8) == 0, "listen");
    stop_ = adapters::UniqueFd(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { serve(); });
}

void UapiServer::stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    must(::write(stop_.get(), &one, sizeof one) == sizeof one, "write");
    thread_.join();
    clients_.clear();
    listener_.reset();
    ::unlink(path_.c_str());
}

void UapiServer::serve() {
    for (;;) {
        std::vector<pollfd> fds{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
        for (const Client& client : clients_) fds.push_back({client.socket.get(), POLLIN, 0});
        if (::poll(fds.data(), fds.size(), -1) < 0) continue;
        if (fds[0].revents != 0) return;
        for (std::size_t i = clients_.size(); i-- > 0;)
            if (fds[i + 2].revents != 0 && !serve_request(clients_[i])) {
                const std::scoped_lock lock(mutex_);
                clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        if (fds[1].revents == 0) continue;
        const std::scoped_lock lock(mutex_);
        clients_.push_back(
            {adapters::UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
             adapters::UniqueFd(::eventfd(0, EFD_CLOEXEC))});
    }
}

bool UapiServer::serve_request(Client& client) {
    std::array<std::byte, 64 * 1024> buffer{};
    const ssize_t got = ::recv(client.socket.get(), buffer.data(), buffer.size(), 0);
    vgpu_pf_request request{};
    if (got < static_cast<ssize_t>(sizeof request)) return false;
    std::memcpy(&request, buffer.data(), sizeof request);
    std::vector<std::byte> body(buffer.begin() + sizeof request, buffer.begin() + got);
    std::string message;
    const std::scoped_lock lock(mutex_);
    const int error = answer(request.op, body, message);
    reply(client, request, error, body, message);
    return true;
}

int UapiServer::answer(std::uint32_t op, std::vector<std::byte>& body, std::string& message) {
    const auto ref = body_as<vgpu_pf_vf_ref>(body);
    const auto control = body_as<vgpu_pf_control>(body);
    switch (op) {
        case VGPU_PF_OP_GET_INFO:
            return settle(port_.get_info().map(core_of<GpuFacts>), body, message);
        case VGPU_PF_OP_GET_VF:
            return settle(port_.get_vf(ref.vf).map(core_of<VfFacts>), body, message);
        case VGPU_PF_OP_PROVISION:
            return settle(port_.provision(body_as<vgpu_pf_provision>(body)), body, message);
        case VGPU_PF_OP_RELEASE: {
            const int error = settle(port_.release(ref.vf, ref.generation), body, message);
            if (error == 0 && !pf_.holds_scrubs) pf_.finish_scrub(ref.vf);
            return error;
        }
        case VGPU_PF_OP_SCRUB_DURABLE:
            return settle(port_.confirm_scrub(ref.vf, ref.generation), body, message);
        case VGPU_PF_OP_VERIFY_ZERO:
            return settle(port_.check_scrubbed(ref.vf, ref.generation), body, message);
        case VGPU_PF_OP_CONTROL:
            return settle(port_.control(control.vf, control.generation,
                                        static_cast<vgpu_pf_control_action>(control.action)),
                          body, message);
        case VGPU_PF_OP_SET_RUN_TABLE:
            return settle(port_.set_run_table(body_as<vgpu_pf_run_table>(body)), body, message);
        case VGPU_PF_OP_GET_RUN_TABLE:
            return settle(port_.get_run_table(), body, message);
        case VGPU_PF_OP_LEASE:
            return settle(port_.acquire_lease(), body, message);
        case VGPU_PF_OP_GET_EVENT_RING:
            put(body, vgpu_pf_event_ring_info{.size = sizeof(vgpu_pf_event_ring_info),
                                              .entries = kRingEntries,
                                              .bytes = kRingBytes,
                                              .events_offset = kEventsOffset});
            return 0;
        default:
            message = "not here";
            return -EOPNOTSUPP;
    }
}

void UapiServer::reply(Client& client, const vgpu_pf_request& request, int error,
                       const std::vector<std::byte>& body, const std::string& message) {
    vgpu_pf_reply head{.magic = VGPU_PF_UAPI_MAGIC,
                       .error = error,
                       .op = request.op,
                       .size = static_cast<std::uint32_t>(body.size()),
                       .cookie = request.cookie,
                       .message = {}};
    std::strncpy(head.message, message.c_str(), sizeof head.message - 1);
    std::array<iovec, 2> parts{iovec{&head, sizeof head},
                               iovec{const_cast<std::byte*>(body.data()), body.size()}};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    const std::array<int, 2> fds{ring_memory_.get(), client.wakeup.get()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
    if (request.op == VGPU_PF_OP_GET_EVENT_RING) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fds);
        std::memcpy(CMSG_DATA(rights), fds.data(), sizeof fds);
    }
    static_cast<void>(::sendmsg(client.socket.get(), &header, MSG_NOSIGNAL));
}

void UapiServer::publish(const vgpu_pf_event& event) {
    std::byte* slot =
        ring_ + kEventsOffset + ((event.seq - 1) % kRingEntries) * sizeof(vgpu_pf_event);
    vgpu_pf_event unfinished = event;
    unfinished.seq = 0;
    std::memcpy(slot, &unfinished, sizeof unfinished);
    void* seq = slot + offsetof(vgpu_pf_event, seq);
    void* next = ring_ + offsetof(vgpu_pf_event_ring_head, next_seq);
    __atomic_store_n(static_cast<std::uint64_t*>(seq), event.seq, __ATOMIC_RELEASE);
    __atomic_store_n(static_cast<std::uint64_t*>(next), event.seq + 1, __ATOMIC_RELEASE);
    const std::uint64_t one = 1;
    for (const Client& client : clients_)
        static_cast<void>(::write(client.wakeup.get(), &one, sizeof one) == sizeof one);
}

}  // namespace vgpu::daemon::testing
