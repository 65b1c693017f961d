// SPDX-License-Identifier: MIT
//
// VfTable: what GpuModel knows of each VF in view, by number. A VF in view has resources, or is
// defined and shows why it has none. An entry that is erased takes all with it, so that nothing is
// left for the next VF of that number.
#pragma once

#include "daemon/ports/assignment_port.h"
#include "daemon/ports/clock.h"
#include "daemon/service/state/records.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon {

struct Vf {
    /// Why the PF core did not make or scrub it. Valid for one generation only.
    struct Refusal {
        std::uint32_t generation = 0;  ///< 0: it has no resources
        std::string text{};
    };

    VfFacts active{};    ///< as last read; ABSENT: defined, but without resources
    VfRecord defined{};  ///< its record; made up for a VF without one
    std::optional<Refusal> refusal{};
    /// Generation whose scrub is seen complete, but is not yet durable.
    std::optional<std::uint32_t> scrubbed{};
    /// Since when it owes a scrub, which waits for its client to leave.
    std::optional<Nanoseconds> released_at{};

    /// Service from RUN events, on top of the PF core's counters when vgpud attached. Later
    /// differences to these counters are service in lost events.
    std::uint64_t counted_service_ns = 0;
    std::uint64_t counted_reserved_ns = 0;  ///< part of it
    bool may_be_idle = false;               ///< its IDLE may be lost

    AssignmentMode assignment_mode = AssignmentMode::Default;  ///< as last read
    std::string assignment_mode_condition{};                   ///< why it is not as defined

    std::string orphan{};  ///< why its claim looks forgotten
    std::optional<Nanoseconds> unattached_since{};
    std::optional<std::string> client{};  ///< as last reported; read again after each refresh

    [[nodiscard]] bool is_absent() const { return active.state == VGPU_PF_VF_ABSENT; }
    /// The generation of its resources; 0 without.
    [[nodiscard]] std::uint32_t incarnation() const { return is_absent() ? 0 : active.generation; }
};

using VfTable = std::map<std::uint32_t, Vf>;

/// Numbers of the VFs for which `holds(vf)` is true, for loops that may erase entries.
template <typename Predicate>
[[nodiscard]] std::vector<std::uint32_t> numbers_where(const VfTable& vfs, const Predicate& holds) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, vf] : vfs)
        if (holds(vf)) numbers.push_back(number);
    return numbers;
}

}  // namespace vgpu::daemon
