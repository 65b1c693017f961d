// SPDX-License-Identifier: MIT
//
// VfQos: what an operator asks of the engine for one VF beside its weight and quantum: part of
// VfRecord, of profiles and of plans. A change of it takes effect with the next run table and
// disturbs nobody. Plain values; GpuSchedule turns them into contracts and asks for admission. The
// numbers are listed once, in vf_qos.def.
#pragma once

#include "daemon/service/input/json_section.h"
#include "daemon/service/input/options.h"
#include "daemon/service/scheduler/contract.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace vgpu::daemon {

/// Percent of the engine's time and milliseconds, with fractions; members, ranges and defaults are
/// the rows of schemas/vf_qos.def.
struct VfQos {
#define QOS_NUMBER(name, least, most, standard, property, help) double name = standard;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    scheduler::SlotMode mode = scheduler::SlotMode::WorkConserving;
    scheduler::Band band = scheduler::Band::Normal;

    bool operator==(const VfQos&) const = default;
};

/// What is to become different; nothing: stays.
struct QosChange {
#define QOS_NUMBER(name, least, most, standard, property, help) std::optional<double> name;
#include "schemas/vf_qos.def"
#undef QOS_NUMBER
    std::optional<scheduler::SlotMode> mode;
    std::optional<scheduler::Band> band;
};

/// Checks nothing: ranges were checked when `change` was read, sense is admission's to judge.
void apply(const QosChange& change, VfQos& qos);
/// Makes anything become `qos`.
[[nodiscard]] QosChange change_to(const VfQos& qos);

/// "work-conserving", "strict", "gang"; "high", "normal", "low".
[[nodiscard]] std::string_view name_of(scheduler::SlotMode mode);
[[nodiscard]] std::string_view name_of(scheduler::Band band);

/// Names of all options that read_qos() knows.
[[nodiscard]] std::vector<std::string_view> qos_names();
/// WrongType or OutOfRange with the option.
[[nodiscard]] Result<QosChange> read_qos(const OptionReader& options);
/// What is not in `section` stays.
void read_qos(JsonSection& section, VfQos& qos);

/// The members that are not as by default; the other way round, throwing as nlohmann::json does.
[[nodiscard]] nlohmann::ordered_json qos_json(const VfQos& qos);
/// All members.
[[nodiscard]] nlohmann::ordered_json whole_qos_json(const VfQos& qos);
[[nodiscard]] VfQos qos_of(const nlohmann::json& json);

/// What scheduler and admission make of it.
/// A max_gap_ms or preempt_timeout_ms of 0 stands for the GPU's and the default.
[[nodiscard]] scheduler::Contract contract_of(const VfQos& qos, std::uint32_t weight,
                                              std::uint32_t quantum_us,
                                              std::uint32_t gpu_max_gap_ms);

}  // namespace vgpu::daemon
