// SPDX-License-Identifier: MIT
//
// Global wave sync (GWS): counters that synchronise waves of different work-groups. A counter acts
// as a barrier (ds_gws_init, ds_gws_barrier) or as a semaphore (ds_gws_sema_*). HIP synchronises
// the grid of a cooperative launch by such a barrier. Source: Vega ISA manual, "DS instructions",
// DS_GWS_*.
//
// Hardware queues a wave that must wait. In softgpu the wave repeats the instruction until the wave
// may continue. A ticket holds the wave's progress and is part of the wave's state, so waves can be
// saved and moved while they wait. Waves may continue in another order than they arrived.
//
// One object belongs to one process and is state of its VF (cp/scheduler_state.h), so it is
// trivially copyable. The ds_gws_* handlers call the members from any number of threads at the same
// time. An object may be copied only while no wave of the process runs.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu::softgpu::isa {

class GlobalWaveSync {
public:
    static constexpr std::uint32_t kResources = 64;

    /// A wave's progress in the instruction in which it waits; 0: the wave has just reached the
    /// instruction.
    using Ticket = std::uint16_t;

    /// Resets the resource; its next barrier waits for `waves_minus_1` + 1 waves.
    void init(std::uint32_t resource, std::uint32_t waves_minus_1);
    /// True if every wave has arrived, so that this wave may continue; else the wave calls again
    /// with the same ticket. The last wave sets the number of waves of the next barrier to
    /// `next_minus_1` + 1.
    [[nodiscard]] bool arrive(std::uint32_t resource, std::uint32_t next_minus_1, Ticket& ticket);

    /// Lets `count` waves pass acquire(): waves that wait already, or waves that call later.
    void release(std::uint32_t resource, std::uint32_t count);
    /// Lets as many waves pass acquire() as wait in acquire() at present.
    void release_all(std::uint32_t resource);
    /// True if this wave may continue; else the wave calls again with the same ticket.
    [[nodiscard]] bool acquire(std::uint32_t resource, Ticket& ticket);

private:
    struct alignas(8) Resource {
        /// Of a barrier: waves that must arrive before the last one. Of a semaphore: waves that may
        /// pass acquire().
        std::uint32_t counter = 0;
        std::uint16_t queued = 0;   ///< waves that wait in acquire()
        std::uint16_t barrier = 0;  ///< number of the present barrier (the manual has one flag)
    };
    template <class Change> void update(std::uint32_t resource, Change change);

    std::array<Resource, kResources> resources_{};
};

}  // namespace vgpu::softgpu::isa
