// SPDX-License-Identifier: MIT
//
// VfOptions: options of 'create' and 'set', one for each row of schemas/vf_settings.def; and texts
// of the contract. Meaning: docs/scheduling.md; values: docs/dbus-api.md.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <map>
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
    std::map<std::string, std::optional<Value>> values_;  ///< by the service's names
};

/// The reservation: "20 % every 10 ms", "none". From MinPct, LatencyMs, PhaseMs, Mode.
std::string reservation_text(const Properties& vf);
/// The cap: "50 %, burst 6 ms", "none". From MaxPct and BurstMs.
std::string cap_text(const Properties& vf);
/// The contract in whole percents: "20-50", ">20", "<50"; with H or L for a priority class, S for
/// strict. "20G": a gang.
std::string short_qos_text(const Properties& vf);

}  // namespace vgpu::cli
