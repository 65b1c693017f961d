// SPDX-License-Identifier: MIT
//
// BusCall: one call of vgpud after the other, each with a limit for its answer, and what sdbus-c++
// throws as a ServiceError that says which process did not answer. BusService makes every call
// through it. One thread.
#pragma once

#include "cli/service.h"

#include <sdbus-c++/sdbus-c++.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// How long an answer may take; docs/vgpuctl.md tells the limits.
enum class Limit {
    Read,    ///< what vgpud knows
    Survey,  ///< what vgpud has to ask the PF cores for
    Change,  ///< destroying waits for a scrub, polkit may ask a person
    Agent,   ///< a self-test may be given 300 s, and polkit may ask a person
};

class BusCall {
public:
    explicit BusCall(sdbus::IConnection& bus) : bus_(bus) {}

    /// No call waits for longer from now on, nor for longer than was said before.
    void cap(std::chrono::milliseconds most) { most_ = std::min(most, most_.value_or(most)); }

    /// Runs `work`, which asks vgpud once. A vgpud that is frozen is found out by a ping before it
    /// is asked for something that may take long.
    template <typename Work> auto operator()(Limit limit, Work work) {
        if (limit != Limit::Read) ping();
        return limited(duration_of(limit), work);
    }

private:
    static std::chrono::milliseconds duration_of(Limit limit);

    template <typename Work> auto limited(std::chrono::milliseconds limit, Work work) {
        if (most_) limit = std::min(limit, *most_);
        bus_.setMethodCallTimeout(std::chrono::duration_cast<std::chrono::microseconds>(limit));
        try {
            return work();
        } catch (const sdbus::Error& error) {
            fail(error, limit);
        }
    }

    void ping();
    [[noreturn]] void fail(const sdbus::Error& error, std::chrono::milliseconds limit);
    /// As the bus knows it; nothing if nobody has the name.
    std::optional<std::uint32_t> process_of_vgpud();

    sdbus::IConnection& bus_;
    std::optional<std::chrono::milliseconds> most_;
};

}  // namespace vgpu::cli
