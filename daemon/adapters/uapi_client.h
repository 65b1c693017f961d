// SPDX-License-Identifier: MIT
//
// UapiClient: PfPort over the unix socket of vgpu-pf (SOCK_SEQPACKET, one request and one reply at
// a time, fds by SCM_RIGHTS). A request that is not answered within its time limit closes the
// connection, so a late reply can never be taken for the next one's. Replies are checked before
// use: the PF core is trusted to tell the truth, not to be there or to be of the same version.
#pragma once

#include "daemon/adapters/unique_fd.h"
#include "daemon/adapters/wakeup.h"
#include "daemon/ports/pf_port.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon::adapters {

class UapiClient final : public PfPort {
public:
    static constexpr std::chrono::milliseconds kTimeout{2000};
    /// PROVISION, RELEASE and CONTROL are answered once the VF is off the engine or scrubbed.
    static constexpr std::chrono::milliseconds kActTimeout{10000};
    static constexpr std::chrono::milliseconds kConnectTimeout{200};

    explicit UapiClient(std::string path) : path_(std::move(path)) {}

    Result<> connect() override;
    void disconnect() override { socket_.reset(); }
    [[nodiscard]] bool is_connected() const override { return socket_.is_open(); }
    [[nodiscard]] int connection_fd() const override { return socket_.get(); }

    Result<vgpu_pf_info> get_info() override;
    Result<vgpu_pf_vf> get_vf(std::uint32_t vf) override;
    Result<vgpu_pf_provision> provision(const vgpu_pf_provision& wanted) override;
    Result<> release(std::uint32_t vf, std::uint32_t generation) override;
    Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) override;
    Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) override;
    Result<> control(std::uint32_t vf, std::uint32_t generation,
                     vgpu_pf_control_action action) override;
    Result<> set_run_table(const vgpu_pf_run_table& table) override;
    Result<vgpu_pf_run_table> get_run_table() override;
    Result<> acquire_lease() override;
    Result<> dump(int fd) override;
    Result<std::unique_ptr<EventPort>> open_events() override;
    void interrupt() override { interrupted_.raise(); }

private:
    struct Reply {
        std::vector<std::byte> body;
        std::vector<UniqueFd> fds;
    };

    Result<Reply> exchange(vgpu_pf_op op, std::span<const std::byte> body, int fd_to_send);
    Result<> send_request(vgpu_pf_op op, std::span<const std::byte> body, int fd_to_send);
    Result<Reply> receive_reply(vgpu_pf_op op);
    Result<> wait_readable();
    template <typename T> Result<T> call(vgpu_pf_op op, T body, int fd_to_send = -1);
    template <typename T> Result<T> act(vgpu_pf_op op, T body);
    Result<> call_ref(vgpu_pf_op op, std::uint32_t vf, std::uint32_t generation);
    tl::unexpected<Error> lost(std::string_view what, int code);

    std::string path_;
    UniqueFd socket_;
    Wakeup interrupted_;
    std::uint64_t cookie_ = 0;
    std::chrono::milliseconds time_limit_ = kTimeout;
};

}  // namespace vgpu::daemon::adapters
