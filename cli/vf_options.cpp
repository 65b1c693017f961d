// SPDX-License-Identifier: MIT
#include "cli/vf_options.h"

#include "cli/format.h"
#include "cli/number_options.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::cli {

namespace {

std::string flag_of_name(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return "--" + name;
}

constexpr double kAll = 100;

bool has_cap(const Properties& vf) {
    return vf.contains("MaxPct") && real_of(vf, "MaxPct") < kAll;
}

}  // namespace

void VfOptions::describe(CLI::App& command) {
    add_whole(command, "--weight", weight_,
              "share relative to others: 1 to 10000; a new VF has 100");
    add_whole(command, "--quantum-us", quantum_us_, "longest slice; 0: the GPU's");
#define QOS_NUMBER(name, min, max, standard, property, help) \
    add_real(command, flag_of_name(#name), name##_, help);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    command.add_option("--mode", mode_, "work-conserving, strict (keeps slots idle), gang");
    command.add_option("--priority-class", priority_class_,
                       "high, normal or low: lower priority classes run after higher ones");
    command.add_option("--assignment-mode", assignment_mode_,
                       "who gets the function: none, vfio-user, vfio-pci, host");
    command.add_option("--scrub", scrub_, "request or release (emptied after each claim)");
}

void VfOptions::put(Options& options) const {
#define QOS_NUMBER(name, min, max, standard, property, help) \
    if (name##_) options[#name] = *name##_;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    const auto add = [&options](const char* name, const auto& value) {
        if (value) options[name] = *value;
    };
    add("weight", weight_);
    add("quantum_us", quantum_us_);
    add("mode", mode_);
    add("priority_class", priority_class_);
    add("assignment_mode", assignment_mode_);
    add("scrub", scrub_);
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
    const std::string priority_class = text_of(vf, "PriorityClass");
    if (priority_class == "high") text += "H";
    if (priority_class == "low") text += "L";
    if (text_of(vf, "Mode") == "strict") text += "S";
    return text.empty() ? "-" : text;
}

}  // namespace vgpu::cli
