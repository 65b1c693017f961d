// SPDX-License-Identifier: MIT
//
// VfOptions: the options of 'create' and 'set' for the settings of a VF, one option for each row of
// schemas/vf_settings.def. This header also declares functions that describe a VF's contract.
// docs/scheduling.md explains the settings, and docs/dbus-api.md lists their values.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>

namespace vgpu::cli {

/// Must outlive the parsing. vgpud, not vgpuctl, checks the ranges (OutOfRange, exit status 2).
class VfOptions {
public:
    /// Adds --weight, --min-pct and so on.
    void describe(CLI::App& command);
    /// Adds to `options` the settings that the user gave, with vgpud's names.
    void put(Options& options) const;

private:
    /// The values, by vgpud's names of the settings; none if the user did not give the option.
    std::map<std::string, std::optional<Value>> values_;
};

/// The VF's reservation: "20 % every 10 ms", "none". From MinPct, LatencyMs, PhaseMs and Mode.
std::string reservation_text(const Properties& vf);
/// The VF's cap: "50 %, burst 6 ms", "none". From MaxPct and BurstMs.
std::string cap_text(const Properties& vf);
/// The VF's reservation and cap in whole percents: "20-50", ">20" (no cap), "<50" (no reservation).
/// H or L follows for the priority class high or low, then S for the mode strict. For the mode
/// gang, only the reservation and G: "20G". "-" if there is nothing to show.
std::string short_qos_text(const Properties& vf);

}  // namespace vgpu::cli
