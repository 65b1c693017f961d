// SPDX-License-Identifier: MIT
//
// A core on a ModelGpu, attached, with the event ring in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/simulator/model_gpu.h"
#include "pf-driver/core/top/parts.h"

namespace vgpu::test {

using simulator::Fault;
using simulator::FaultKind;
using simulator::kEndless;
using simulator::kMs;
using simulator::kSecond;
using simulator::kUs;
using simulator::ModelGpu;

/// A whole number, from the least to the most.
using Rng = std::function<std::uint64_t(std::uint64_t min, std::uint64_t max)>;

[[nodiscard]] vgpu_pf_contract reservation(std::uint64_t budget_ns, std::uint64_t period_ns,
                                           std::uint32_t ahead = 0);

/// The messages by which a guest requests a reset, each with its answer.
inline constexpr std::pair<std::uint32_t, std::uint32_t> kResetRequests[] = {
    {MAILBOX_REQ_GPU_RESET_ACCESS, MAILBOX_VF_READY_TO_ACCESS_GPU},
    {MAILBOX_READY_TO_RESET, MAILBOX_VF_FLR_NOTIFICATION_CMPL}};

class Rig {
public:
    explicit Rig(ModelGpu::Options options = {}, std::function<void(vgpu_pf_params&)> adjust = {});

    ModelGpu gpu;
    std::vector<std::uint64_t> ring;
    std::unique_ptr<vgpu_pf> pf;

    [[nodiscard]] vgpu_vf& vf(std::uint32_t number) { return pf->vfs[number]; }
    [[nodiscard]] std::vector<vgpu_pf_event> events() const;
    [[nodiscard]] std::vector<vgpu_pf_event> events(vgpu_pf_event_type type,
                                                    std::uint32_t vf = 0) const;

    /// A request to its end, time passing as needed.
    template <typename T> int request(std::uint32_t op, T& payload) {
        const std::uint64_t token = ++next_token_;
        const int error = vgpu_pf_request_run(pf.get(), op, &payload, token);
        return error == -EINPROGRESS ? await(token) : error;
    }
    int provision(std::uint32_t vf, std::uint64_t mib = 32, std::uint32_t flags = 0);
    /// Something happens to a VF, and the core does what is pending.
    void post(std::uint32_t vf, vgpu_vf_event event, vgpu_pf_reason reason);
    int control(std::uint32_t vf, vgpu_pf_control_action action);
    int release(std::uint32_t vf);
    int durable(std::uint32_t vf);
    int set_table(const std::vector<vgpu_pf_run_entry>& entries,
                  const std::vector<vgpu_pf_run_entry>& reserve = {}, std::uint32_t flags = 0);
    /// With contracts by VF number.
    int set_contracts(const std::vector<vgpu_pf_run_entry>& entries,
                      const std::map<std::uint32_t, vgpu_pf_contract>& contracts,
                      const std::vector<vgpu_pf_run_entry>& reserve = {});
    /// With weights and longest gaps by VF number.
    int set_weights(const std::vector<vgpu_pf_run_entry>& entries,
                    const std::map<std::uint32_t, std::uint32_t>& weights,
                    const std::map<std::uint32_t, std::uint32_t>& max_gap_us = {});
    [[nodiscard]] vgpu_pf_vf get_vf(std::uint32_t vf);
    [[nodiscard]] vgpu_pf_info get_info();
    /// The guest's driver loads: full access, and back; READY afterwards.
    void load_driver(std::uint32_t vf);
    /// Provisioned, driver loaded, no work.
    void make_ready(std::uint32_t vf);
    /// The same, with endless work.
    void make_busy(std::uint32_t vf);
    /// Its guest has sent so much that the guard wants it paused.
    void provoke_pause(std::uint32_t vf);
    /// VFs 1..`vfs` get work, some of it without an end, and run out of it.
    void live_at_random(std::uint32_t vfs, int rounds, const Rng& rng);
    /// A new core on the same device, as after a crash of the process.
    void restart_core();
    [[nodiscard]] std::string message() const { return pf->requests.message; }

private:
    int await(std::uint64_t token);
    int send_table(const std::vector<vgpu_pf_run_entry>& entries,
                   const std::vector<vgpu_pf_run_entry>& reserve,
                   const std::function<void(vgpu_pf_run_table&)>& adjust);
    void start_core();

    std::function<void(vgpu_pf_params&)> adjust_;
    std::uint64_t next_token_ = 0;
    std::uint64_t boots_ = 0;
};

}  // namespace vgpu::test
