// SPDX-License-Identifier: MIT
#include "tests/support/stack/pf_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "pf-driver/softgpu/base/bits.h"
#include "tests/support/unix_socket.h"
#include "tests/support/vf_client/memory_word.h"

namespace vgpu::test {
namespace {

using softgpu::bytes_of;

constexpr milliseconds kReplyLimit{10000};
constexpr std::size_t kMaxFds = 4;

UniqueFd connect_seqpacket(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (const int error = connect_unix(fd.get(), path); error != 0)
        throw VfError(fmt::format("connect to {}: {}", path, std::strerror(error)), error);
    return fd;
}

void send_message(int socket, std::span<const std::byte> bytes, int fd) {
    iovec io{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        throw VfError(fmt::format("send to vgpu-pf: {}", std::strerror(errno)), errno);
}

template <typename T> T as(const std::vector<std::byte>& body) {
    T out{};
    std::memcpy(&out, body.data(), std::min(body.size(), sizeof out));
    return out;
}

}  // namespace

PfClient::PfClient(const std::string& socket_path) : socket_(connect_seqpacket(socket_path)) {}

PfReply PfClient::call(std::uint32_t op, std::span<const std::byte> body, int fd) {
    const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, op,
                               static_cast<std::uint32_t>(body.size()), cookie_++};
    std::vector<std::byte> out(sizeof head + body.size());
    std::ranges::copy(bytes_of(head), out.begin());
    std::ranges::copy(body, out.begin() + sizeof head);
    send_message(socket_.get(), out, fd);

    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, Deadline(kReplyLimit).left_ms()) <= 0)
        throw VfError(fmt::format("vgpu-pf does not answer operation {}", op), ETIMEDOUT);
    std::vector<std::byte> in(1u << 16);
    iovec io{in.data(), in.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < static_cast<ssize_t>(sizeof(vgpu_pf_reply)))
        throw VfError("vgpu-pf closed the connection", ECONNRESET);
    in.resize(static_cast<std::size_t>(got));
    PfReply reply;
    for (auto* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
            int received = -1;
            std::memcpy(&received, CMSG_DATA(c) + i * sizeof received, sizeof received);
            reply.fds.emplace_back(received);
        }
    }
    const auto answer = softgpu::load<vgpu_pf_reply>(in);
    reply.error = answer.error;
    reply.message.assign(answer.message, ::strnlen(answer.message, sizeof answer.message));
    reply.body.assign(in.begin() + sizeof answer, in.end());
    return reply;
}

PfReply PfClient::checked(std::uint32_t op, std::span<const std::byte> body, const char* what) {
    auto reply = call(op, body);
    if (reply.error != 0)
        throw VfError(fmt::format("{}: {} ({})", what, reply.message, std::strerror(-reply.error)),
                      -reply.error);
    return reply;
}

vgpu_pf_info PfClient::info() {
    vgpu_pf_info ask{};
    ask.size = sizeof ask;
    return as<vgpu_pf_info>(checked(VGPU_PF_OP_GET_INFO, bytes_of(ask), "GET_INFO").body);
}

vgpu_pf_vf PfClient::vf(std::uint32_t number) {
    vgpu_pf_vf ask{};
    ask.size = sizeof ask;
    ask.vf = number;
    return as<vgpu_pf_vf>(checked(VGPU_PF_OP_GET_VF, bytes_of(ask), "GET_VF").body);
}

vgpu_pf_provision PfClient::provision(std::uint32_t vf, std::uint64_t vram_bytes,
                                      std::function<void(vgpu_pf_provision&)> adjust) {
    vgpu_pf_provision ask{};
    ask.size = sizeof ask;
    ask.vf = vf;
    ask.vram_bytes = vram_bytes;
    ask.uuid[15] = static_cast<std::uint8_t>(vf);
    if (adjust) adjust(ask);
    return as<vgpu_pf_provision>(checked(VGPU_PF_OP_PROVISION, bytes_of(ask), "PROVISION").body);
}

void PfClient::release(std::uint32_t vf) {
    const vgpu_pf_vf_ref ask{sizeof ask, vf, 0, 0};
    checked(VGPU_PF_OP_RELEASE, bytes_of(ask), "RELEASE");
}

void PfClient::scrub_durable(std::uint32_t vf) {
    const vgpu_pf_vf_ref ask{sizeof ask, vf, 0, 0};
    int error = -EBUSY;  // until VRAM is zero and the device state is cleared
    wait_for("the scrub to be finished", milliseconds(10000), [&] {
        error = call(VGPU_PF_OP_SCRUB_DURABLE, bytes_of(ask)).error;
        return error != -EBUSY;
    });
    if (error != 0) throw VfError("SCRUB_DURABLE", -error);
}

bool PfClient::is_zero(std::uint32_t vf) {
    const vgpu_pf_vf_ref ask{sizeof ask, vf, 0, 0};
    const auto reply = call(VGPU_PF_OP_VERIFY_ZERO, bytes_of(ask));
    if (reply.error != 0 && reply.error != -EUCLEAN)
        throw VfError("VERIFY_ZERO: " + reply.message, -reply.error);
    return reply.error == 0;
}

void PfClient::control(std::uint32_t vf, vgpu_pf_control_action action) {
    const vgpu_pf_control ask{sizeof ask, vf, 0, static_cast<std::uint32_t>(action)};
    checked(VGPU_PF_OP_CONTROL, bytes_of(ask), "CONTROL");
}

void PfClient::set_run_table(const std::vector<vgpu_pf_run_entry>& entries, std::uint32_t flags,
                             const std::map<std::uint32_t, vgpu_pf_contract>& contracts) {
    const auto table = std::make_unique<vgpu_pf_run_table>();
    table->size = sizeof *table;
    table->count = static_cast<std::uint32_t>(entries.size());
    table->generation = info().table_generation + 1;
    table->flags = flags;
    if (entries.size() > VGPU_PF_TABLE_ENTRIES) throw VfError("run table: too many entries");
    std::ranges::copy(entries, table->entries);
    for (const auto& [vf, contract] : contracts) table->contracts[vf - 1] = contract;
    checked(VGPU_PF_OP_SET_RUN_TABLE, bytes_of(*table), "SET_RUN_TABLE");
}

EventReader PfClient::events() {
    vgpu_pf_event_ring_info ask{};
    ask.size = sizeof ask;
    auto reply = checked(VGPU_PF_OP_GET_EVENT_RING, bytes_of(ask), "GET_EVENT_RING");
    if (reply.fds.size() != 2) throw VfError("GET_EVENT_RING: two fds expected");
    const auto info = as<vgpu_pf_event_ring_info>(reply.body);
    void* const start = ::mmap(nullptr, info.bytes, PROT_READ, MAP_SHARED, reply.fds[0].get(), 0);
    if (start == MAP_FAILED) throw VfError("event ring: mmap failed", errno);
    return {Mapping(start, info.bytes), info, std::move(reply.fds[1])};
}

void PfClient::wait_state(std::uint32_t number, vgpu_pf_vf_state state, milliseconds limit) {
    wait_for(fmt::format("VF{} to reach state {}", number, static_cast<int>(state)), limit,
             [&] { return vf(number).state == static_cast<std::uint32_t>(state); });
}

EventReader::EventReader(Mapping memory, vgpu_pf_event_ring_info info, UniqueFd wake)
    : memory_(std::move(memory)), info_(info), wake_(std::move(wake)) {
    next_ = head();
}

std::uint64_t EventReader::head() const {
    return load_shared<std::uint64_t>(memory_.bytes().data() +
                                      offsetof(vgpu_pf_event_ring_head, next_seq));
}

std::vector<vgpu_pf_event> EventReader::take() {
    std::vector<vgpu_pf_event> out;
    const auto end = head();
    if (end - next_ > info_.entries) {
        lost_ += end - next_ - info_.entries;
        next_ = end - info_.entries;
    }
    for (; next_ < end; ++next_) {
        const auto at = info_.events_offset + (next_ - 1) % info_.entries * sizeof(vgpu_pf_event);
        const auto* const where = memory_.bytes().subspan(at, sizeof(vgpu_pf_event)).data();
        vgpu_pf_event event;
        std::memcpy(&event, where, sizeof event);
        // overwritten while it was copied?
        if (event.seq != next_ || load_shared<std::uint64_t>(where) != next_) {
            ++lost_;
            continue;
        }
        out.push_back(event);
    }
    return out;
}

void EventReader::wait_any(const Deadline& deadline) {
    pollfd ready{wake_.get(), POLLIN, 0};
    if (::poll(&ready, 1, deadline.left_ms()) <= 0) return;
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
}

vgpu_pf_event EventReader::wait(const std::function<bool(const vgpu_pf_event&)>& wanted,
                                milliseconds limit) {
    const Deadline deadline(limit);
    while (true) {
        for (const auto& event : take())
            if (wanted(event)) return event;
        if (deadline.passed()) throw VfError("event ring: the expected event did not come");
        wait_any(deadline);
    }
}

}  // namespace vgpu::test
