// SPDX-License-Identifier: MIT
#include "daemon/service/stats/metrics.h"

#include <fmt/format.h>
#include <array>
#include <cmath>
#include <iterator>
#include <type_traits>

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
/// A double could not hold nanoseconds of a few months.
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

struct TypeRow {
    std::string_view name;
    std::string_view suffix;  ///< of its samples
    std::string_view in_prometheus;
};
/// In the order of MetricType.
constexpr std::array kTypes{TypeRow{"gauge", "", "gauge"}, TypeRow{"counter", "_total", "counter"},
                            TypeRow{"info", "_info", "gauge"}, TypeRow{"stateset", "", "gauge"}};

const TypeRow& row_of(MetricType type) {
    return kTypes.at(static_cast<std::size_t>(type));
}

/// A document that is being written.
struct Document {
    MetricsFormat format;
    std::string text{};
};

/// In the format of Prometheus a family is named as its samples are, and has no unit.
void add_family(Document& to, const Family& family) {
    const TypeRow& type = row_of(family.type);
    const bool is_open = to.format == MetricsFormat::OpenMetrics;
    const std::string name = fmt::format("{}{}", family.name, is_open ? "" : type.suffix);
    to.text += fmt::format("# TYPE {} {}\n", name, is_open ? type.name : type.in_prometheus);
    if (is_open && family.unit != "none")
        to.text += fmt::format("# UNIT {} {}\n", name, family.unit);
    to.text += fmt::format("# HELP {} {}\n", name, escaped(family.help));
}

/// `labels` without braces; may be empty.
void add_sample(Document& to, std::string_view name, MetricType type, std::string_view labels,
                std::string_view value) {
    to.text += fmt::format("{}{}", name, row_of(type).suffix);
    if (!labels.empty()) to.text += fmt::format("{{{}}}", labels);
    to.text += fmt::format(" {}\n", value);
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
void add_states(Document& to, std::string_view name, const std::string& labels, const Names& names,
                std::string_view now) {
    for (const std::string_view state : names)
        add_sample(to, name, MetricType::StateSet, fmt::format("{},{}=\"{}\"", labels, name, state),
                   state == now ? "1" : "0");
}

/// One sample per name: values[i] is of names[i].
template <typename Names, typename Values>
void add_each(Document& to, std::string_view name, MetricType type, const std::string& labels,
              std::string_view label, const Names& names, const Values& values) {
    static_assert(std::tuple_size_v<Names> == std::extent_v<Values>);
    for (std::size_t i = 0; i < std::size(names); ++i)
        add_sample(to, name, type, fmt::format("{},{}=\"{}\"", labels, label, names[i]),
                   number(values[i]));
}

void add_daemon(Document& to, const MetricsInput& input) {
    add_family(to, {"vgpu_build", MetricType::Info, "none", "The vgpud that answers."});
    add_sample(to, "vgpu_build", MetricType::Info,
               fmt::format("version=\"{}\"", escaped(input.version)), "1");
    add_family(to, {"vgpu_state_read_only", MetricType::Gauge, "none",
                    "1 if the state file is not trusted and nothing can be changed."});
    add_sample(to, "vgpu_state_read_only", MetricType::Gauge, "", input.is_read_only ? "1" : "0");
    add_family(to, {"vgpu_state_generation", MetricType::Gauge, "none",
                    "Durable changes of the state file."});
    add_sample(to, "vgpu_state_generation", MetricType::Gauge, "", number(input.state_generation));
    add_family(to, {"vgpu_events", MetricType::Counter, "none",
                    "Events told to administrators since vgpud started."});
    add_sample(to, "vgpu_events", MetricType::Counter, "", number(input.events));
}

void add_gpus(Document& to, const MetricsInput& input) {
    add_family(to, {"vgpu_gpu_state", MetricType::StateSet, "none", "State of the GPU."});
    for (const GpuSnapshot& g : input.gpus)
        add_states(to, "vgpu_gpu_state", labels_of(g), gpu_state_names(), name_of(g.gpu.state));
#define GPU_METRIC(name, type, unit, help, is_known, value)             \
    add_family(to, {"vgpu_gpu_" #name, MetricType::type, #unit, help}); \
    for (const GpuSnapshot& g : input.gpus)                             \
        if (is_known)                                                   \
            add_sample(to, "vgpu_gpu_" #name, MetricType::type, labels_of(g), number(value));
#include "daemon/service/stats/gpu_metrics.def"
#undef GPU_METRIC
}

/// Labels of vgpu_vf_info: what is joined to the other series rather than a label of each.
std::string info_labels_of(const VfView& v) {
    std::string labels = labels_of(v);
#define VF_INFO(label, value) labels += fmt::format(",{}=\"{}\"", #label, escaped(value));
#include "daemon/service/stats/vf_metrics.def"
    return labels;
}

void add_vfs(Document& to, const std::vector<VfView>& vfs) {
    add_family(to, {"vgpu_vf", MetricType::Info, "none", "Who the VF is, and whose."});
    for (const VfView& v : vfs) add_sample(to, "vgpu_vf", MetricType::Info, info_labels_of(v), "1");
    add_family(to, {"vgpu_vf_state", MetricType::StateSet, "none", "State of the VF."});
    for (const VfView& v : vfs)
        add_states(to, "vgpu_vf_state", labels_of(v), vf_state_names(),
                   vf_state_name(v.live.state));
#define VF_METRIC(name, type, unit, help, is_known, value)             \
    add_family(to, {"vgpu_vf_" #name, MetricType::type, #unit, help}); \
    for (const VfView& v : vfs)                                        \
        if (is_known)                                                  \
            add_sample(to, "vgpu_vf_" #name, MetricType::type, labels_of(v), number(value));
#define VF_METRIC_BY(name, type, unit, help, label, names, values)     \
    add_family(to, {"vgpu_vf_" #name, MetricType::type, #unit, help}); \
    for (const VfView& v : vfs)                                        \
        add_each(to, "vgpu_vf_" #name, MetricType::type, labels_of(v), #label, names, values);
#include "daemon/service/stats/vf_metrics.def"
}

}  // namespace

std::string_view media_type_of(MetricsFormat format) {
    return format == MetricsFormat::OpenMetrics
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

MetricsFormat format_for(std::string_view accept) {
    const bool knows_open = accept.find("application/openmetrics-text") != std::string_view::npos;
    const bool wants_plain = accept.find("text/plain") != std::string_view::npos;
    return wants_plain && !knows_open ? MetricsFormat::Prometheus : MetricsFormat::OpenMetrics;
}

/// By families and not by VFs, as the format wants: all samples of one name follow each other.
std::string metrics_text(const MetricsInput& input, MetricsFormat format) {
    std::vector<VfView> vfs;
    for (const GpuSnapshot& gpu : input.gpus)
        for (const auto& [number_of_vf, view] : gpu.vfs) vfs.push_back(view);
    Document document{.format = format};
    add_daemon(document, input);
    add_gpus(document, input);
    add_vfs(document, vfs);
    if (format == MetricsFormat::OpenMetrics) document.text += "# EOF\n";
    return document.text;
}

Metrics::Metrics(Manager& manager, const Agents& agents, const Assignments& assignments,
                 const EventLog& events, const Clock& clock, std::string version)
    : manager_(manager),
      agents_(agents),
      assignments_(assignments),
      events_(events),
      clock_(clock),
      version_(std::move(version)) {}

const std::string& Metrics::text(MetricsFormat format) {
    const Nanoseconds now = clock_.now();
    Kept& kept = kept_[format];
    if (!kept.text.empty() && now - kept.made_at < kFresh) return kept.text;
    kept = {.text = metrics_text(collect(), format), .made_at = now};
    return kept.text;
}

MetricsInput Metrics::collect() const {
    MetricsInput input{.version = version_,
                       .is_read_only = manager_.store().is_read_only(),
                       .state_generation = manager_.store().generation(),
                       .events = events_.count(),
                       .gpus = {}};
    for (const auto& gpu : manager_.gpus()) {
        const auto seen = gpu->look();
        GpuSnapshot& with_agents = input.gpus.emplace_back(*seen);
        for (const auto& [vf, view] : seen->vfs) {
            VfView one = view;
            one.agent = agents_.view({.gpu = gpu->id(), .vf = vf});
            one.owner_title = assignments_.title_of(one.record.owner.name);
            with_agents.vfs.set(vf, std::move(one));
        }
    }
    return input;
}

}  // namespace vgpu::daemon
