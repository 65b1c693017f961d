// SPDX-License-Identifier: MIT
//
// VfCustody: the assignment of a VF: which driver gets its function, and whether the end of a claim
// empties its VRAM. Part of VfRecord, profiles and plans. A change disturbs no running work. Plain
// values, which GpuModel applies. VRAM that leaves a VF is always scrubbed and verified.
#pragma once

#include "daemon/ports/handover_port.h"
#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// When a VF is emptied between two owners.
enum class ScrubPolicy {
    Request,  ///< when the release requests it
    Release,  ///< at the end of every claim, including claims with an expired lease
};

struct VfCustody {
    Handover handover = Handover::Default;
    ScrubPolicy scrub = ScrubPolicy::Request;

    bool operator==(const VfCustody&) const = default;
};

/// Values that are not given stay.
struct CustodyChange {
    std::optional<Handover> handover{};
    std::optional<ScrubPolicy> scrub{};
};

void apply(const CustodyChange& change, VfCustody& custody);
/// The change that makes any custody equal to `custody`.
[[nodiscard]] CustodyChange change_to(const VfCustody& custody);

[[nodiscard]] std::string_view name_of(ScrubPolicy scrub);

[[nodiscard]] std::vector<std::string_view> custody_names();
/// Reads the options of custody. WrongType or OutOfRange with the option.
[[nodiscard]] Result<CustodyChange> read_custody(const OptionReader& options);
/// Read members of a profile and of its "security". If a member is absent, the value stays.
void read_handover(JsonSection& section, VfCustody& custody);
void read_scrub(JsonSection& section, VfCustody& custody);

/// custody_json() writes members that differ from the default. custody_of() throws as
/// nlohmann::json does.
[[nodiscard]] nlohmann::ordered_json custody_json(const VfCustody& custody);
[[nodiscard]] nlohmann::ordered_json whole_custody_json(const VfCustody& custody);
[[nodiscard]] VfCustody custody_of(const nlohmann::json& json);

}  // namespace vgpu::daemon
