// SPDX-License-Identifier: MIT
//
// VfOptions are the options that 'create' and 'set' share: a VF's service contract, who gets its
// PCI function and when its VRAM is scrubbed. Below are the texts of the contract. Its numbers are
// those of schemas/vf_qos.def; docs/scheduling.md says what they promise, docs/dbus-api.md has all
// values.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace vgpu::cli {

/// One per verb; it must outlive the parsing, since CLI11 writes into its members. Does not check
/// ranges: vgpud does, and answers OutOfRange (exit status 2).
class VfOptions {
public:
    /// Adds --weight, --min-pct and so on.
    void describe(CLI::App& command);
    /// Adds the options that were given, under the names of the service.
    void put(Options& options) const;

private:
#define QOS_NUMBER(name, least, most, standard, property, help) std::optional<Value> name##_;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    std::optional<Value> weight_, quantum_us_;
    std::optional<std::string> mode_, band_, handover_, scrub_;
};

/// "20 % every 10 ms", "none"
/// `vf` has the properties of Manager.ListVfs: MinPct, LatencyMs, PhaseMs, Mode.
std::string reservation_text(const Properties& vf);
/// "50 %, 6 ms at once", "none"
/// From MaxPct and BurstMs; 100 % or more means no cap.
std::string cap_text(const Properties& vf);
/// Whole percents: "20-50", ">20", "<50", followed by H or L for a band and S for strict; "20G":
/// slots of a gang; "-": only a weight.
std::string short_qos_text(const Properties& vf);

}  // namespace vgpu::cli
