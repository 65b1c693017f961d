// SPDX-License-Identifier: MIT
//
// Requests of the uapi from an unknown client: any sequence of messages, with and without a good
// head, on a device that works. The input is cut into messages; time passes between them. Whatever
// comes, the server must answer or drop the client, and no VF may end in MISMATCH.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "pf-driver/user/uapi_server.h"
#include "tests/unit/core/fake_gpu.h"

namespace {

using vgpu::test::FakeGpu;

class Target {
public:
    Target() : pf_(std::make_unique<vgpu_pf>()), server_(std::make_unique<uapi_server>()) {
        if (vgpu_user_server_init(server_.get(), pf_.get(), &hooks_) != 0) std::abort();
        vgpu_pf_params params{};
        params.boot_id = 1;
        params.time_scale = 1;
        params.event_ring = server_->ring;
        params.event_ring_bytes = server_->ring_bytes;
        vgpu_pf_init(pf_.get(), gpu_.os(), &params);
        gpu_.forward.request_done = [this](std::uint64_t token, int error, const char* text) {
            hooks_.request_done(hooks_.context, token, error, text);
        };
        gpu_.forward.events = [this] { hooks_.events_notify(hooks_.context); };
        gpu_.forward.stream_write = [this](const void* data, std::uint32_t bytes) {
            return hooks_.stream_write(hooks_.context, data, bytes);
        };
        gpu_.forward.stream_read = [this](void* data, std::uint32_t bytes) {
            return hooks_.stream_read(hooks_.context, data, bytes);
        };
        gpu_.bind(pf_.get());
        if (vgpu_pf_attach(pf_.get()) != 0) std::abort();
        connect();
    }
    ~Target() {
        close(socket_);
        vgpu_user_server_fini(server_.get());
    }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    void send(std::span<const std::uint8_t> message, bool has_fd) {
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

    void check() {
        pump();
        for (std::uint32_t vf = 1; vf <= pf_->device.total_vfs; ++vf)
            if (pf_->vfs[vf].state == VGPU_PF_VF_MISMATCH) std::abort();
    }

private:
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
        gpu_.run_for(200 * vgpu::test::kUs);
        std::uint8_t sink[4096];
        while (recv(socket_, sink, sizeof(sink), MSG_DONTWAIT) > 0) {
        }
    }

    FakeGpu gpu_{{.total_vfs = 2, .vram_mb = 96, .aperture_mb = 64, .cu_count = 4}};
    os_user_hooks hooks_{};
    std::unique_ptr<vgpu_pf> pf_;
    std::unique_ptr<uapi_server> server_;
    int socket_ = -1;
};

}  // namespace

/// Each message: a byte of how, two of length, then its bytes. How: bit 0 with a correct head whose
/// operation is the next byte, bit 1 with an fd.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Target target;
    std::span<const std::uint8_t> rest(data, size);
    for (int messages = 0; messages < 16 && rest.size() >= 4; ++messages) {
        const std::uint8_t how = rest[0];
        const std::size_t wanted = rest[1] | std::size_t{rest[2]} << 8;
        const std::uint8_t op = rest[3];
        rest = rest.subspan(4);
        const auto body = rest.first(std::min(wanted, rest.size()));
        rest = rest.subspan(body.size());
        std::vector<std::uint8_t> message;
        if ((how & 1) != 0) {
            const vgpu_pf_request head{VGPU_PF_UAPI_MAGIC, VGPU_PF_UAPI_VERSION,
                                       static_cast<std::uint32_t>(op % 20),
                                       static_cast<std::uint32_t>(body.size()), 1};
            message.resize(sizeof(head));
            std::memcpy(message.data(), &head, sizeof(head));
        }
        message.insert(message.end(), body.begin(), body.end());
        if (!message.empty()) target.send(message, (how & 2) != 0);
    }
    target.check();
    return 0;
}
