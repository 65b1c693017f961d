// SPDX-License-Identifier: MIT
//
// Global wave sync (GWS): counters at which waves of different work-groups meet, as barriers
// (ds_gws_init, ds_gws_barrier: what a cooperative launch of HIP synchronises its grid with) or as
// semaphores (ds_gws_sema_*). Source: Vega ISA manual, "DS instructions", DS_GWS_*.
//
// Hardware queues a wave that may not go on. Here the wave executes the instruction again until it
// may: what it has done so far is its ticket, which is part of the wave, so waves can be saved and
// moved while they wait. Order among waiting waves is not kept.
//
// One object belongs to one process and is state of its VF (cp/scheduler_state.h): flat. The acts
// are called by the ds_gws_* handlers, by any number of threads at the same time; copying an object
// needs that no wave of the process runs.
#pragma once

#include <array>
#include <cstdint>

namespace vgpu::softgpu::isa {

class GlobalWaveSync {
public:
    static constexpr std::uint32_t kResources = 64;

    /// How far a wave has come with the instruction it waits in; 0: it has just met it.
    using Ticket = std::uint16_t;

    /// `waves_minus_1` waves wait at the next barrier until one more comes.
    void init(std::uint32_t resource, std::uint32_t waves_minus_1);
    /// True: every wave has come, this one goes on. The last one says how many the next barrier is
    /// for.
    [[nodiscard]] bool arrive(std::uint32_t resource, std::uint32_t next_minus_1, Ticket& ticket);

    /// Lets `count` waves go on that wait, or will, in acquire().
    void release(std::uint32_t resource, std::uint32_t count);
    /// Lets those go on that wait now.
    void release_all(std::uint32_t resource);
    /// True: this wave goes on.
    [[nodiscard]] bool acquire(std::uint32_t resource, Ticket& ticket);

private:
    struct alignas(8) Resource {
        std::uint32_t counter = 0;
        std::uint16_t queued = 0;   ///< waves in acquire()
        std::uint16_t barrier = 0;  ///< number of the barrier; the manual's flag is its lowest bit
    };
    template <class Change> void update(std::uint32_t resource, Change change);

    std::array<Resource, kResources> resources_{};
};

}  // namespace vgpu::softgpu::isa
