// SPDX-License-Identifier: MIT
#include "daemon/service/metrics.h"

#include <fmt/format.h>
#include <array>
#include <cmath>

namespace vgpu::daemon {

namespace {

enum class MetricType { Gauge, Counter, Info, StateSet };

struct Family {
    std::string_view name;
    MetricType type;
    std::string_view unit;  ///< "none": it has none
    std::string_view help;
};

/// A time that is counted in nanoseconds, shown in seconds without rounding.
struct Seconds {
    explicit Seconds(std::uint64_t ns) : magnitude_ns(ns) {}
    explicit Seconds(std::int64_t ns)
        : magnitude_ns(ns < 0 ? 0 - static_cast<std::uint64_t>(ns)
                              : static_cast<std::uint64_t>(ns)),
          is_negative(ns < 0) {}

    std::uint64_t magnitude_ns;
    bool is_negative = false;
};

std::string number(std::uint64_t value) {
    return fmt::format("{}", value);
}

std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
}

std::string number(const Seconds& value) {
    constexpr std::uint64_t kNsPerS = 1'000'000'000;
    return fmt::format("{}{}.{:09}", value.is_negative ? "-" : "", value.magnitude_ns / kNsPerS,
                       value.magnitude_ns % kNsPerS);
}

/// Text within the quotes of a label or behind HELP.
std::string escaped(std::string_view text) {
    std::string safe;
    for (const char letter : text) {
        if (letter == '\n') {
            safe += "\\n";
            continue;
        }
        if (letter == '"' || letter == '\\') safe += '\\';
        safe += letter;
    }
    return safe;
}

/// How the samples of a family are named.
std::string_view suffix_of(MetricType type) {
    constexpr std::array<std::string_view, 4> kSuffixes{"", "_total", "_info", ""};
    return kSuffixes.at(static_cast<std::size_t>(type));
}

void add_family(std::string& text, const Family& family) {
    constexpr std::array<std::string_view, 4> kTypes{"gauge", "counter", "info", "stateset"};
    text += fmt::format("# TYPE {} {}\n", family.name,
                        kTypes.at(static_cast<std::size_t>(family.type)));
    if (family.unit != "none") text += fmt::format("# UNIT {} {}\n", family.name, family.unit);
    text += fmt::format("# HELP {} {}\n", family.name, escaped(family.help));
}

/// `labels` without braces; may be empty.
void add_sample(std::string& text, std::string_view name, MetricType type, std::string_view labels,
                std::string_view value) {
    text += fmt::format("{}{}", name, suffix_of(type));
    if (!labels.empty()) text += fmt::format("{{{}}}", labels);
    text += fmt::format(" {}\n", value);
}

std::string labels_of(const GpuSnapshot& gpu) {
    return fmt::format("gpu=\"{}\"", escaped(gpu.gpu.id));
}

std::string labels_of(const VfView& vf) {
    return fmt::format("gpu=\"{}\",vf=\"{}\",name=\"{}\"", escaped(vf.gpu), vf.live.vf,
                       escaped(vf.record.name));
}

/// One sample per state there is: 1 for the one it is in.
template <typename Names>
void add_states(std::string& text, std::string_view name, const std::string& labels,
                const Names& names, std::string_view now) {
    for (const std::string_view state : names)
        add_sample(text, name, MetricType::StateSet,
                   fmt::format("{},{}=\"{}\"", labels, name, state), state == now ? "1" : "0");
}

void add_daemon(std::string& text, const MetricsInput& input) {
    add_family(text, {"vgpu_build", MetricType::Info, "none", "The vgpud that answers."});
    add_sample(text, "vgpu_build", MetricType::Info,
               fmt::format("version=\"{}\"", escaped(input.version)), "1");
    add_family(text, {"vgpu_state_read_only", MetricType::Gauge, "none",
                      "1 if the state file is not trusted and nothing can be changed."});
    add_sample(text, "vgpu_state_read_only", MetricType::Gauge, "", input.is_read_only ? "1" : "0");
    add_family(text, {"vgpu_state_generation", MetricType::Gauge, "none",
                      "Durable changes of the state file."});
    add_sample(text, "vgpu_state_generation", MetricType::Gauge, "",
               number(input.state_generation));
    add_family(text, {"vgpu_events", MetricType::Counter, "none",
                      "Events told to administrators since vgpud started."});
    add_sample(text, "vgpu_events", MetricType::Counter, "", number(input.events));
}

void add_gpus(std::string& text, const MetricsInput& input) {
    add_family(text, {"vgpu_gpu_state", MetricType::StateSet, "none", "State of the GPU."});
    for (const GpuSnapshot& g : input.gpus)
        add_states(text, "vgpu_gpu_state", labels_of(g), gpu_state_names(), name_of(g.gpu.state));
#define GPU_METRIC(name, type, unit, help, is_known, value)               \
    add_family(text, {"vgpu_gpu_" #name, MetricType::type, #unit, help}); \
    for (const GpuSnapshot& g : input.gpus)                               \
        if (is_known)                                                     \
            add_sample(text, "vgpu_gpu_" #name, MetricType::type, labels_of(g), number(value));
#include "daemon/service/gpu_metrics.def"
#undef GPU_METRIC
}

void add_vfs(std::string& text, const std::vector<VfView>& vfs) {
    add_family(text, {"vgpu_vf", MetricType::Info, "none", "Who the VF is."});
    for (const VfView& v : vfs)
        add_sample(text, "vgpu_vf", MetricType::Info,
                   fmt::format("{},uuid=\"{}\"", labels_of(v), uuid_text(v.record.uuid)), "1");
    add_family(text, {"vgpu_vf_state", MetricType::StateSet, "none", "State of the VF."});
    for (const VfView& v : vfs)
        add_states(text, "vgpu_vf_state", labels_of(v), vf_state_names(),
                   vf_state_name(v.live.state));
#define VF_METRIC(name, type, unit, help, is_known, value)               \
    add_family(text, {"vgpu_vf_" #name, MetricType::type, #unit, help}); \
    for (const VfView& v : vfs)                                          \
        if (is_known)                                                    \
            add_sample(text, "vgpu_vf_" #name, MetricType::type, labels_of(v), number(value));
#include "daemon/service/vf_metrics.def"
#undef VF_METRIC
}

}  // namespace

std::string metrics_text(const MetricsInput& input) {
    std::vector<VfView> vfs;
    for (const GpuSnapshot& gpu : input.gpus)
        for (const auto& [number_of_vf, view] : gpu.vfs) vfs.push_back(view);
    std::string text;
    add_daemon(text, input);
    add_gpus(text, input);
    add_vfs(text, vfs);
    return text + "# EOF\n";
}

Metrics::Metrics(Manager& manager, const Agents& agents, const EventLog& events, const Clock& clock,
                 std::string version)
    : manager_(manager),
      agents_(agents),
      events_(events),
      clock_(clock),
      version_(std::move(version)) {}

const std::string& Metrics::text() {
    const Nanoseconds now = clock_.now();
    if (!text_.empty() && now - made_at_ < kFresh) return text_;
    text_ = metrics_text(collect());
    made_at_ = now;
    return text_;
}

MetricsInput Metrics::collect() const {
    MetricsInput input{.version = version_,
                       .is_read_only = manager_.store().is_read_only(),
                       .state_generation = manager_.store().records().generation,
                       .events = events_.count(),
                       .gpus = {}};
    for (const auto& gpu : manager_.gpus()) {
        GpuSnapshot seen = *gpu->look();
        for (auto& [vf, view] : seen.vfs) view.agent = agents_.view({.gpu = gpu->id(), .vf = vf});
        input.gpus.push_back(std::move(seen));
    }
    return input;
}

}  // namespace vgpu::daemon
