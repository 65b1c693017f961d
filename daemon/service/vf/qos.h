// SPDX-License-Identifier: MIT
//
// VfQos: an operator's scheduling requests for one VF, except weight and quantum. Part of VfRecord,
// profiles and plans. Takes effect with the next run table.
#pragma once

#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"
#include "daemon/service/scheduler/contract.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Values in percent of the engine's time and in milliseconds, with fractions: the rows of
/// schemas/vf_qos.def.
struct VfQos {
#define QOS_NUMBER(name, min, max, standard, property, help) double name = standard;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    scheduler::SlotMode mode = scheduler::SlotMode::WorkConserving;
    scheduler::PriorityClass priority_class = scheduler::PriorityClass::Normal;

    bool operator==(const VfQos&) const = default;
};

/// Values that are not given stay.
struct QosChange {
#define QOS_NUMBER(name, min, max, standard, property, help) std::optional<double> name;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    std::optional<scheduler::SlotMode> mode;
    std::optional<scheduler::PriorityClass> priority_class;
};

/// Applies a change without checks: read_qos() checks ranges, and admission checks the result.
void apply(const QosChange& change, VfQos& qos);
/// The change that makes any qos equal to `qos`.
[[nodiscard]] QosChange change_to(const VfQos& qos);

[[nodiscard]] std::string_view name_of(scheduler::SlotMode mode);
[[nodiscard]] std::string_view name_of(scheduler::PriorityClass priority_class);

[[nodiscard]] std::vector<std::string_view> qos_names();
/// Reads the options of qos. WrongType or OutOfRange with the option.
[[nodiscard]] Result<QosChange> read_qos(const OptionReader& options);
/// Reads members of a document. If a member is absent, the value stays.
void read_qos(JsonSection& section, VfQos& qos);

/// qos_json() writes members that differ from the default. qos_of() throws as nlohmann::json does.
[[nodiscard]] nlohmann::ordered_json qos_json(const VfQos& qos);
[[nodiscard]] nlohmann::ordered_json whole_qos_json(const VfQos& qos);
[[nodiscard]] VfQos qos_of(const nlohmann::json& json);

/// The VF's contract. A max_gap_ms of 0 becomes the GPU's value, a preempt_timeout_ms of 0 the
/// default.
[[nodiscard]] scheduler::Contract contract_of(const VfQos& qos, std::uint32_t weight,
                                              std::uint32_t quantum_us,
                                              std::uint32_t gpu_max_gap_ms);

}  // namespace vgpu::daemon
