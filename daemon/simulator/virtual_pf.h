// SPDX-License-Identifier: MIT
//
// VirtualPf: a PF core on a ModelGpu, in this process and in virtual time. Clients use the uapi,
// with the same errors, but without a socket.
#pragma once

#include "daemon/adapters/uapi_client.h"
#include "daemon/adapters/unique_fd.h"
#include "daemon/ports/clock.h"
#include "daemon/simulator/model_gpu.h"
#include "pf-driver/core/pf.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace vgpu::simulator {

class VirtualPf {
public:
    static constexpr std::uint32_t kRingEntries = 4096;  ///< entries of the event ring

    /// Throws std::runtime_error if there is no memory for the ring.
    explicit VirtualPf(const ModelGpu::Options& options);
    ~VirtualPf();
    VirtualPf(const VirtualPf&) = delete;
    VirtualPf& operator=(const VirtualPf&) = delete;

    ModelGpu gpu;
    /// Called while a request waits for the device. Must advance `gpu` to the device's next event.
    /// Must not be empty when a client sends a request.
    std::function<void()> wait;
    /// Called when the core has accepted a run table. May be empty.
    std::function<void(std::uint64_t generation)> on_table;

    [[nodiscard]] vgpu_pf_vf_view vf(std::uint32_t number) const;
    [[nodiscard]] vgpu_pf_engine_view engine() const;
    /// A driver for vgpud: vgpud's uapi client, connected to this core. The VirtualPf must outlive
    /// the result.
    [[nodiscard]] std::unique_ptr<daemon::Backend> port();

private:
    class Channel;
    struct Answer {
        int error = 0;
        std::string message;
    };

    [[nodiscard]] Answer run(vgpu_pf_op op, void* body);

    struct Free {
        void operator()(vgpu_pf* core) const { ::operator delete(core); }
    };
    std::unique_ptr<vgpu_pf, Free> core_;
    daemon::adapters::UniqueFd ring_memory_;
    void* ring_ = nullptr;
    std::map<std::uint64_t, Answer> done_;
    std::uint64_t last_token_ = 0;
};

/// The clock of a ModelGpu, for vgpud.
class ModelClock final : public daemon::Clock {
public:
    explicit ModelClock(const ModelGpu& gpu) : gpu_(gpu) {}
    [[nodiscard]] daemon::Nanoseconds now() const override {
        return daemon::Nanoseconds{gpu_.now()};
    }

private:
    const ModelGpu& gpu_;
};

}  // namespace vgpu::simulator
