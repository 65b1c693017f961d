// SPDX-License-Identifier: MIT
//
// VfOptions: options that 'create' and 'set' share: contract, assignment of the function, scrub.
// Also texts of the contract. Numbers: schemas/vf_qos.def; meaning: docs/scheduling.md; values:
// docs/dbus-api.md.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Must outlive the parsing. vgpud checks the ranges (OutOfRange, exit status 2).
class VfOptions {
public:
    /// Adds --weight, --min-pct and so on.
    void describe(CLI::App& command);
    /// Adds the options that were given, with the service's names.
    void put(Options& options) const;

private:
#define QOS_NUMBER(name, min, max, standard, property, help) std::optional<Value> name##_;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    std::optional<Value> weight_, quantum_us_;
    std::optional<std::string> mode_, priority_class_, assignment_mode_, scrub_;
};

/// The reservation: "20 % every 10 ms", "none". From MinPct, LatencyMs, PhaseMs, Mode.
std::string reservation_text(const Properties& vf);
/// The cap: "50 %, 6 ms at once", "none". From MaxPct and BurstMs.
std::string cap_text(const Properties& vf);
/// The contract in whole percents: "20-50", ">20", "<50"; with H or L for a priority class, S for
/// strict. "20G": a gang.
std::string short_qos_text(const Properties& vf);

}  // namespace vgpu::cli
