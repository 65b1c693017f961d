// SPDX-License-Identifier: MIT
//
// VfTable: what GpuModel knows of each VF, by number. A VF is in the table if it has resources, or
// if it is defined and shows why it has none. Erasing an entry leaves none of these facts for the
// next VF with that number.
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
    /// Why the PF core did not make or scrub the VF. Valid for one generation only.
    struct Refusal {
        std::uint32_t generation = 0;  ///< 0: the VF has no resources
        std::string text{};
    };

    VfFacts active{};    ///< as last read; ABSENT: defined, but without resources
    VfRecord defined{};  ///< the VF's record; record_for() makes one for a VF without a record
    std::optional<Refusal> refusal{};
    /// Generation whose scrub is complete, but not yet on record.
    std::optional<std::uint32_t> scrubbed{};
    /// The time since which the VF owes a scrub; the scrub waits for the client to close the VF, at
    /// most GpuModel::kDetachTimeout.
    std::optional<Nanoseconds> released_at{};

    /// Service of the VF: the PF core's counter at the last GpuModel::sync_counted_service(), plus
    /// later RUN events. If the PF core's counter is larger, the difference is service in lost
    /// events.
    std::uint64_t counted_service_ns = 0;
    std::uint64_t counted_reserved_ns = 0;  ///< part of counted_service_ns, from the reservation
    bool may_be_idle = false;  ///< true if the VF may be idle although no IDLE event has said so

    AssignmentMode assignment_mode = AssignmentMode::Default;  ///< as last read
    std::string assignment_mode_condition{};                   ///< why the mode is not as defined

    std::string orphan{};  ///< why the claim of the VF looks forgotten; empty if it does not
    std::optional<Nanoseconds> unattached_since{};  ///< since when the claimed VF has no client
    std::optional<std::string> client{};  ///< who has the VF open; none: view() asks again

    [[nodiscard]] bool is_absent() const { return active.state == VGPU_PF_VF_ABSENT; }
    /// The generation of the VF's resources; 0 if it has none.
    [[nodiscard]] std::uint32_t resource_generation() const {
        return is_absent() ? 0 : active.generation;
    }
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
