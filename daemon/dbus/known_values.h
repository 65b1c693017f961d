// SPDX-License-Identifier: MIT
//
// Functions for property values that a GPU's driver may not know or offer; *_properties.def uses
// them. The column `value` of *_properties.def has a plain value or an optional. An empty optional
// means that the value is not known. The property `Unknown` then lists the name of the property,
// and ListGpus leaves the property out. ListVfs and the getters must return a value of the
// property's type, so they return unset().
#pragma once

#include "daemon/service/views/views.h"

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace vgpu::daemon::dbus {

template <typename T> inline constexpr bool kIsOptional = false;
template <typename T> inline constexpr bool kIsOptional<std::optional<T>> = true;

/// Converts a value to the property's type; empty if the value is not known.
template <typename T, typename V> std::optional<T> known(const V& value) {
    if constexpr (kIsOptional<V>)
        return value ? std::optional<T>(T{*value}) : std::nullopt;
    else
        return T{value};
}

/// The value that stands for "not known": the largest integer (as systemd's "[not set]"), NaN,
/// false, or an empty text, list or dictionary.
template <typename T> T unset() {
    if constexpr (std::is_same_v<T, bool> || !std::is_arithmetic_v<T>)
        return T{};
    else if constexpr (std::is_floating_point_v<T>)
        return std::numeric_limits<T>::quiet_NaN();
    else
        return std::numeric_limits<T>::max();
}

/// The member of `from` to which `member` points, or `member(from)` if `member` is a function.
/// Empty if `from` is empty.
template <typename From, typename Member> auto of(const std::optional<From>& from, Member member) {
    using Found = std::decay_t<std::invoke_result_t<Member, const From&>>;
    return from ? std::optional<Found>(std::invoke(member, *from)) : std::nullopt;
}

/// `value`, or empty if the driver does not offer the setting. While vgpud does not know the driver
/// of the GPU, all settings count as offered.
template <typename T> std::optional<T> offered(const Abilities* abilities, Change change, T value) {
    if (abilities != nullptr && !abilities->driver.empty() && !abilities->can(change)) return {};
    return value;
}
template <typename T> std::optional<T> offered(const VfView& vf, Change change, T value) {
    return offered(vf.abilities.get(), change, std::move(value));
}
template <typename T> std::optional<T> offered(const GpuView& gpu, Change change, T value) {
    return offered(&gpu.info.abilities, change, std::move(value));
}

/// "full" if vgpud manages the GPU, "observe" if vgpud only watches it; empty if vgpud has never
/// reached the GPU.
inline std::optional<std::string> manage(const GpuView& gpu) {
    const Abilities& abilities = gpu.info.abilities;
    if (abilities.driver.empty()) return {};
    return abilities.is_observing ? "observe" : "full";
}

/// The GPU's quantum; empty if weights determine the quanta, or if the driver offers no quantum.
inline std::optional<std::uint32_t> quantum_us(const GpuView& gpu) {
    if (has_quanta_by_weight(gpu.info.abilities)) return {};
    return offered(gpu, Change::QuantumUs, gpu.quantum_us);
}

/// The GPU's max_gap_ms. Empty if the driver does not offer the setting, or if the driver serves
/// its functions in turn (Abilities::pf_quantum_ms): then only VFs have a max_gap_ms.
inline std::optional<std::uint32_t> max_gap_ms(const GpuView& gpu) {
    if (gpu.info.abilities.pf_quantum_ms) return {};
    return offered(gpu, Change::MaxGapMs, gpu.max_gap_ms);
}

/// `value`, or empty for 0 or an empty text.
template <typename T> std::optional<T> if_set(const T& value) {
    return value == T{} ? std::nullopt : std::optional<T>(value);
}

/// Unit of a VF's VRAM, in bytes; empty if the driver does not let vgpud choose the size.
inline std::optional<std::uint64_t> vram_unit(const GpuView& gpu) {
    const Ability& vram = gpu.info.abilities[Change::VramBytes];
    return vram.needs == Needs::Never ? std::nullopt : std::optional(vram.unit);
}
/// Maximum of a VF's VRAM, in bytes; empty if the driver reports no maximum.
inline std::optional<std::uint64_t> vram_max(const GpuView& gpu) {
    const Ability& vram = gpu.info.abilities[Change::VramBytes];
    return vram.max == Ability{}.max ? std::nullopt : std::optional(vram.max);
}

/// Longest time off the engine (DriverTiming). Empty if the time is not known, or if the driver
/// does not serve its functions in turn.
inline std::optional<std::uint64_t> worst_wait_us(const VfView& vf) {
    return vf.active.driver_timing ? vf.active.driver_timing->worst_wait_us : std::nullopt;
}

/// The run table; empty if there is none or if it has no entries.
inline std::optional<TableView> table_with_entries(const GpuView& gpu) {
    return gpu.table && gpu.table->entries > 0 ? gpu.table : std::nullopt;
}

}  // namespace vgpu::daemon::dbus
