// SPDX-License-Identifier: MIT
#include "daemon/exporter/metrics.h"

#include "daemon/service/views/views.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

namespace vgpu::exporter {

namespace {

struct MetricType {
    std::string_view name;
    std::string_view suffix;         ///< appended to the name of the family in samples
    std::string_view in_prometheus;  ///< name of the type in the Prometheus format
};
constexpr MetricType kGauge{"gauge", "", "gauge"}, kCounter{"counter", "_total", "counter"},
    kInfo{"info", "_info", "gauge"}, kStateSet{"stateset", "", "gauge"};

/// A metric family: samples with the same name and different labels.
struct Family {
    std::string_view name;
    const MetricType& type;
    std::string_view unit;  ///< "none" if there is no unit
    std::string_view help;
};

/// The format of a value. Times are converted without a double, because a double cannot represent
/// the nanoseconds of a few months exactly.
enum class As {
    Number,
    Nanoseconds,   ///< as seconds
    Microseconds,  ///< as seconds
    Percent,       ///< divided by 100
    NonZero,       ///< a number; no sample for 0
    IsSet,         ///< 1 for a text that is not empty, else 0
    OfAgent,       ///< a number; no sample while no agent is connected
};

/// The samples of a family that come from one property.
struct Row {
    Family family;
    std::string_view property;
    As as;
    std::string_view kind{};  ///< value of the label "kind"; empty: no such label
};

// The optional last argument of METRIC becomes Row::kind. Without it, "" #__VA_ARGS__ is "".
#define METRIC(name, type, unit, help, property, as, ...) \
    Row{{#name, k##type, #unit, help}, #property, As::as, "" #__VA_ARGS__},
constexpr std::array kManagerRows{
#include "daemon/exporter/manager_metrics.def"
};
constexpr std::array kGpuRows{
#include "daemon/exporter/gpu_metrics.def"
};
constexpr std::array kVfRows{
#include "daemon/exporter/vf_metrics.def"
};
#undef METRIC

/// A label of a family of type info, and the property with its value.
struct InfoLabel {
    std::string_view label, property;
};
constexpr std::array kBuildLabels{InfoLabel{"version", "Version"}};
constexpr std::array kVfLabels{InfoLabel{"uuid", "Uuid"}, InfoLabel{"profile", "Profile"},
#define VF_SETTING(...)
#define VF_TEXT(key, member, section, kind, property, help) InfoLabel{#key, #property},
#include "schemas/vf_settings.def"
                               InfoLabel{"owner", "Owner"}, InfoLabel{"owner_name", "OwnerName"}};

using Sample = std::optional<std::string>;

/// value / 10^digits as a decimal fraction: "-1.500000" for -1500000 and 6 digits.
template <typename Integer> std::string decimal(Integer value, int digits) {
    const auto bits = static_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = value < 0 ? 0 - bits : bits;
    std::uint64_t scale = 1;
    for (int i = 0; i < digits; ++i) scale *= 10;
    return fmt::format("{}{}.{:0{}}", value < 0 ? "-" : "", magnitude / scale, magnitude % scale,
                       digits);
}

Sample formatted(bool value, As) {
    return value ? "1" : "0";
}
template <typename Integer> Sample formatted(Integer value, As as) {
    constexpr int kNanoseconds = 9, kMicroseconds = 6;
    if (as == As::NonZero && value == 0) return {};
    if (as == As::Nanoseconds) return decimal(value, kNanoseconds);
    if (as == As::Microseconds) return decimal(value, kMicroseconds);
    return fmt::format("{}", value);
}
Sample formatted(double value, As as) {
    constexpr double kPercent = 100;
    return fmt::format("{}", as == As::Percent ? value / kPercent : value);
}
Sample formatted(const std::string& value, As as) {
    if (as != As::IsSet) return {};
    return value.empty() ? "0" : "1";
}
Sample formatted(const Words&, As) {
    return {};
}

const Value* find(const Properties& object, std::string_view name) {
    const auto at = object.find(std::string(name));
    return at == object.end() ? nullptr : &at->second;
}

Sample sample_of(const Properties& object, const Row& row) {
    const Value* const connected = find(object, "Agent.Connected");
    if (row.as == As::OfAgent && (connected == nullptr || *connected != Value{true})) return {};
    const Value* const value = find(object, row.property);
    if (value == nullptr) return {};
    return std::visit([&row](const auto& one) { return formatted(one, row.as); }, *value);
}

std::string text_of(const Properties& object, std::string_view name) {
    const Value* const value = find(object, name);
    const auto* const text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return text == nullptr ? "" : *text;
}

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char letter : text) {
        if (letter == '"' || letter == '\\' || letter == '\n') safe += '\\';
        safe += letter == '\n' ? 'n' : letter;
    }
    return safe;
}

/// Adds a label. `labels`: such as gpu="gpu0",vf="1", without braces.
std::string with_label(const std::string& labels, std::string_view label, std::string_view value) {
    return fmt::format("{}{}{}=\"{}\"", labels, labels.empty() ? "" : ",", label, escaped(value));
}

/// The manager, a GPU or a VF, with the labels of all its samples.
struct Labelled {
    const Properties& object;
    std::string labels;
};

std::string gpu_of(const std::string& vf_target) {
    return vf_target.substr(0, vf_target.rfind("/vf"));
}

Labelled labelled_vf(const Properties& vf) {
    const std::string target = text_of(vf, "Target"), gpu = gpu_of(target);
    // 3: the length of "/vf"
    const std::string index = target.substr(std::min(gpu.size() + 3, target.size()));
    return {vf, with_label(with_label(with_label("", "gpu", gpu), "vf", index), "name",
                           text_of(vf, "Name"))};
}

/// The text of all metrics. Both formats require that the samples of one family are consecutive.
class Document {
public:
    explicit Document(MetricsFormat format)
        : is_open_metrics_(format == MetricsFormat::OpenMetrics) {}

    /// Begins a family; add() then adds its samples. In the Prometheus format, the name of a family
    /// is the name of its samples, and there are no units.
    void begin(const Family& family) {
        const auto& [type, suffix, in_prometheus] = family.type;
        sample_ = fmt::format("{}{}", family.name, suffix);
        const std::string_view name = is_open_metrics_ ? family.name : std::string_view(sample_);
        text_ += fmt::format("# TYPE {} {}\n", name, is_open_metrics_ ? type : in_prometheus);
        if (is_open_metrics_ && family.unit != "none")
            text_ += fmt::format("# UNIT {} {}\n", name, family.unit);
        text_ += fmt::format("# HELP {} {}\n", name, family.help);
    }

    void add(const std::string& labels, std::string_view value) {
        text_ += labels.empty() ? sample_ : fmt::format("{}{{{}}}", sample_, labels);
        text_ += fmt::format(" {}\n", value);
    }

    [[nodiscard]] std::string take() {
        if (is_open_metrics_) text_ += "# EOF\n";
        return std::move(text_);
    }

private:
    bool is_open_metrics_;
    std::string sample_{};  ///< name of the samples of the current family
    std::string text_{};
};

void add_rows(Document& to, std::span<const Row> rows, const std::vector<Labelled>& objects) {
    std::string_view current;
    for (const Row& row : rows) {
        if (row.family.name != current) to.begin(row.family);
        current = row.family.name;
        for (const auto& [object, labels] : objects)
            if (const Sample value = sample_of(object, row))
                to.add(row.kind.empty() ? labels : with_label(labels, "kind", row.kind), *value);
    }
}

void add_info(Document& to, std::string_view name, std::string_view help,
              std::span<const InfoLabel> more, const std::vector<Labelled>& objects) {
    to.begin({name, kInfo, "none", help});
    for (auto [object, labels] : objects) {
        for (const auto& [label, property] : more)
            labels = with_label(labels, label, text_of(object, property));
        to.add(labels, "1");
    }
}

void add_states(Document& to, std::string_view name, std::string_view help,
                std::span<const std::string_view> states, const std::vector<Labelled>& objects) {
    to.begin({name, kStateSet, "none", help});
    for (const auto& [object, labels] : objects)
        for (const std::string_view state : states)
            to.add(with_label(labels, name, state), state == text_of(object, "State") ? "1" : "0");
}

void add_gpus(Document& to, const Readings& readings) {
    std::vector<Labelled> gpus;
    for (const Properties& gpu : readings.gpus)
        gpus.push_back({gpu, with_label("", "gpu", text_of(gpu, "Target"))});
    add_states(to, "vgpu_gpu_state", "State of the GPU.", daemon::gpu_state_names(), gpus);
    to.begin({"vgpu_gpu_vfs", kGauge, "none", "VFs in service."});
    for (const auto& [gpu, labels] : gpus) {
        const auto is_of_gpu = [name = text_of(gpu, "Target")](const Properties& vf) {
            return gpu_of(text_of(vf, "Target")) == name && text_of(vf, "State") != "absent";
        };
        to.add(labels, fmt::format("{}", std::ranges::count_if(readings.vfs, is_of_gpu)));
    }
    add_rows(to, kGpuRows, gpus);
}

void add_vfs(Document& to, const Readings& readings) {
    std::vector<Labelled> vfs;
    for (const Properties& vf : readings.vfs) vfs.push_back(labelled_vf(vf));
    add_info(to, "vgpu_vf", "Identity and owner of the VF.", kVfLabels, vfs);
    add_states(to, "vgpu_vf_state", "State of the VF.", daemon::vf_state_names(), vfs);
    add_rows(to, kVfRows, vfs);
}

/// The names of properties to request from vgpud, separated by commas; "Agent" for
/// "Agent.Connected".
std::string list_of(std::set<std::string_view> names, std::span<const Row> rows) {
    for (const Row& row : rows) names.insert(row.property.substr(0, row.property.find('.')));
    return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

std::string_view media_type_of(MetricsFormat format) {
    return format == MetricsFormat::OpenMetrics
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

MetricsFormat format_for(std::string_view accept) {
    const bool names_open_metrics =
        accept.find("application/openmetrics-text") != std::string_view::npos;
    const bool names_plain = accept.find("text/plain") != std::string_view::npos;
    return names_plain && !names_open_metrics ? MetricsFormat::Prometheus
                                              : MetricsFormat::OpenMetrics;
}

std::string metrics_text(const Readings& readings, MetricsFormat format) {
    const bool is_up = readings.problem.empty();
    Document document(format);
    document.begin({"vgpu_up", kGauge, "none", "1 if vgpud answers."});
    document.add("", is_up ? "1" : "0");
    if (!is_up) return document.take();
    const std::vector<Labelled> manager{{readings.manager, ""}};
    add_info(document, "vgpu_build", "The vgpud that answers.", kBuildLabels, manager);
    add_rows(document, kManagerRows, manager);
    add_gpus(document, readings);
    add_vfs(document, readings);
    return document.take();
}

std::string properties_of_gpus() {
    return list_of({"State"}, kGpuRows);
}

std::string properties_of_vfs() {
    std::set<std::string_view> names{"Name", "State"};
    for (const InfoLabel& info : kVfLabels) names.insert(info.property);
    return list_of(names, kVfRows);
}

}  // namespace vgpu::exporter
