// SPDX-License-Identifier: MIT
#include "daemon/service/vf/qos.h"

#include "daemon/service/input/word_choice.h"

#include <array>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

constexpr std::array kModes{Word{"work-conserving", scheduler::SlotMode::WorkConserving},
                            Word{"strict", scheduler::SlotMode::Strict},
                            Word{"gang", scheduler::SlotMode::Gang}};
constexpr std::array kPriorityClassWords{Word{"high", scheduler::PriorityClass::High},
                                         Word{"normal", scheduler::PriorityClass::Normal},
                                         Word{"low", scheduler::PriorityClass::Low}};

constexpr double kUsPerMs = 1000;

}  // namespace

void apply(const QosChange& change, VfQos& qos) {
#define QOS_NUMBER(name, min, max, standard, property, help) \
    qos.name = change.name.value_or(qos.name);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    qos.mode = change.mode.value_or(qos.mode);
    qos.priority_class = change.priority_class.value_or(qos.priority_class);
}

QosChange change_to(const VfQos& qos) {
    QosChange change;
#define QOS_NUMBER(name, min, max, standard, property, help) change.name = qos.name;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    change.mode = qos.mode;
    change.priority_class = qos.priority_class;
    return change;
}

std::string_view name_of(scheduler::SlotMode mode) {
    return name_among(kModes, mode);
}

std::string_view name_of(scheduler::PriorityClass priority_class) {
    return name_among(kPriorityClassWords, priority_class);
}

std::vector<std::string_view> qos_names() {
    std::vector<std::string_view> names;
#define QOS_NUMBER(name, min, max, standard, property, help) names.emplace_back(#name);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    names.emplace_back("mode");
    names.emplace_back("priority_class");
    return names;
}

Result<QosChange> read_qos(const OptionReader& options) {
    QosChange change;
#define QOS_NUMBER(name, min, max, standard, property, help) \
    TRY(change.name, options.real(#name, min, max));
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    TRY(change.mode, word_option(options, "mode", kModes));
    TRY(change.priority_class, word_option(options, "priority_class", kPriorityClassWords));
    return change;
}

void read_qos(JsonSection& section, VfQos& qos) {
#define QOS_NUMBER(name, min, max, standard, property, help) \
    section.real(#name, min, max, qos.name);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    read_word(section, "mode", kModes, qos.mode);
    read_word(section, "priority_class", kPriorityClassWords, qos.priority_class);
}

nlohmann::ordered_json qos_json(const VfQos& qos) {
    const VfQos standard_qos;
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
#define QOS_NUMBER(name, min, max, standard, property, help) \
    if (qos.name != standard_qos.name) json[#name] = qos.name;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    if (qos.mode != standard_qos.mode) json["mode"] = name_of(qos.mode);
    if (qos.priority_class != standard_qos.priority_class)
        json["priority_class"] = name_of(qos.priority_class);
    return json;
}

nlohmann::ordered_json whole_qos_json(const VfQos& qos) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
#define QOS_NUMBER(name, min, max, standard, property, help) json[#name] = qos.name;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    json["mode"] = name_of(qos.mode);
    json["priority_class"] = name_of(qos.priority_class);
    return json;
}

VfQos qos_of(const nlohmann::json& json) {
    VfQos qos;
#define QOS_NUMBER(name, min, max, standard, property, help) qos.name = json.value(#name, qos.name);
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    qos.mode = word_of(json, "mode", kModes, qos.mode);
    qos.priority_class = word_of(json, "priority_class", kPriorityClassWords, qos.priority_class);
    return qos;
}

scheduler::Contract contract_of(const VfQos& qos, std::uint32_t weight, std::uint32_t quantum_us,
                                std::uint32_t gpu_max_gap_ms) {
    scheduler::Contract contract{.weight = weight,
                                 .priority_class = qos.priority_class,
                                 .min_pct = qos.min_pct,
                                 .max_pct = qos.max_pct,
                                 .burst_ms = qos.burst_ms,
                                 .latency_ms = qos.latency_ms,
                                 .max_gap_ms = qos.max_gap_ms,
                                 .quantum_ms = quantum_us / kUsPerMs,
                                 .mode = qos.mode,
                                 .phase_ms = qos.phase_ms};
    if (contract.max_gap_ms == 0) contract.max_gap_ms = gpu_max_gap_ms;
    if (qos.preempt_timeout_ms > 0) contract.preempt_timeout_ms = qos.preempt_timeout_ms;
    return contract;
}

}  // namespace vgpu::daemon
