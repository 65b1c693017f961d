// SPDX-License-Identifier: MIT
//
// Converts weights to quanta, for firmware that serves functions in turn and knows only a quantum
// and a time-out of each. Function 0 is the PF; q: quantum, p: time-out, s: one switch, n: VFs.
//
//   share of VF i, all busy     q_i / Σ q
//   longest wait of VF i        gap_i = Σ_{j≠i} (q_j + p_j) + (n + 1) · s
//   guaranteed share            q_i / (q_i + gap_i)
//
// An idle VF is skipped and its time goes to the busy ones in the ratio of their quanta, which is
// what a weight means. A VF that idles early loses the rest of its quantum, so weights hold only
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
/// Default time-outs: kBoundedTimeoutUs if the wait of some VF is bounded, else kTimeoutUs, which
/// is also the kernel's default (xe, from 7.2).
inline constexpr std::uint32_t kBoundedTimeoutUs = 5000, kTimeoutUs = 16'000;

/// How a VF shares the engine, for drivers without run tables. A value that the driver does not
/// offer stays at its default.
struct VfShare {
    std::uint32_t vf = 0;
    std::uint32_t weight = 1;
    std::uint32_t quantum_us = 0;          ///< 0: by weight; else a whole number of ms
    std::uint64_t preempt_timeout_us = 0;  ///< 0: a default
    std::uint64_t max_wait_us = 0;         ///< 0: no bound
    double min_pct = 0;                    ///< minimum share of the engine while all are busy
    std::string name{};                    ///< for messages; empty: the number

    bool operator==(const VfShare&) const = default;
};

struct VfQuantum {
    std::uint32_t vf = 0;
    std::uint32_t quantum_ms = 0;
    std::uint64_t preempt_timeout_us = 0;
    std::uint64_t worst_wait_us = 0;
    double share = 0;             ///< of the engine while all VFs and the PF are busy
    double guaranteed_share = 0;  ///< while all others also use up their time-outs

    bool operator==(const VfQuantum&) const = default;
};

struct Quanta {
    std::vector<VfQuantum> vfs{};  ///< in the order of the demands
    std::uint32_t pf_quantum_ms = 1;
    std::uint32_t pf_preempt_timeout_us = kTimeoutUs;
    std::uint32_t cycle_ms = 0;  ///< Σ q

    bool operator==(const Quanta&) const = default;
};

/// Quanta of whole ms in the exact ratio of the weights. With bounds on waits, the longest quanta
/// that keep the bounds; without, the shortest quanta of at least 16 ms each. The quanta of all VFs
/// are at most 200 ms in sum, unless the shortest exact quanta are longer. If the exact ratio needs
/// more than 1000 ms, or no exact quanta keep the bounds, rounds the quanta, with shares within 5 %
/// of the ideal.
/// NoSchedule names the VF, its shortest possible wait or its share, and a fix. OutOfRange if a
/// quantum_us is not a whole number of ms.
Result<Quanta> quanta_of(std::span<const VfShare> demands, std::uint32_t pf_quantum_ms = 1);

}  // namespace vgpu::daemon
