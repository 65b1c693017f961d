// SPDX-License-Identifier: MIT
//
// Converts weights to quanta, for firmware that serves functions in turn. The firmware has only two
// settings for each function: a quantum q, and a preempt time-out p, the time that the function has
// to leave the engine after its quantum. Function 0 is the PF. n is the number of VFs, s the time
// of one switch.
//
//   share of VF i, all busy     q_i / Σ q
//   longest wait of VF i        gap_i = Σ_{j≠i} (q_j + p_j) + (n + 1) · s
//   guaranteed share            q_i / (q_i + gap_i)
//
// The firmware skips an idle VF. The time of this VF goes to the busy VFs in the ratio of their
// quanta, as weights require. A VF that runs out of work loses the rest of its quantum, so weights
// hold only among VFs that are always busy. Quanta can be as short as 1 ms, so mainly the time-outs
// p limit how short the longest wait can be. Pure functions.
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

/// The requested share of a VF, for drivers without run tables. A value that the driver does not
/// offer has the default below.
struct VfShare {
    std::uint32_t vf = 0;
    std::uint32_t weight = 1;
    std::uint32_t quantum_us = 0;          ///< a whole number of ms; 0: decided by weight
    std::uint64_t preempt_timeout_us = 0;  ///< 0: kTimeoutUs or kBoundedTimeoutUs
    std::uint64_t max_wait_us = 0;         ///< bound on the longest wait; 0: no bound
    double min_pct = 0;                    ///< minimum share while all functions are busy, in %
    std::string name{};                    ///< for messages; empty: "vfN"

    bool operator==(const VfShare&) const = default;
};

/// The quantum of a VF, and the wait and shares that follow from the quanta of all functions.
struct VfQuantum {
    std::uint32_t vf = 0;
    std::uint32_t quantum_ms = 0;
    std::uint64_t preempt_timeout_us = 0;
    std::uint64_t worst_wait_us = 0;  ///< longest wait, gap_i above
    double share = 0;                 ///< 0 to 1, while all VFs and the PF are busy
    double guaranteed_share = 0;      ///< 0 to 1, while other functions also use up their time-outs

    bool operator==(const VfQuantum&) const = default;
};

struct Quanta {
    std::vector<VfQuantum> vfs{};  ///< in the order of the demands of quanta_of()
    std::uint32_t pf_quantum_ms = 1;
    std::uint32_t pf_preempt_timeout_us = kTimeoutUs;
    std::uint32_t cycle_ms = 0;  ///< Σ q, with the PF's quantum

    bool operator==(const Quanta&) const = default;
};

/// Computes a quantum of whole ms for each VF. A VF with a quantum_us gets this quantum. The other
/// VFs get quanta in the exact ratio of their weights (exact quanta), if possible:
///
///   with bounds on waits      the longest exact quanta that keep all bounds
///   without bounds            the shortest exact quanta of at least 16 ms each; if there are none,
///                             the longest exact quanta
///
/// In both cases the sum of all VFs' quanta is at most 200 ms, unless even the shortest exact
/// quanta have a larger sum.
///
/// If the shortest exact quanta have a sum above 1000 ms, or if no exact quanta keep the bounds,
/// quanta_of() rounds the quanta that weights decide. These quanta then have a sum of about 200 ms
/// or less, and each VF's part of this sum differs by at most 5 % from its part by weight.
///
/// NoSchedule names the reason and a fix, and the VF if the reason is one VF's wait or share.
/// OutOfRange if a quantum_us is not a whole number of ms.
Result<Quanta> quanta_of(std::span<const VfShare> demands, std::uint32_t pf_quantum_ms = 1);

}  // namespace vgpu::daemon
