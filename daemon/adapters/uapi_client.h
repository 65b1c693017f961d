// SPDX-License-Identifier: MIT
//
// UapiClient: the Backend of a GPU that our PF core drives. UapiClient sends requests over a
// UapiChannel. `path` names the socket of the process vgpu-pf, or the device of the kernel module
// vgpu_pf.ko. If a request fails with PfLost, UapiClient closes the channel; connect() opens a new
// channel.
#pragma once

#include "daemon/adapters/uapi_channel.h"
#include "daemon/backend/backend.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace vgpu::daemon::adapters {

/// UapiClient accepts a reply that is longer than this version's struct, and a reply with a text or
/// a count above the limit of the uapi. It shortens the struct or the text, or lowers the count.
class UapiClient final : public Backend {
public:
    /// Time limit of a request by call(), except in change() and connect().
    static constexpr std::chrono::milliseconds kTimeout{2000};
    /// Time limit of a request by change(). The PF core answers some changes only after the VF has
    /// left the engine, and VERIFY_ZERO only after the PF core has read the VF's VRAM.
    static constexpr std::chrono::milliseconds kChangeTimeout{10000};
    /// Time limit of the first request on a connection. The limit is short, because the kernel
    /// accepts connections even for a stopped PF core, which does not answer.
    static constexpr std::chrono::milliseconds kConnectTimeout{200};

    using Opener = std::function<Result<std::unique_ptr<UapiChannel>>(const std::string& path,
                                                                      const Wakeup& interrupted)>;

    explicit UapiClient(std::string path, Opener opener = open_channel)
        : path_(std::move(path)), opener_(std::move(opener)) {}

    Result<> connect() override;
    void disconnect() override;
    [[nodiscard]] bool is_connected() const override { return channel_ != nullptr; }
    [[nodiscard]] int connection_fd() const override { return channel_ ? channel_->fd() : -1; }

    Result<GpuFacts> get_info() override;
    Result<VfFacts> get_vf(std::uint32_t vf) override;
    Result<> provision(const vgpu_pf_provision& requested) override;
    Result<> release(std::uint32_t vf, std::uint32_t generation) override;
    Result<> confirm_scrub(std::uint32_t vf, std::uint32_t generation) override;
    Result<> check_scrubbed(std::uint32_t vf, std::uint32_t generation) override;
    Result<> control(std::uint32_t vf, std::uint32_t generation,
                     vgpu_pf_control_action action) override;
    Result<> set_run_table(const vgpu_pf_run_table& table) override;
    Result<vgpu_pf_run_table> get_run_table() override;
    Result<> acquire_lease() override;
    Result<> dump(int fd) override;
    Result<std::unique_ptr<EventPort>> open_events() override;
    void interrupt() override;

private:
    template <typename T> Result<T> checked(Result<T> result);
    /// Sends a request and returns its struct as the PF core has filled it in. `fd_to_send`: -1 if
    /// there is no descriptor to send.
    template <typename T> Result<T> call(vgpu_pf_op op, T body, int fd_to_send = -1);
    /// As call(), with the time limit kChangeTimeout.
    template <typename T> Result<T> change(vgpu_pf_op op, T body);
    Result<vgpu_pf_info> read_info();
    Result<> change_vf(vgpu_pf_op op, std::uint32_t vf, std::uint32_t generation);

    const std::string path_;
    const Opener opener_;
    Wakeup interrupted_;
    std::mutex mutex_;  // guards channel_ against interrupt()
    std::unique_ptr<UapiChannel> channel_;
    std::chrono::milliseconds time_limit_ = kTimeout;
};

}  // namespace vgpu::daemon::adapters
