// SPDX-License-Identifier: MIT
#include "cli/desired_document.h"

#include "cli/format.h"
#include "text/json_document.h"
#include "text/whole_file.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <iterator>

namespace vgpu::cli {

namespace {

constexpr const char* kBadConfiguration = "org.vgpu1.Error.BadConfiguration";
constexpr const char* kStandardInput = "-";
constexpr std::string_view kBytesEnd = "_bytes";
/// In bytes. The table may cut a longer text of a change, so plan_text() repeats such a text below
/// the table.
constexpr std::size_t kLongChange = 36;

std::string member(const PlanJson& json, const char* key) {
    return json.at(key).get<std::string>();
}

/// The key without "_bytes", because the value has a unit: "vram" for "vram_bytes".
std::string label_of(const std::string& key) {
    std::string label = key;
    if (label.ends_with(kBytesEnd)) label.erase(label.size() - kBytesEnd.size());
    return label;
}

/// A value as text. Sizes have a unit. A number with a special meaning becomes a word, such as
/// "all" for the cu_mask 0 (docs/profiles.md).
std::string value_of(const std::string& key, const PlanJson& value) {
    constexpr std::uint32_t kOff = UINT32_MAX;
    if (value.is_string()) return fmt::format("'{}'", value.get<std::string>());
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (!value.is_number_unsigned()) return value.dump();
    const auto number = value.get<std::uint64_t>();
    if (key.ends_with(kBytesEnd)) return size_text(number);
    if (key == "cu_mask") return number == 0 ? "all" : fmt::format("{:#x}", number);
    if (key == "doorbell_pages" && number == 0) return "all";
    if (key == "quantum_us" && number == 0) return "the GPU's";
    if (key.starts_with("guard_") && number == kOff) return "off";
    const bool has_default =
        key.starts_with("guard_") || key.ends_with("_timeout_us") || key.ends_with("_timeout_ms");
    return has_default && number == 0 ? "default" : std::to_string(number);
}

/// The VF of a create or destroy step: "small: 256 MiB, weight 100".
std::string vf_summary(const PlanJson& vf) {
    std::string text = size_text(vf.value("vram_bytes", std::uint64_t{0}));
    text += fmt::format(", weight {}", vf.value("weight", std::uint64_t{0}));
    const std::string profile = vf.value("profile", "");
    return profile.empty() ? text : fmt::format("{}: {}", profile, text);
}

/// What a step changes: the VF that it creates or destroys, or the old and new values ("weight 100
/// -> 200"). Omits the profile if other values change.
std::string change_text(const PlanJson& step) {
    const std::string action = member(step, "action");
    const PlanJson& from = step.at("from");
    const PlanJson& to = step.at("to");
    if (action == "keep") return "-";
    if (action == "create") return vf_summary(to);
    if (action == "destroy") return vf_summary(from);
    std::string text;
    for (const auto& [key, value] : to.items()) {
        if (key == "profile" && to.size() > 1) continue;
        text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", label_of(key),
                            from.contains(key) ? value_of(key, from.at(key)) : "?",
                            value_of(key, value));
    }
    return text;
}

std::string wrapped(const std::string& text) {
    constexpr std::size_t kIndent = 4;
    return wrapped_text(text, kIndent);
}

/// "gpu0/vf2 'web'"; a step of the GPU itself has no name.
std::string subject_of(const PlanJson& step) {
    const std::string name = member(step, "name");
    return name.empty() ? member(step, "target")
                        : fmt::format("{} '{}'", member(step, "target"), name);
}

/// A remark on a step; "" if the step needs none. For a VF out of service, the remark is the
/// reason. Any other step gets a remark if the step has a disruption, changes a VF in use, or
/// requires all VFs to be idle.
std::string remark_of(const PlanJson& step) {
    const std::string in_use = member(step, "in_use");
    const std::string condition = step.value("condition", "");
    if (!condition.empty())
        return wrapped(fmt::format("{}: not in service: {}", subject_of(step), condition));
    const std::string blocked = step.value("blocked", "");
    const bool needs_all_idle = step.value("needs", "") == "all-idle";
    if (step.at("disruption") == "none" && in_use.empty() && !needs_all_idle) return "";
    return wrapped(
        fmt::format("{}: {}{}", subject_of(step), member(step, "why"),
                    !blocked.empty() ? fmt::format("; not done now, even with --force: {}", blocked)
                    : in_use.empty() ? ""
                                     : fmt::format("; {}: apply requires --force", in_use)));
}

/// The settings of a step's VF that the driver approximates or refuses: "gpu0/vf2 'web': min_pct
/// approximated"; "" if there are none.
std::string contract_text(const PlanJson& step) {
    Words words;
    const PlanJson contract = step.value("contract", PlanJson::object());
    for (const auto& [key, word] : contract.items())
        if (word != "kept") words.push_back(fmt::format("{} {}", key, word.get<std::string>()));
    if (words.empty()) return "";
    return wrapped(fmt::format("{}: {}", subject_of(step), fmt::join(words, ", ")));
}

/// The quantum and the longest wait of each VF of a GPU; "" unless the GPU's driver serves the PF
/// and the VFs round robin.
std::string quanta_text(const PlanJson& gpu) {
    constexpr double kUsPerMs = 1000;
    Words quanta;
    for (const PlanJson& vf : gpu.value("quanta", PlanJson::array()))
        quanta.push_back(fmt::format("'{}' {:g} ms (waits at most {:g} ms)", member(vf, "name"),
                                     vf.at("quantum_us").get<double>() / kUsPerMs,
                                     vf.at("worst_wait_us").get<double>() / kUsPerMs));
    if (quanta.empty()) return "";
    return wrapped(fmt::format("{}: quanta: {}", member(gpu, "gpu"), fmt::join(quanta, ", ")));
}

/// For each GPU, the quanta of its VFs and the use of its VRAM. Omits the VRAM of a GPU if vgpud
/// does not report it.
std::string gpus_text(const PlanJson& plan) {
    std::string text;
    for (const PlanJson& gpu : plan.at("gpus")) {
        const auto bytes = [&gpu](const char* key) {
            return size_text(gpu.at(key).get<std::uint64_t>());
        };
        text += quanta_text(gpu);
        if (gpu.at("vram_bytes") == 0) continue;
        text += wrapped(fmt::format("{}: VFs get {} of {} VRAM; the PF keeps {}",
                                    member(gpu, "gpu"), bytes("planned_vram_bytes"),
                                    bytes("vram_bytes"), bytes("pf_vram_bytes")));
    }
    return text;
}

/// Throws BadConfiguration for invalid UTF-8, on which the bus would close the connection, and for
/// JSON that is nested too deeply.
void check_text(const std::string& text, const std::string& file) {
    const std::string name = file == kStandardInput ? "standard input" : file;
    if (const std::string wrong = wrong_in_utf8(text); !wrong.empty())
        throw ServiceError(kBadConfiguration, fmt::format("{} is not UTF-8 text: {}", name, wrong));
    if (const std::string wrong = text::too_deep(text, text::Comments::Allowed); !wrong.empty())
        throw ServiceError(kBadConfiguration, fmt::format("{}: {}", name, wrong));
}

/// The configuration in the output of export --json. Other text is returned unchanged, so that line
/// numbers in vgpud's errors are those of the file.
std::string without_envelope(const std::string& text) {
    const auto read = text::read_json<nlohmann::ordered_json>(text, text::Comments::Allowed);
    if (!read || !read->is_object()) return text;
    const bool is_export = read->contains("config") && read->contains("schema") &&
                           read->at("schema") == "vgpuctl-export-1";
    return is_export ? read->at("config").dump(2) + "\n" : text;
}

}  // namespace

std::string content_of(const std::string& file) {
    if (file == kStandardInput) return {std::istreambuf_iterator<char>(std::cin), {}};
    auto content = text::whole_file(file);
    if (!content)
        throw ServiceError(kBadConfiguration,
                           fmt::format("cannot read {}: {}", file, std::strerror(content.error())));
    return *std::move(content);
}

void DesiredDocument::describe(CLI::App& command) {
    auto* positional =
        command.add_option("FILE", file_, "configuration (JSON), '-': standard input");
    auto* file = command.add_option("-f,--file", file_, "the same as FILE")
                     ->type_name("FILE")
                     ->excludes(positional);
    command.add_option("--label", label_, "label of the config in FILE (default: the only one)");
    auto* automatic =
        command.add_option("--auto", auto_vfs_, "instead of FILE: this many equal VFs on each GPU")
            ->check(CLI::IsMember({1u, 2u, 4u, 8u, 16u}));
    automatic->excludes(positional)->excludes(file);
    command.add_flag("--even", is_even_, "with --auto: VRAM in units of 16 MiB, not powers of two")
        ->needs(automatic);
    command.add_option("--gpu", gpu_, "with --auto: only this GPU")->needs(automatic);
}

/// For --auto, asks vgpud for the document; the caller sends it back to vgpud in Plan or Apply.
std::string DesiredDocument::read(Service& service) const {
    if (auto_vfs_) {
        Options options;
        if (!gpu_.empty()) options["gpu"] = gpu_;
        return service.auto_config(options);
    }
    if (!file_.empty()) {
        const std::string text = content_of(file_);
        check_text(text, file_);
        return without_envelope(text);
    }
    throw ServiceError(kBadConfiguration,
                       "name a FILE (or -f FILE), '-' for standard input, or --auto N");
}

/// For --auto, chooses the label of the split in vgpud's document: "auto-N" or "even-N".
Options DesiredDocument::options() const {
    Options options;
    if (auto_vfs_) options["label"] = fmt::format("{}-{}", is_even_ ? "even" : "auto", *auto_vfs_);
    if (!label_.empty()) options["label"] = label_;
    return options;
}

PlanJson parse_plan(const std::string& text) {
    auto plan = text::read_json<PlanJson>(text);
    if (plan && plan->is_object() && plan->value("schema", "") == "vgpu-plan-1")
        return *std::move(plan);
    throw ServiceError(
        "org.vgpu1.Error.VersionMismatch",
        "vgpud's plan has an unknown format; install vgpuctl and vgpud of the same release");
}

bool is_empty_plan(const PlanJson& plan) {
    return plan.at("is_empty").get<bool>();
}

bool is_in_service(const PlanJson& plan) {
    const PlanJson& steps = plan.at("steps");
    return std::none_of(steps.begin(), steps.end(),
                        [](const PlanJson& step) { return !step.value("condition", "").empty(); });
}

std::size_t step_count(const PlanJson& plan) {
    const PlanJson& steps = plan.at("steps");
    return static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(),
                      [](const PlanJson& step) { return step.at("action") != "keep"; }));
}

std::string disruption_of(const PlanJson& plan) {
    return member(plan, "disruption");
}

std::vector<Column> plan_columns() {
    return {{"STEP"},
            {"TARGET"},
            {"NAME", Align::Left, true, 1},
            {"CHANGE", Align::Left, true},
            {"DISRUPTION"}};
}

std::string plan_text(const PlanJson& plan, const TableOptions& table) {
    const std::string label = member(plan, "label");
    TableRows rows;
    std::string remarks;
    for (const PlanJson& step : plan.at("steps")) {
        const std::string change = change_text(step);
        rows.push_back({member(step, "action"), member(step, "target"), member(step, "name"),
                        change, member(step, "disruption")});
        if (change.size() > kLongChange)
            remarks += wrapped(fmt::format("{}: {}", subject_of(step), change));
        remarks += remark_of(step) + contract_text(step);
    }
    if (table.is_plain()) return table.text(plan_columns(), rows);
    std::string text = fmt::format("configuration '{}'\n", label);
    if (!rows.empty()) text += table.text(plan_columns(), rows);
    text += remarks + gpus_text(plan);
    const std::size_t steps = step_count(plan);
    if (steps == 0)
        return text + (is_in_service(plan)
                           ? "Nothing to do: everything matches the configuration.\n"
                           : "Nothing to do: every definition matches the configuration.\n");
    return text + fmt::format("{} step{}; disruption: {}\n", steps, steps == 1 ? "" : "s",
                              disruption_of(plan));
}

nlohmann::ordered_json plan_members(const PlanJson& plan) {
    nlohmann::ordered_json members = plan;
    members.erase("schema");
    return members;
}

}  // namespace vgpu::cli
