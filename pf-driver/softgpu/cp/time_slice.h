// SPDX-License-Identifier: MIT
//
// TimeSlice: the number, start, end of quantum and phase of the current or last period of a VF on
// the engine.
//
//             begin()                        stop()                       end()
//   Parked ------------> Running ------------------------> Parking ------------> Parked
//
// Guarded by the engine's lock. The engine calls end() once no worker is inside the VF (engine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/packet_source.h"
#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/cp/command_processor.h"

namespace vgpu::softgpu::cp {

/// A VF as the engine sees it. GpuVf owns the Context and keeps it while the VF is on the engine.
struct Context {
    VfId vf;
    /// The VF lock. Workers hold it while they execute packets, and while they lease or return a
    /// work-group (dispatch.h), but not while they run a work-group.
    PiMutex& lock;
    CommandProcessor& cp;
    std::vector<PacketSource*> sources;  ///< SDMA engines, encoder rings, iov::Doorbells
};

/// The report of one time slice of a VF on the engine.
struct RunReport {
    std::uint64_t time_slice = 0;  ///< TimeSlice::number()
    VfId vf{};
    Nanoseconds start{};             ///< clock at begin()
    Nanoseconds end{};               ///< clock when the last worker had left the VF
    Nanoseconds park{};              ///< time from stop() to `end`
    Nanoseconds idle{};              ///< IdleTracker::idle_time()
    std::uint64_t instructions = 0;  ///< wave instructions retired
};

class TimeSlice {
public:
    enum class Phase : std::uint8_t { Parked, Running, Parking };

    [[nodiscard]] Phase phase() const { return phase_; }
    [[nodiscard]] bool is_running() const { return phase_ == Phase::Running; }
    /// nullptr if no VF is on the engine.
    [[nodiscard]] Context* context() const { return context_; }
    /// Number of the current or last time slice; counts the time slices of all VFs. 0: none yet.
    [[nodiscard]] std::uint64_t number() const { return number_; }
    /// Clock at which the quantum ends; nullopt if the time slice has no limit, or if no VF is on
    /// the engine.
    [[nodiscard]] std::optional<Nanoseconds> deadline() const { return deadline_; }

    void begin(Context& context, Nanoseconds now, std::optional<Nanoseconds> quantum) {
        phase_ = Phase::Running;
        context_ = &context;
        ++number_;
        started_ = now;
        deadline_ = quantum ? std::optional(now + *quantum) : std::nullopt;
        instructions_before_ = context.cp.counters().wave_instructions;
    }
    void stop(Nanoseconds now) {
        phase_ = Phase::Parking;
        stopped_ = now;
    }
    /// Call when no worker is inside the VF, so that the VF's counters do not change meanwhile.
    [[nodiscard]] RunReport end(Nanoseconds now, Nanoseconds idle) {
        const std::uint64_t instructions = context_->cp.counters().wave_instructions;
        const RunReport report{number_,
                               context_->vf,
                               started_,
                               now,
                               now - stopped_,
                               idle,
                               instructions - instructions_before_};
        phase_ = Phase::Parked;
        context_ = nullptr;
        deadline_.reset();
        return report;
    }

private:
    Phase phase_ = Phase::Parked;
    Context* context_ = nullptr;
    std::uint64_t number_ = 0;
    std::optional<Nanoseconds> deadline_;
    Nanoseconds started_{};
    Nanoseconds stopped_{};
    std::uint64_t instructions_before_ = 0;
};

}  // namespace vgpu::softgpu::cp
