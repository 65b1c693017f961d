// SPDX-License-Identifier: MIT
//
// VfOptions: options of 'create' and 'set': contract, assignment of the function, scrub; and texts
// of the contract. Numbers: schemas/vf_qos.def; meaning: docs/scheduling.md; values:
// docs/dbus-api.md.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Must outlive the parsing. vgpud checks ranges (OutOfRange, exit status 2).
class VfOptions {
public:
    /// Adds --weight, --min-pct and so on.
    void describe(CLI::App& command);
    /// Given options, with the service's names.
    void put(Options& options) const;

private:
#define QOS_NUMBER(name, least, most, standard, property, help) std::optional<Value> name##_;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    std::optional<Value> weight_, quantum_us_;
    std::optional<std::string> mode_, band_, handover_, scrub_;
};

/// "20 % every 10 ms", "none"; from MinPct, LatencyMs, PhaseMs, Mode.
std::string reservation_text(const Properties& vf);
/// "50 %, 6 ms at once", "none"; from MaxPct and BurstMs.
std::string cap_text(const Properties& vf);
/// Whole percents: "20-50", ">20", "<50", with H or L for a band, S for strict; "20G": a gang.
std::string short_qos_text(const Properties& vf);

}  // namespace vgpu::cli
