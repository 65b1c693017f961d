// SPDX-License-Identifier: MIT
//
// DriftGuard: what to do about a value that somebody else has changed. vgpud puts its own value
// back, but two programs that both do so would fight for ever: so at most once in 10 s, and after
// three times vgpud gives up and says so. The count starts again when the value has stayed for ten
// minutes, or when the operator changes it. Pure.
#pragma once

#include "daemon/ports/clock.h"

#include <cstdint>
#include <map>
#include <string>

namespace vgpu::daemon::sriov {

class DriftGuard {
public:
    static constexpr Nanoseconds kPause = std::chrono::seconds(10);
    static constexpr Nanoseconds kForget = std::chrono::minutes(10);
    static constexpr std::uint32_t kTries = 3;

    enum class Verdict {
        Wait,     ///< look again later
        PutBack,  ///< write vgpud's value now; counted
        Abandon,  ///< from now on the other's value stays; returned once
        Leave,    ///< given up before
    };

    /// `what` (a setting of a VF) differs from vgpud's value at `now`.
    Verdict differs(const std::string& what, Nanoseconds now);
    /// The operator has set it: all is forgotten.
    void forget(const std::string& what) { rows_.erase(what); }

private:
    struct Row {
        std::uint32_t tries = 0;
        Nanoseconds last{0};
        bool is_abandoned = false;
    };
    std::map<std::string, Row> rows_;
};

}  // namespace vgpu::daemon::sriov
