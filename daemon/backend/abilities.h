// SPDX-License-Identifier: MIT
//
// Abilities: a table of the changes that a GPU's driver can make. Each kind of change has a row in
// abilities.def. The driver's backend fills in one Ability for it: the condition for the change,
// and the possible values. Create, set, plan and apply check their requests against this table;
// D-Bus and vgpuctl show it. Constant while the driver is connected.
#pragma once

#include "daemon/ports/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace vgpu::daemon {

/// The condition for a change, from the weakest to the strongest: several changes together need the
/// strongest of their conditions.
/// VfIdle: no client has the VF open, and no other user owns it; force overrides both.
/// AllIdle: as VfIdle, for all VFs of the GPU; force overrides owners, but never an open VF.
/// Reload, Reboot: the driver must be loaded again, or the host started again; vgpud does neither.
/// Never: the driver cannot make the change.
enum class Needs { Nothing, VfIdle, AllIdle, Reload, Reboot, Never };

/// The kinds of change.
enum class Change : std::uint8_t {
#define ABILITY(name, key, words) name,
#include "daemon/backend/abilities.def"
#undef ABILITY
};
inline constexpr std::size_t kChanges = 0
#define ABILITY(name, key, words) +1
#include "daemon/backend/abilities.def"
#undef ABILITY
    ;

/// One kind of change. `min`, `max` and `unit` (values are its multiples) are in the unit of the
/// kind's key; the defaults leave the range to the setting itself.
struct Ability {
    Needs needs = Needs::Never;
    std::uint64_t unit = 1;
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    /// True if the driver does not keep the value in all cases, such as a weight among VFs that are
    /// not always busy. Offered only if the GPU's configuration accepts that.
    bool is_approximate = false;

    bool operator==(const Ability&) const = default;
};

/// All abilities of a driver. Descriptions and the setting scrub_on_release are vgpud's own: every
/// GPU offers both, except scrub_on_release while vgpud only observes the GPU.
struct Abilities {
    explicit Abilities(std::string driver_name = "") : driver(std::move(driver_name)) {
        for (const Change own : {Change::Description, Change::ScrubOnRelease})
            (*this)[own].needs = Needs::Nothing;
    }

    std::string driver;  ///< name of the PF driver in sysfs ("vgpu_pf", "xe"), or "vgpu-pf" if the
                         ///< PF core is a process
    std::array<Ability, kChanges> of{};
    /// True if vgpud plans run tables, and measures service and waits from events. If false, the
    /// driver itself schedules, with the values of Backend::set_shares().
    bool has_run_tables = false;
    /// The PF's quantum, if the driver has no run tables and serves its functions in turn, each for
    /// its quantum (quanta.h). Absent if the driver's scheduling is unknown.
    std::optional<std::uint32_t> pf_quantum_ms{};
    /// True if vgpud only watches the GPU and changes nothing (docs/backends.md).
    bool is_observing = false;

    [[nodiscard]] const Ability& operator[](Change change) const {
        return of.at(static_cast<std::size_t>(change));
    }
    [[nodiscard]] Ability& operator[](Change change) {
        return of.at(static_cast<std::size_t>(change));
    }
    [[nodiscard]] bool can(Change change) const { return (*this)[change].needs != Needs::Never; }

    bool operator==(const Abilities&) const = default;
};

/// True if weights decide the quantum of each VF without a quantum_us. The GPU then has no default
/// quantum.
[[nodiscard]] inline bool has_quanta_by_weight(const Abilities& abilities) {
    return !abilities.has_run_tables && abilities.can(Change::Weight);
}

/// "nothing", "vf-idle" …
std::string_view name_of(Needs needs);
/// As a clause after a setting: "needs all VFs idle"; empty for Nothing.
std::string_view text_of(Needs needs);
/// The key of options, documents and D-Bus: "vram_bytes".
std::string_view key_of(Change change);
/// The words for messages: "VRAM".
std::string_view words_of(Change change);

/// "gpu1 (driver xe)"
std::string describe(const std::string& gpu, const Abilities& abilities);

/// Checks that the driver can make this change to `value`. `whose` names the VF in messages; empty
/// for the GPU. NotOffered, Observed or OutOfRange, which name the GPU, the driver, the kind of
/// change and the values that would fit.
Result<> check_value(const std::string& gpu, const Abilities& abilities, Change change,
                     std::uint64_t value, std::string_view whose);
/// As check_value(), without a value. Also refuses changes that need a reload or a reboot.
Result<> check_offered(const std::string& gpu, const Abilities& abilities, Change change,
                       std::string_view whose);

}  // namespace vgpu::daemon
