// SPDX-License-Identifier: MIT
//
// VfTable: what GpuModel knows of each VF, by VF number. A VF in the table has resources, or is
// defined and has none now. One entry has everything that GpuModel knows of a VF, so that nothing
// is left for the next VF with the same number when the entry is erased.
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
    /// Why the VF is not as defined, such as a refusal to provision or scrub the VF. Valid only
    /// while resource_generation() is `generation`.
    struct Refusal {
        std::uint32_t generation = 0;  ///< 0: the VF has no resources
        std::string text{};
    };

    VfFacts active{};    ///< as last read; state ABSENT: the VF is defined, but has no resources
    VfRecord defined{};  ///< the VF's record; made by record_for() if there is none on disk
    std::optional<Refusal> refusal{};
    /// Generation whose scrub is complete, as the PF core says, but not yet on record; none: no
    /// such scrub.
    std::optional<std::uint32_t> scrubbed{};
    bool may_be_scrubbed = false;  ///< true if the event SCRUBBED of the VF may have been missed
    /// When GpuModel::scrub_released() first saw that the VF must be scrubbed
    /// (VfNext::needs_scrub). The scrub waits until the client closes the VF, but at most
    /// GpuModel::kDetachTimeout. None: no such scrub waits.
    std::optional<Nanoseconds> released_at{};

    /// Service of the VF as vgpud counts it: the PF core's counter at the last
    /// GpuModel::sync_counted_service(), plus the RUN events since then. The PF core's counter
    /// minus this count is the service in events that are lost or not read yet.
    std::uint64_t counted_service_ns = 0;
    std::uint64_t counted_reserved_ns = 0;  ///< part of counted_service_ns, from the reservation or
                                            ///< in gang slots
    bool may_be_idle = false;  ///< true if an IDLE event of the VF may have been lost or ignored

    AssignmentMode assignment_mode = AssignmentMode::Default;  ///< as last read
    std::string assignment_mode_condition{};  ///< why the mode is not as defined; empty if it is
    /// Since when, as far as this vgpud has seen, the function is bound to vfio-pci although
    /// another mode is defined; none: it is not.
    std::optional<Nanoseconds> vfio_bound_since{};

    std::string orphan{};  ///< why the claim of the VF looks forgotten; empty if it does not
    std::optional<Nanoseconds> unattached_since{};  ///< since when the claimed VF has no client
    std::optional<std::string> client{};  ///< who has the VF open; "": unknown or nobody; none:
                                          ///< view() finds out

    [[nodiscard]] bool is_absent() const { return active.state == VGPU_PF_VF_ABSENT; }
    /// The generation of the VF's resources; 0 if it has none.
    [[nodiscard]] std::uint32_t resource_generation() const {
        return is_absent() ? 0 : active.generation;
    }
};

using VfTable = std::map<std::uint32_t, Vf>;

/// Numbers of the VFs for which `holds(vf)` is true. A loop over these numbers may erase entries of
/// `vfs`.
template <typename Predicate>
[[nodiscard]] std::vector<std::uint32_t> numbers_where(const VfTable& vfs, const Predicate& holds) {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, vf] : vfs)
        if (holds(vf)) numbers.push_back(number);
    return numbers;
}

}  // namespace vgpu::daemon
