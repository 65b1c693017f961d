// SPDX-License-Identifier: MIT
#include "cli/qos_options.h"

#include "cli/format.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace vgpu::cli {

namespace {

std::string flag_of_name(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return "--" + name;
}

/// Whole numbers go as t, which vgpud takes also where it wants a d; others as d, which it refuses
/// where it wants a whole one.
void put_number(Options& options, const std::string& name, const std::optional<double>& value) {
    constexpr double kMostWhole = 1e15;
    if (!value) return;
    if (*value >= 0 && *value < kMostWhole && std::floor(*value) >= *value)
        options[name] = static_cast<std::uint64_t>(*value);
    else
        options[name] = *value;
}

constexpr double kAll = 100;

bool has_cap(const Properties& vf) {
    return vf.contains("MaxPct") && real_of(vf, "MaxPct") < kAll;
}

}  // namespace

void QosOptions::describe(CLI::App& command) {
#define QOS_NUMBER(name, least, most, standard, property, help) \
    command.add_option(flag_of_name(#name), name##_, help);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    command.add_option("--mode", mode_, "work-conserving, strict (keeps slots idle), gang");
    command.add_option("--band", band_, "high, normal or low: after those before it");
}

void QosOptions::put(Options& options) const {
#define QOS_NUMBER(name, least, most, standard, property, help) put_number(options, #name, name##_);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    if (mode_) options["mode"] = *mode_;
    if (band_) options["band"] = *band_;
}

std::string reservation_text(const Properties& vf) {
    const double min_pct = real_of(vf, "MinPct");
    if (!(min_pct > 0)) return "none";
    const double latency_ms = real_of(vf, "LatencyMs");
    if (text_of(vf, "Mode") == "gang")
        return fmt::format("{:g} % every {:g} ms, in a slot from {:g} ms on", min_pct, latency_ms,
                           real_of(vf, "PhaseMs"));
    return latency_ms > 0 ? fmt::format("{:g} % every {:g} ms", min_pct, latency_ms)
                          : fmt::format("{:g} %", min_pct);
}

std::string cap_text(const Properties& vf) {
    if (!has_cap(vf)) return "none";
    const double burst_ms = real_of(vf, "BurstMs");
    return burst_ms > 0 ? fmt::format("{:g} %, {:g} ms at once", real_of(vf, "MaxPct"), burst_ms)
                        : fmt::format("{:g} %, a slice at once", real_of(vf, "MaxPct"));
}

std::string short_qos_text(const Properties& vf) {
    const double min_pct = real_of(vf, "MinPct"), max_pct = real_of(vf, "MaxPct");
    std::string text;
    if (text_of(vf, "Mode") == "gang") return fmt::format("{:.0f}G", min_pct);
    if (min_pct > 0 && has_cap(vf))
        text = fmt::format("{:.0f}-{:.0f}", min_pct, max_pct);
    else if (min_pct > 0)
        text = fmt::format(">{:.0f}", min_pct);
    else if (has_cap(vf))
        text = fmt::format("<{:.0f}", max_pct);
    const std::string band = text_of(vf, "Band");
    if (band == "high") text += "H";
    if (band == "low") text += "L";
    if (text_of(vf, "Mode") == "strict") text += "S";
    return text.empty() ? "-" : text;
}

}  // namespace vgpu::cli
