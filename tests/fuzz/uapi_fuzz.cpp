// SPDX-License-Identifier: MIT
//
// Fuzzes the uapi with any sequence of messages from an unknown client, with and without a valid
// head, and with what guests and the device do meanwhile. The input is cut into messages; time
// passes between them. For any input, the server must answer or drop the client, and no VF may end
// in MISMATCH. If bit 7 of the first byte is set, VF1 is in the run table and has work. The input
// also says what happens to the device. It hangs in a world switch of a VF, so that the core resets
// the VF, or the whole device if the FLR does not end. It goes away and comes back with or without
// its state. Clients attach to VFs and detach from them.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "daemon/simulator/model_gpu.h"
#include "pf-driver/core/state.h"
#include "pf-driver/hw/vf_page_table.h"
#include "pf-driver/user/uapi_server.h"

namespace {

using vgpu::simulator::Fault;
using vgpu::simulator::FaultKind;
using vgpu::simulator::ModelGpu;

class Target {
public:
    Target() : pf_(std::make_unique<vgpu_pf>()), server_(std::make_unique<uapi_server>()) {
        if (vgpu_user_server_init(server_.get(), pf_.get()) != 0) std::abort();
        vgpu_pf_params params{};
        params.boot_id = 1;
        params.time_scale = 1;
        params.event_ring = server_->ring;
        params.event_ring_bytes = server_->ring_bytes;
        vgpu_pf_init(pf_.get(), gpu_.os(), &params);
        gpu_.forward.request_done = [this](std::uint64_t token, int error, const char* text) {
            vgpu_user_server_request_done(server_.get(), token, error, text);
        };
        gpu_.forward.events = [this] { vgpu_user_server_events(server_.get()); };
        gpu_.forward.stream_write = [this](const void* data, std::uint32_t bytes) {
            return vgpu_user_server_stream_write(server_.get(), data, bytes);
        };
        gpu_.forward.stream_read = [this](void* data, std::uint32_t bytes) {
            return vgpu_user_server_stream_read(server_.get(), data, bytes);
        };
        gpu_.bind(pf_.get());
        if (vgpu_pf_attach(pf_.get()) != 0) std::abort();
        connect();
    }
    ~Target() {
        if (gpu_.calls_back != 0) std::abort();
        close(socket_);
        vgpu_user_server_fini(server_.get());
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    void send(std::span<const std::uint8_t> message, bool has_fd) {
        if (message.empty()) return;
        std::vector<std::uint8_t> copy(message.begin(), message.end());
        iovec part{copy.data(), copy.size()};
        msghdr out{};
        out.msg_iov = &part;
        out.msg_iovlen = 1;
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        const int fd = has_fd ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
        if (fd >= 0) {
            out.msg_control = control;
            out.msg_controllen = sizeof(control);
            cmsghdr* header = CMSG_FIRSTHDR(&out);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
        }
        (void)sendmsg(socket_, &out, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (fd >= 0) close(fd);
        pump();
    }

    /// An act of a VF's guest; without such acts no VF would be ready to run.
    void act_as_guest(std::uint8_t event, std::span<const std::uint8_t> body) {
        constexpr std::uint64_t kWork = 5 * vgpu::simulator::kMs;
        const std::uint32_t vf = 1u + (body.empty() ? 0 : body[0] % 2u);
        switch (body.size() < 2 ? 0 : body[1] % 4u) {
            case 0:
                gpu_.guest_sends(vf, event);
                break;
            case 1:
                gpu_.guest_acknowledges(vf);
                break;
            case 2:
                gpu_.give_work(vf, kWork);
                break;
            default:
                gpu_.guest_resets_function(vf);
        }
        pump();
    }

    /// A mishap of the device, or a change of its clients.
    void act_as_device(std::uint8_t what, std::span<const std::uint8_t> body) {
        constexpr std::array kSteps{GPUIOV_CMD_IDLE, GPUIOV_CMD_SAVE, GPUIOV_CMD_LOAD,
                                    GPUIOV_CMD_RUN};
        constexpr std::array kKinds{FaultKind::Lost, FaultKind::Aborted, FaultKind::Late};
        const std::uint32_t vf = 1u + (body.empty() ? 0 : body[0] % 2u);
        const std::uint8_t how = body.size() < 2 ? 0 : body[1];
        switch (what % 6u) {
            case 0:
                gpu_.faults.push_back(Fault{kSteps[how % 4u], vf, kKinds[how / 4u % 3u], kLate});
                break;
            case 1:
                gpu_.vf(vf).flr_never_ends = how % 2u != 0;
                break;
            case 2:
                gpu_.is_gone = true;
                vgpu_pf_surprise_remove(pf_.get());
                break;
            case 3:
                come_back(how % 2u != 0);
                break;
            case 4:
                gpu_.attach_client(vf, how % 2u != 0);
                break;
            default:
                gpu_.lose_interrupts = how % 2u != 0;
        }
        pump();
    }

    /// Waits until hangs are noticed and resets have run out of time.
    void wait_long() {
        gpu_.run_for(1500 * vgpu::simulator::kMs);
        pump();
    }

    /// Waits long enough for scrubs and quanta; several waits are long enough for a timeout.
    void wait() {
        gpu_.run_for(50 * vgpu::simulator::kMs);
        pump();
    }

    void check() {
        pump();
        for (std::uint32_t vf = 1; vf <= pf_->device.total_vfs; ++vf)
            if (pf_->vfs[vf].state == VGPU_PF_VF_MISMATCH) std::abort();
    }

private:
    static constexpr std::uint64_t kLate = 200 * vgpu::simulator::kMs;

    void come_back(bool has_forgotten) {
        if (!gpu_.is_gone) return;
        gpu_.is_gone = false;
        if (has_forgotten) gpu_.power_cycle();
        (void)vgpu_pf_attach(pf_.get());
    }
    void connect() {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
            std::abort();
        if (vgpu_user_server_add_client(server_.get(), pair[0], geteuid()) != 0) std::abort();
        socket_ = pair[1];
    }
    void pump() {
        pollfd fds[UAPI_POLL_FDS];
        const std::uint32_t count = vgpu_user_server_poll_fds(server_.get(), fds);
        if (poll(fds, count, 0) > 0) vgpu_user_server_handle(server_.get(), fds, count);
        gpu_.run_for(200 * vgpu::simulator::kUs);
        std::uint8_t sink[4096];
        while (recv(socket_, sink, sizeof(sink), MSG_DONTWAIT) > 0) {
        }
    }

    ModelGpu gpu_{{.total_vfs = 2, .vram_mb = 96, .aperture_mb = 64, .cu_count = 4}};
    std::unique_ptr<vgpu_pf> pf_;
    std::unique_ptr<uapi_server> server_;
    int socket_ = -1;
};

constexpr std::uint32_t kOperations = 20;  // a few more than exist

/// Bits that say how the input's bytes become a message.
constexpr std::uint8_t kHasHead = 1 << 0;
constexpr std::uint8_t kHasFd = 1 << 1;
constexpr std::uint8_t kIsWellFormed = 1 << 2;
constexpr std::uint8_t kTakesLong = 1 << 3;
constexpr std::uint8_t kFindsVf = 1 << 7;      // in the first byte only
constexpr std::uint8_t kIsFromGuest = 1 << 4;  // no message: the operation is a mailbox event
constexpr std::uint8_t kIsOfDevice = 1 << 5;   // no message: the operation is a mishap
constexpr std::uint8_t kTakesVeryLong = 1 << 6;

/// Changes `body`, an operation's struct, into one that a client of this device could send.
template <typename Struct> void change(std::span<std::uint8_t> body, void (*how)(Struct&)) {
    Struct request;
    std::memcpy(&request, body.data(), sizeof(request));
    how(request);
    std::memcpy(body.data(), &request, sizeof(request));
}

void fit_provision(vgpu_pf_provision& request) {
    request.vram_bytes = request.vram_bytes % 4 * VGPU_VRAM_UNIT_BYTES;
    request.cu_mask %= 16;
    request.flags %= 2;
    request.reserved = 0;
}

/// Also fits references to a VF, which begin with the same members as vgpu_pf_control.
void fit_control(vgpu_pf_control& request) {
    request.generation %= 2;
    request.action %= 8;
}

/// A contract that may be valid. Bits of `seed` choose its parts and their values, some of which
/// are just out of range.
vgpu_pf_contract contract_of(std::uint64_t seed) {
    constexpr std::uint64_t kMs = 1'000'000;
    vgpu_pf_contract contract{};
    if ((seed & 1) != 0) {
        contract.budget_ns = (seed >> 8 & 0x3f) * 100'000;
        contract.period_ns = (1 + (seed >> 14 & 0x3f)) * kMs;
        contract.ahead = seed >> 20 & 0x1f;
    }
    if ((seed & 2) != 0) {
        contract.rate_ppm = static_cast<std::uint32_t>((seed >> 25 & 0x1ff) * 2000);
        contract.burst_ns = contract.budget_ns + (seed >> 34 & 0xff) * 50'000;
    }
    contract.priority_class = seed >> 2 & 3;
    contract.flags = seed >> 4 & 1;
    contract.preempt_timeout_us = static_cast<std::uint32_t>((seed >> 42 & 0xff) * 400'000);
    return contract;
}

void fit_run_table(vgpu_pf_run_table& table) {
    constexpr std::uint32_t kQuantumUs = 1000;
    table.generation %= 8;
    table.reserve_count %= 2;
    table.flags %= 4;
    // few inputs are long enough to reach the contracts themselves
    for (std::uint32_t i = 0; i < 2; ++i) {
        const vgpu_pf_run_entry& seed = table.reserve[i];
        table.contracts[i] = contract_of(std::uint64_t{seed.quantum_us} << 32 | seed.vf);
    }
    table.reserve[0] = {1, kQuantumUs};
    for (std::uint32_t i = 0; i < table.count; ++i) table.entries[i] = {1 + i % 2, kQuantumUs};
}

/// The struct of `op` in its exact size. Its second dword, most often a VF, is 0, 1 or 2.
std::vector<std::uint8_t> well_formed(std::uint32_t op, std::span<const std::uint8_t> body) {
    std::vector<std::uint8_t> out(body.begin(), body.end());
    const vgpu_pf_op_traits* traits = vgpu_pf_request_traits(op);
    out.resize(traits ? traits->bytes : 0);
    if (out.size() < sizeof(vgpu_pf_lease)) return out;
    change<vgpu_pf_lease>(out, [](vgpu_pf_lease& head) { head.acquire %= 3; });
    const auto bytes = static_cast<std::uint32_t>(out.size());
    std::memcpy(out.data(), &bytes, sizeof(bytes));
    if (op == VGPU_PF_OP_PROVISION) change(std::span(out), fit_provision);
    if (bytes >= sizeof(vgpu_pf_control) && bytes <= sizeof(vgpu_pf_stream))
        change(std::span(out), fit_control);
    if (op == VGPU_PF_OP_SET_RUN_TABLE) change(std::span(out), fit_run_table);
    return out;
}

std::vector<std::uint8_t> message_of(std::uint8_t how, std::uint32_t op,
                                     std::span<const std::uint8_t> rest) {
    std::vector<std::uint8_t> body(rest.begin(), rest.end());
    if ((how & kIsWellFormed) != 0) body = well_formed(op, rest);
    if ((how & kHasHead) == 0) return body;
    const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION, op,
                               static_cast<std::uint32_t>(body.size()), 1};
    std::vector<std::uint8_t> message(sizeof(head));
    std::memcpy(message.data(), &head, sizeof(head));
    message.insert(message.end(), body.begin(), body.end());
    return message;
}

template <typename Struct> void request(Target& target, std::uint32_t op, const Struct& wanted) {
    std::array<std::uint8_t, sizeof(Struct)> body;
    std::memcpy(body.data(), &wanted, body.size());
    target.send(message_of(kHasHead | kIsWellFormed, op, body), false);
    target.wait();
}

/// Gives VF1 a unit of VRAM, a loaded driver, work and a run table.
void prepare(Target& target) {
    constexpr std::array<std::uint8_t, 2> kSays = {0, 0};
    constexpr std::array<std::uint8_t, 2> kAcknowledges = {0, 1};
    constexpr std::array<std::uint8_t, 2> kWorks = {0, 2};
    request(target, VGPU_PF_OP_LEASE, vgpu_pf_lease{.size = 0, .acquire = 1});
    vgpu_pf_provision wanted{};
    wanted.vf = 1;
    wanted.vram_bytes = 1;  // units
    request(target, VGPU_PF_OP_PROVISION, wanted);
    for (const std::uint8_t event : {MAILBOX_REQ_GPU_INIT_ACCESS, MAILBOX_REL_GPU_INIT_ACCESS}) {
        target.act_as_guest(event, kSays);
        target.wait();
        target.act_as_guest(event, kAcknowledges);
    }
    target.act_as_guest(0, kWorks);
    const auto table = std::make_unique<vgpu_pf_run_table>();
    table->count = 1;
    table->generation = 1;
    request(target, VGPU_PF_OP_SET_RUN_TABLE, *table);
}

}  // namespace

/// Input: messages. Each is a byte `how`, two bytes of length, a byte of the operation, and the
/// message's bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Target target;
    std::span<const std::uint8_t> rest(data, size);
    if (size > 0 && (data[0] & kFindsVf) != 0) prepare(target);
    for (int messages = 0; messages < 16 && rest.size() >= 4; ++messages) {
        const std::uint8_t how = rest[0];
        const std::size_t wanted = rest[1] | std::size_t{rest[2]} << 8;
        const std::uint8_t op = rest[3];
        rest = rest.subspan(4);
        const auto body = rest.first(std::min(wanted, rest.size()));
        rest = rest.subspan(body.size());
        if ((how & kIsOfDevice) != 0)
            target.act_as_device(op, body);
        else if ((how & kIsFromGuest) != 0)
            target.act_as_guest(op, body);
        else
            target.send(message_of(how, op % kOperations, body), (how & kHasFd) != 0);
        if ((how & kTakesLong) != 0) target.wait();
        if ((how & kTakesVeryLong) != 0) target.wait_long();
    }
    target.check();
    return 0;
}
