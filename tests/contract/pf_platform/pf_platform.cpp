// SPDX-License-Identifier: MIT
#include "tests/contract/pf_platform/pf_platform.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

#include "daemon/simulator/model_gpu.h"
#include "pf-driver/core/state.h"
#include "pf-driver/user/uapi_server.h"
#include "tests/contract/pf_platform/kernel_platform.h"
#include "tests/support/stack/child_process.h"
#include "tests/support/stack/temp_dir.h"

namespace vgpu::test {

namespace {

using simulator::kUs;
using simulator::ModelGpu;

constexpr const char* kDeviceVariable = "VGPU_PF_DEVICE";

std::size_t descriptors_of(const std::string& process) {
    const std::filesystem::directory_iterator all("/proc/" + process + "/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class InProcessPlatform final : public PfPlatform {
public:
    InProcessPlatform() { start(); }
    ~InProcessPlatform() override {
        EXPECT_EQ(gpu_.calls_back, 0u) << "a service called the core";
        vgpu_user_server_fini(&server_);
    }

    std::unique_ptr<UapiClient> connect(bool is_owner) override { return dial(is_owner); }
    std::unique_ptr<SocketClient> connect_socket() override { return dial(true); }
    bool can_play_strangers() const override { return true; }
    std::size_t open_descriptors() const override { return descriptors_of("self"); }

    void restart() override {
        gpu_.bind(nullptr);
        vgpu_user_server_fini(&server_);
        start();
    }

private:
    std::unique_ptr<SocketClient> dial(bool is_owner) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
            throw std::runtime_error("socketpair");
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        const uid_t stranger = geteuid() + 12345;
        if (vgpu_user_server_add_client(&server_, pair[0], is_owner ? geteuid() : stranger) != 0)
            close(pair[0]);
        return std::make_unique<SocketClient>(UniqueFd(pair[1]), [this] { pump(); });
    }

    void start() {
        pf_ = std::make_unique<vgpu_pf>();
        if (vgpu_user_server_init(&server_, pf_.get()) != 0)
            throw std::runtime_error("uapi server");
        vgpu_pf_params params{};
        params.boot_id = ++boots_;
        params.time_scale = 1;
        params.event_ring = server_.ring;
        params.event_ring_bytes = server_.ring_bytes;
        std::strcpy(params.name, "gpu0");
        vgpu_pf_init(pf_.get(), gpu_.os(), &params);
        gpu_.forward = {[this](std::uint64_t token, int error, const char* text) {
                            vgpu_user_server_request_done(&server_, token, error, text);
                        },
                        [this] { vgpu_user_server_events(&server_); },
                        [this](const void* data, std::uint32_t bytes) {
                            return vgpu_user_server_stream_write(&server_, data, bytes);
                        },
                        [this](void* data, std::uint32_t bytes) {
                            return vgpu_user_server_stream_read(&server_, data, bytes);
                        }};
        gpu_.bind(pf_.get());
        vgpu_pf_attach(pf_.get());
    }

    void pump() {
        pollfd fds[UAPI_POLL_FDS];
        const std::uint32_t count = vgpu_user_server_poll_fds(&server_, fds);
        if (poll(fds, count, 0) > 0) vgpu_user_server_handle(&server_, fds, count);
        gpu_.run_for(100 * kUs);
    }

    ModelGpu gpu_;
    uapi_server server_{};
    std::unique_ptr<vgpu_pf> pf_;
    std::uint64_t boots_ = 0;
};

class ProcessPlatform final : public PfPlatform {
public:
    ProcessPlatform() {
        gpu_.emplace(ChildProcess::Spec{
            "softgpu",
            {program("softgpu"), "--name", "gpu0", "--vfs", "4", "--vram-mb", "512",
             "--aperture-mb", "256", "--cus", "8", "--threads", "1", "--socket-dir", dir_.path()},
            dir_.file("softgpu.log")});
        gpu_->wait_for_output("ready");
        start();
    }

    std::unique_ptr<UapiClient> connect(bool) override { return connect_socket(); }
    std::unique_ptr<SocketClient> connect_socket() override {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, dir_.file("uapi.sock").c_str());
        UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
        const void* generic = &address;
        if (::connect(fd.get(), static_cast<const sockaddr*>(generic), sizeof(address)) != 0)
            throw std::runtime_error("vgpu-pf does not accept clients");
        return std::make_unique<SocketClient>(std::move(fd), std::function<void()>());
    }
    bool can_play_strangers() const override { return false; }
    std::size_t open_descriptors() const override {
        return descriptors_of(std::to_string(pf_->pid()));
    }

    void restart() override {
        pf_->kill_now();
        pf_.reset();
        start();
    }

private:
    void start() {
        const std::string log = dir_.file("vgpu-pf" + std::to_string(++boots_) + ".log");
        pf_.emplace(ChildProcess::Spec{"vgpu-pf",
                                       {program("vgpu-pf"), "--device", dir_.file("pf.sock"),
                                        "--socket", dir_.file("uapi.sock")},
                                       log});
        pf_->wait_for_output("ready");
    }

    TempDir dir_;
    std::optional<ChildProcess> gpu_;
    std::optional<ChildProcess> pf_;
    int boots_ = 0;
};

}  // namespace

std::unique_ptr<PfPlatform> PfPlatform::create(PfPlatformKind kind) {
    if (kind == PfPlatformKind::InProcess) return std::make_unique<InProcessPlatform>();
    if (kind == PfPlatformKind::Processes) return std::make_unique<ProcessPlatform>();
    return std::make_unique<KernelPlatform>(std::getenv(kDeviceVariable));
}

std::vector<PfPlatformKind> PfPlatform::kinds() {
    std::vector<PfPlatformKind> kinds{PfPlatformKind::InProcess, PfPlatformKind::Processes};
    if (std::getenv(kDeviceVariable) != nullptr) kinds.push_back(PfPlatformKind::Kernel);
    return kinds;
}

std::string name(PfPlatformKind kind) {
    constexpr const char* kNames[] = {"InProcess", "Processes", "Kernel"};
    return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace vgpu::test
