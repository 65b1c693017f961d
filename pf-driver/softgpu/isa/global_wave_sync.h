// SPDX-License-Identifier: MIT
//
// Global wave sync (GWS): counters that synchronise waves of different work-groups. They act as
// barriers (ds_gws_init, ds_gws_barrier: HIP synchronises the grid of a cooperative launch with
// them) or as semaphores (ds_gws_sema_*). Source: Vega ISA manual, "DS instructions", DS_GWS_*.
//
// Hardware queues a wave that must wait. Here the wave repeats the instruction until it may
// continue: its ticket holds its progress and is part of the wave, so waves can be saved and moved
// while they wait. Waves may continue in another order than they arrived.
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

    /// Sets the next barrier to `waves_minus_1` + 1 waves.
    void init(std::uint32_t resource, std::uint32_t waves_minus_1);
    /// True if every wave has arrived, so that this wave may continue; else the wave calls again
    /// with the same ticket. The last wave sets the number of waves of the next barrier.
    [[nodiscard]] bool arrive(std::uint32_t resource, std::uint32_t next_minus_1, Ticket& ticket);

    /// Lets `count` waves pass acquire(): waves that wait already, or waves that call later.
    void release(std::uint32_t resource, std::uint32_t count);
    /// Lets as many waves pass acquire() as wait in acquire() at present.
    void release_all(std::uint32_t resource);
    /// True if this wave may continue; else the wave calls again with the same ticket.
    [[nodiscard]] bool acquire(std::uint32_t resource, Ticket& ticket);

private:
    struct alignas(8) Resource {
        std::uint32_t counter = 0;
        std::uint16_t queued = 0;   ///< waves that wait in acquire()
        std::uint16_t barrier = 0;  ///< number of the barrier; the manual's flag is its lowest bit
    };
    template <class Change> void update(std::uint32_t resource, Change change);

    std::array<Resource, kResources> resources_{};
};

}  // namespace vgpu::softgpu::isa
