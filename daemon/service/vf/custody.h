// SPDX-License-Identifier: MIT
//
// VfCustody: into whose hands a VF comes, and what they find in it: who gets its function, and
// whether the end of a claim empties its VRAM. Part of VfRecord, of profiles and of plans; a change
// of it disturbs nobody who computes. Plain values; GpuModel acts on them. That VRAM is emptied,
// read back and only then handed out when it leaves a VF is no choice and not in here.
#pragma once

#include "daemon/ports/handover_port.h"
#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// When a VF that stays is emptied between two owners.
enum class ScrubPolicy {
    Request,  ///< when whoever ends a claim asks for it
    Release,  ///< at the end of every claim, also of one whose lease is over
};

struct VfCustody {
    Handover handover = Handover::Default;
    ScrubPolicy scrub = ScrubPolicy::Request;

    bool operator==(const VfCustody&) const = default;
};

/// What is to become different; nothing: stays.
struct CustodyChange {
    std::optional<Handover> handover{};
    std::optional<ScrubPolicy> scrub{};
};

void apply(const CustodyChange& change, VfCustody& custody);
/// Makes anything become `custody`.
[[nodiscard]] CustodyChange change_to(const VfCustody& custody);

/// "request", "release".
[[nodiscard]] std::string_view name_of(ScrubPolicy scrub);

/// Names of all options that read_custody() knows.
[[nodiscard]] std::vector<std::string_view> custody_names();
/// WrongType or OutOfRange with the option.
[[nodiscard]] Result<CustodyChange> read_custody(const OptionReader& options);
/// Members of a profile and of its security; what is not in `section` stays.
void read_handover(JsonSection& section, VfCustody& custody);
void read_scrub(JsonSection& section, VfCustody& custody);

/// The members that are not as by default; the other way round, throwing as nlohmann::json does.
[[nodiscard]] nlohmann::ordered_json custody_json(const VfCustody& custody);
/// All members.
[[nodiscard]] nlohmann::ordered_json whole_custody_json(const VfCustody& custody);
[[nodiscard]] VfCustody custody_of(const nlohmann::json& json);

}  // namespace vgpu::daemon
