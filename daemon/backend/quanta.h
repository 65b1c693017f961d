// SPDX-License-Identifier: MIT
//
// Converts weights to quanta, for firmware that serves functions in turn and knows only a quantum
// and a time-out of each function. Function 0 is the PF. q: quantum, p: time-out, s: time of one
// switch, n: number of VFs.
//
//   share of VF i, all busy     q_i / Σ q
//   longest wait of VF i        gap_i = Σ_{j≠i} (q_j + p_j) + (n + 1) · s
//   guaranteed share            q_i / (q_i + gap_i)
//
// The firmware skips an idle VF, whose time goes to the busy VFs in the ratio of their quanta, as
// weights require. A VF that idles early loses the rest of its quantum, so weights hold only
// among VFs that are always busy. The time-outs, not the quanta, limit how short a wait can be.
// Pure functions.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// Time of one switch, assumed until it is measured.
inline constexpr std::uint32_t kSwitchUs = 1000;
/// Default time-out if no VF has a bound on its wait. Also the kernel's default (xe, from 7.2).
inline constexpr std::uint32_t kTimeoutUs = 16'000;
/// Default time-out if a VF has a bound on its wait.
inline constexpr std::uint32_t kBoundedTimeoutUs = 5000;

/// How a VF shares the engine, for drivers without run tables. A value that the driver does not
/// offer stays at the default below.
struct VfShare {
    std::uint32_t vf = 0;
    std::uint32_t weight = 1;
    std::uint32_t quantum_us = 0;          ///< 0: by weight; else a whole number of ms
    std::uint64_t preempt_timeout_us = 0;  ///< 0: kTimeoutUs or kBoundedTimeoutUs
    std::uint64_t max_wait_us = 0;         ///< 0: no bound
    double min_pct = 0;                    ///< minimum share of the engine while all are busy, in %
    std::string name{};                    ///< for messages; empty: the number

    bool operator==(const VfShare&) const = default;
};

struct VfQuantum {
    std::uint32_t vf = 0;
    std::uint32_t quantum_ms = 0;
    std::uint64_t preempt_timeout_us = 0;
    std::uint64_t worst_wait_us = 0;
    double share = 0;             ///< share of the engine while all VFs and the PF are busy
    double guaranteed_share = 0;  ///< share while other functions also use up their time-outs

    bool operator==(const VfQuantum&) const = default;
};

struct Quanta {
    std::vector<VfQuantum> vfs{};  ///< in the order of the demands of quanta_of()
    std::uint32_t pf_quantum_ms = 1;
    std::uint32_t pf_preempt_timeout_us = kTimeoutUs;
    std::uint32_t cycle_ms = 0;  ///< Σ q, the PF included

    bool operator==(const Quanta&) const = default;
};

/// Computes quanta of whole ms in the exact ratio of the weights. With bounds on waits, returns the
/// longest such quanta that keep the bounds. Without bounds, returns the shortest such quanta of at
/// least 16 ms each. The sum of exact quanta is at most 200 ms, unless the sum of the shortest
/// exact quanta is larger. If the exact ratio needs more than 1000 ms, or if no exact quanta keep
/// the bounds, quanta_of() rounds the quanta of VFs without a quantum_us. The rounded quanta are
/// about 200 ms or less in sum, and each VF's part of this sum is within 5 % of its part by weight.
/// NoSchedule names the reason and a fix, and the VF if the reason is one VF's wait or share.
/// OutOfRange if a quantum_us is not a whole number of ms.
Result<Quanta> quanta_of(std::span<const VfShare> demands, std::uint32_t pf_quantum_ms = 1);

}  // namespace vgpu::daemon
