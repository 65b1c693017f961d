// SPDX-License-Identifier: MIT
#include "cli/vf_options.h"

#include "cli/format.h"
#include "cli/number_options.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::cli {

namespace {

/// The option for a setting: "--min-pct" for "min_pct".
std::string option_of_key(std::string key) {
    std::replace(key.begin(), key.end(), '_', '-');
    return "--" + key;
}

CLI::Option* add_text(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help) {
    return command.add_option_function<std::string>(
        name, [&to](const std::string& text) { to = text; }, help);
}

/// "-" removes the text, because vgpuctl refuses an empty argument.
CLI::Option* add_line(CLI::App& command, const std::string& name, std::optional<Value>& to,
                      const std::string& help) {
    return command
        .add_option_function<std::string>(
            name, [&to](const std::string& text) { to = text == "-" ? std::string() : text; }, help)
        ->type_name("LINE");
}

CLI::Option* add_yes_or_no(CLI::App& command, const std::string& name, std::optional<Value>& to,
                           const std::string& help) {
    return command
        .add_option_function<bool>(
            name, [&to](const bool& is_set) { to = is_set; }, help)
        ->type_name("YES|NO");
}

constexpr double kNoCapPct = 100;  // MaxPct of a VF without a cap

bool has_cap(const Properties& vf) {
    return vf.contains("MaxPct") && real_of(vf, "MaxPct") < kNoCapPct;
}

}  // namespace

void VfOptions::describe(CLI::App& command) {
#define VF_WHOLE(key, member, section, kind, property, help) \
    add_whole(command, option_of_key(#key), values_[#key], help);
#define VF_REAL(key, member, section, kind, property, help) \
    add_real(command, option_of_key(#key), values_[#key], help);
#define VF_FLAG(key, member, section, kind, property, help) \
    add_yes_or_no(command, option_of_key(#key), values_[#key], help);
#define VF_WORD(key, member, section, kind, property, help) \
    add_text(command, option_of_key(#key), values_[#key], help);
#define VF_TEXT(key, member, section, kind, property, help) \
    add_line(command, option_of_key(#key), values_[#key], help);
#include "schemas/vf_settings.def"
}

void VfOptions::put(Options& options) const {
    for (const auto& [name, value] : values_)
        if (value) options[name] = *value;
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
    return burst_ms > 0 ? fmt::format("{:g} %, burst {:g} ms", real_of(vf, "MaxPct"), burst_ms)
                        : fmt::format("{:g} %, burst of one slice", real_of(vf, "MaxPct"));
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
    const std::string priority_class = text_of(vf, "PriorityClass");
    if (priority_class == "high") text += "H";
    if (priority_class == "low") text += "L";
    if (text_of(vf, "Mode") == "strict") text += "S";
    return text.empty() ? "-" : text;
}

}  // namespace vgpu::cli
