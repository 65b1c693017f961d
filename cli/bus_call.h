// SPDX-License-Identifier: MIT
//
// BusCall: calls vgpud with a time limit per call. Converts errors of sdbus-c++ to ServiceErrors.
// After a timeout, the error names vgpud's process. Runs in one thread.
#pragma once

#include "cli/service.h"

#include <sdbus-c++/sdbus-c++.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::cli {

/// The kinds of calls, which differ in their time limit (docs/vgpuctl.md).
enum class Limit {
    Read,       ///< 5 s: vgpud answers from memory, or waits for GPUs for at most 20 ms
    Inventory,  ///< 30 s: vgpud asks the PF cores and waits for their answers
    Change,     ///< 150 s: polkit may ask a person
};

class BusCall {
public:
    explicit BusCall(sdbus::IConnection& bus) : bus_(bus) {}

    /// Limits each further call to `max`. After several calls of cap(), the lowest limit holds.
    void cap(std::chrono::milliseconds max) { max_ = std::min(max, max_.value_or(max)); }
    /// The limit that cap() has set; none if cap() was never called.
    [[nodiscard]] std::optional<std::chrono::milliseconds> max() const { return max_; }

    /// Runs `work`, which calls vgpud, and returns the result of `work`. Throws ServiceError. For
    /// limits other than Read, pings vgpud first, to notice early if vgpud does not answer.
    template <typename Work> auto operator()(Limit limit, Work work) {
        if (limit != Limit::Read) ping();
        return limited(duration_of(limit), work);
    }

private:
    static std::chrono::milliseconds duration_of(Limit limit);

    template <typename Work> auto limited(std::chrono::milliseconds limit, Work work) {
        if (max_) limit = std::min(limit, *max_);
        bus_.setMethodCallTimeout(std::chrono::duration_cast<std::chrono::microseconds>(limit));
        try {
            return work();
        } catch (const sdbus::Error& error) {
            fail(error, limit);
        }
    }

    void ping();
    [[noreturn]] void fail(const sdbus::Error& error, std::chrono::milliseconds limit);
    /// vgpud's pid, as the bus reports it; none if vgpud does not run or the bus does not answer.
    std::optional<std::uint32_t> process_of_vgpud();

    sdbus::IConnection& bus_;
    std::optional<std::chrono::milliseconds> max_;
};

}  // namespace vgpu::cli
