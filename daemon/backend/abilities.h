// SPDX-License-Identifier: MIT
//
// Abilities: a table of the changes that a GPU's driver can make. Each kind of change has a row in
// abilities.def. The driver's backend fills in an Ability for each row: the condition for the
// change, and the possible values. The operations create, set, plan and apply check their requests
// against this table; D-Bus and vgpuctl show the table. GpuModel gets the table with the facts of
// the GPU (Backend::get_info()).
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

/// The condition for a change, from the weakest to the strongest. Several changes together need the
/// strongest of their conditions.
enum class Needs {
    Nothing,
    /// No client has the VF open, and no owner other than the requester has a claim in force on it.
    /// The option `force` overrides both conditions, but the backend for a vendor's driver refuses
    /// to take an open VF from a VM.
    VfIdle,
    /// As VfIdle, for all VFs of the GPU. `force` overrides the claims, but neither an open VF nor
    /// a VF of a running domain.
    AllIdle,
    Reload,  ///< the driver must be loaded again, which vgpud does not do
    Reboot,  ///< the host must be started again, which vgpud does not do
    Never,   ///< the driver cannot make the change, or vgpud does not offer it
};

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

/// What the driver can do for one kind of change. A possible value is a multiple of `unit` from
/// `min` to `max`. `unit`, `min` and `max` are in the unit that the key of the kind names, such as
/// bytes for vram_bytes. By default they limit nothing, and only the setting's own range applies.
struct Ability {
    Needs needs = Needs::Never;
    std::uint64_t unit = 1;
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    /// True if the driver does not keep the value in all cases, such as a weight among VFs that are
    /// not always busy. vgpud offers the change only if the GPU's configuration accepts
    /// approximations.
    bool is_approximate = false;

    bool operator==(const Ability&) const = default;
};

/// All abilities of a driver. vgpud itself implements the settings description and
/// scrub_on_release, so by default both may change at any time. A backend withdraws
/// scrub_on_release if vgpud cannot scrub the VFs, because vgpud only watches the GPU, or because
/// NVIDIA's driver keeps the VFs.
struct Abilities {
    explicit Abilities(std::string driver_name = "") : driver(std::move(driver_name)) {
        for (const Change own : {Change::Description, Change::ScrubOnRelease})
            (*this)[own].needs = Needs::Nothing;
    }

    std::string driver;  ///< name of the PF driver in sysfs ("vgpu_pf", "xe"), or "vgpu-pf" if the
                         ///< PF core is a process
    std::array<Ability, kChanges> of{};
    /// True if vgpud plans run tables, and measures service and waits from events. If false, the
    /// driver itself schedules, with the values of Backend::set_shares() if it offers that.
    bool has_run_tables = false;
    /// The PF's quantum, for a driver that serves its functions in turn with quanta that vgpud sets
    /// (quanta.h); absent for other drivers.
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

/// True if the weight of a VF decides its quantum, unless the VF has a quantum_us. The GPU itself
/// then has no quantum_us.
[[nodiscard]] inline bool has_quanta_by_weight(const Abilities& abilities) {
    return !abilities.has_run_tables && abilities.can(Change::Weight);
}

/// "nothing", "vf-idle" …
std::string_view name_of(Needs needs);
/// A clause that follows the words of a change: "needs all VFs idle"; empty for Nothing.
std::string_view text_of(Needs needs);
/// The key in options, documents and D-Bus: "vram_bytes".
std::string_view key_of(Change change);
/// The words for messages: "VRAM".
std::string_view words_of(Change change);

/// "gpu1 (driver xe)"
std::string describe(const std::string& gpu, const Abilities& abilities);

/// Checks that the driver can make this change to `value`. Does not check whether VFs are idle.
/// `whose` names the VF or the GPU in messages; may be empty. Fails with NotOffered, Observed or
/// OutOfRange. The errors name the GPU, the driver and the kind of change; OutOfRange also names
/// possible values.
Result<> check_value(const std::string& gpu, const Abilities& abilities, Change change,
                     std::uint64_t value, std::string_view whose);
/// As check_value(), but checks no value. Both functions refuse a change that needs a reload of the
/// driver or a reboot.
Result<> check_offered(const std::string& gpu, const Abilities& abilities, Change change,
                       std::string_view whose);

}  // namespace vgpu::daemon
