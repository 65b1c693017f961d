// SPDX-License-Identifier: MIT
//
// QosOptions are the options of 'create' and 'set' for a VF's service contract; below are its
// texts. The numbers are those of schemas/vf_qos.def; docs/scheduling.md says what they promise.
#pragma once

#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace vgpu::cli {

/// One per verb; it must outlive the parsing, since CLI11 writes into its members. Does not check
/// ranges: vgpud does, and answers OutOfRange (exit status 2).
class QosOptions {
public:
    /// Adds --min-pct and so on.
    void describe(CLI::App& command);
    /// Adds the options that were given, under the names of the service.
    void put(Options& options) const;

private:
#define QOS_NUMBER(name, least, most, standard, property, help) std::optional<Value> name##_;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    std::optional<std::string> mode_, band_;
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
