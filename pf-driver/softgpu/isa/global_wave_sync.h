// SPDX-License-Identifier: MIT
//
// Global wave sync (GWS): counters that synchronise waves of different work-groups. A counter acts
// as a barrier (ds_gws_init, ds_gws_barrier) or as a semaphore (ds_gws_sema_*). HIP synchronises
// the grid of a cooperative launch with such a barrier. Source: Vega ISA manual, "DS instructions",
// DS_GWS_*.
//
// Hardware queues a wave that must wait. In softgpu the wave repeats the instruction until the wave
// may continue. A ticket holds the wave's progress and is part of the wave's state, so waves can be
// saved and moved while they wait. The order in which waves continue may differ from the order in
// which they arrived.
//
// Each process that uses GWS has its own GlobalWaveSync. The object is part of the saved state of
// the VF (cp/scheduler_state.h), so it is trivially copyable. The ds_gws_* handlers call the
// members from any number of threads at the same time. An object may be copied only while no wave
// of the process runs.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu::softgpu::isa {

/// The counters ("resources") of one process. Each function takes a resource number modulo
/// kResources.
class GlobalWaveSync {
public:
    static constexpr std::uint32_t kResources = 64;

    /// The progress of a wave that calls arrive() or acquire() until it may continue. 0: the wave
    /// does not wait: either no call has been made, or the last call returned true.
    using Ticket = std::uint16_t;

    /// Resets the resource. As a barrier, the resource then waits for `waves_minus_1` + 1 waves. As
    /// a semaphore, it lets `waves_minus_1` waves pass acquire().
    void init(std::uint32_t resource, std::uint32_t waves_minus_1);
    /// True if every wave has arrived at the barrier, so that this wave may continue; else the wave
    /// calls again with the same ticket. The last wave that arrives sets the number of waves of the
    /// next barrier to `next_minus_1` + 1.
    [[nodiscard]] bool arrive(std::uint32_t resource, std::uint32_t next_minus_1, Ticket& ticket);

    /// Lets `count` waves pass acquire(): waves that wait already, or waves that call later.
    void release(std::uint32_t resource, std::uint32_t count);
    /// Lets exactly as many waves pass acquire() as wait in acquire() now; earlier releases no
    /// longer count.
    void release_all(std::uint32_t resource);
    /// True if this wave may continue; else the wave calls again with the same ticket.
    [[nodiscard]] bool acquire(std::uint32_t resource, Ticket& ticket);

private:
    /// Aligned for std::atomic_ref.
    struct alignas(8) Resource {
        /// Barrier: number of waves that must arrive before the last wave. Semaphore: number of
        /// waves that may pass acquire().
        std::uint32_t counter = 0;
        std::uint16_t queued = 0;   ///< number of waves that wait in acquire()
        std::uint16_t barrier = 0;  ///< number of the current barrier (hardware has only a flag)
    };
    /// Calls `change` with the resource, as one atomic step.
    template <class Change> void update(std::uint32_t resource, Change change);

    std::array<Resource, kResources> resources_{};
};

}  // namespace vgpu::softgpu::isa
