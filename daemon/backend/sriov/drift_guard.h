// SPDX-License-Identifier: MIT
//
// DriftGuard: limits how often vgpud restores a value that another program has changed. Two
// programs that both restore their values would overwrite each other for ever. So vgpud restores a
// value at most once in kPause, and kTries times in all. At the next difference after that, vgpud
// reports that it gives up. The count starts again when vgpud itself sets the value (forget()).
// Unless vgpud has given up, the count also starts again kForget after the last time that vgpud
// restored the value. No I/O; the caller passes the time.
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
        Wait,     ///< check again later
        Restore,  ///< write vgpud's value now; on_difference() has counted this try
        Abandon,  ///< stop restoring the value and report that; returned once
        Leave,    ///< do nothing: abandoned before
    };

    /// Call if the setting `what` differs from vgpud's value at the time `now`.
    Verdict on_difference(const std::string& what, Nanoseconds now);
    /// Forgets the count of the setting `what`. Call when vgpud sets a requested value.
    void forget(const std::string& what) { rows_.erase(what); }

private:
    struct Row {
        std::uint32_t tries = 0;
        Nanoseconds last{0};  ///< time of the last Restore
        bool is_abandoned = false;
    };
    std::map<std::string, Row> rows_;
};

}  // namespace vgpu::daemon::sriov
