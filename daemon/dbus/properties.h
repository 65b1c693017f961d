// SPDX-License-Identifier: MIT
//
// Conversions between vgpud's values and D-Bus values: the properties of GPUs and VFs (the rows of
// *_properties.def) as a{sv}, the names of changed properties, object paths, and the arguments and
// options of requests. Pure functions.
#pragma once

#include "daemon/dbus/known_values.h"
#include "daemon/dbus/sdbus_compat.h"
#include "daemon/service/manager.h"
#include "daemon/service/views/event_log.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::daemon::dbus {

using Dict = std::map<std::string, sdbus::Variant>;

/// Object paths. All characters of an id except ASCII letters and digits are escaped as _xx
/// (hexadecimal), so that different ids have different paths.
std::string gpu_path(const std::string& gpu);
std::string vf_path(const std::string& gpu, std::uint32_t vf);

Dict dict_of(const AgentView& agent);
/// A dictionary for each kind of change, with the members of its Ability: "needs" (s), "unit",
/// "min", "max" (t) and "is_approximate" (b). Leaves out defaults, except "needs".
Dict dict_of(const Abilities& abilities);
/// Names of the properties without a known value.
std::vector<std::string> unknown_of(const GpuView& view);
std::vector<std::string> unknown_of(const VfView& view);
/// For each scheduling setting that differs from its default, by key: "kept", "approximated" or
/// "refused" (contract_words() in service/vf/shares.h). Empty if the abilities are not known.
Dict contract_of(const VfView& view);
Dict dict_of(const AgentReport& report);
Dict dict_of(const LoggedEvent& event);

/// Names of the VF properties that need complete() (context.h).
inline constexpr std::array kCompleted{
#define VF_PROPERTY(name, type, kind, value)
#define VF_COMPLETED_PROPERTY(name, type, kind, value) std::string_view{#name},
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
};
constexpr bool is_completed(std::string_view name) {
    return std::ranges::find(kCompleted, name) != kCompleted.end();
}

/// The properties that a caller of ListGpus or ListVfs requests.
class PropertyFilter {
public:
    PropertyFilter() = default;
    /// For ListVfs. `names`: separated by commas; "" means all. OutOfRange for an unknown name.
    static Result<PropertyFilter> of_vf(std::string_view names);
    /// For ListGpus. `names` and errors as for of_vf().
    static Result<PropertyFilter> of_gpu(std::string_view names);

    /// How fresh a snapshot must be for the requested properties of a VF: Counters if one of them
    /// is POLLED (vf_properties.def), else Events.
    [[nodiscard]] Freshness freshness() const;
    /// True if a requested property needs complete() (context.h).
    [[nodiscard]] bool needs_completion() const;
    [[nodiscard]] bool includes(std::string_view name) const {
        return names_.empty() || names_.contains(name);
    }

private:
    static Result<PropertyFilter> parse(std::span<const std::string_view> known,
                                        std::string_view names);
    std::set<std::string, std::less<>> names_;
};

/// The requested properties with known values, for ListGpus; always also "Path" and "Target".
Dict properties_of(const GpuView& view, const PropertyFilter& filter = {});
/// The requested properties of VFs, for ListVfs: for each property an array of values, in the order
/// of `views`. A value that is not known is unset(). Always also "Path", "Target" and "Unknown";
/// "Unknown" has the names of all properties of the VF without a known value.
Dict columns_of(const std::vector<const VfView*>& views, const PropertyFilter& filter);
/// Names of the SIGNALLED properties that differ, in the order of *_properties.def. Leaves out a
/// VF's State if it changed only between READY and RUNNING.
std::vector<PropertyName> changes(const GpuView& before, const GpuView& after);
std::vector<PropertyName> changes(const VfView& before, const VfView& after);

/// Limit of check_argument(), in bytes; above the length of every valid name or target.
inline constexpr std::size_t kMaxTextBytes = 256;
/// Limit of the total size of the options of one request, names and values, in bytes.
inline constexpr std::size_t kMaxOptionBytes = 256 * 1024;
/// Limit of the number of options of one request.
inline constexpr std::size_t kMaxOptions = 128;

/// Reads options from a message. Stops and throws at the first option that exceeds a limit
/// (OutOfRange) or has a type that no option has (WrongType), so that a large message costs little.
void read_options(sdbus::Message& message, Dict& options);

/// Throws OutOfRange if `text` is longer than kMaxConfigurationBytes.
void check_document(const std::string& text);

/// Throws OutOfRange if `text` is longer than kMaxTextBytes. `name`: the argument, for the message.
void check_argument(std::string_view name, const std::string& text);
/// Throws InvalidOwner if `owner` is not a valid name of an owner.
void check_owner(const std::string& owner);

/// Converts the options of a request. Throws WrongType for a type that no option has, and
/// OutOfRange for more than kMaxOptionBytes. Call options_of() before the authorisation: while a
/// request waits for polkit, its options stay in memory, so they must not exceed the limit.
Options options_of(const Dict& options);

}  // namespace vgpu::daemon::dbus

namespace sdbus {

/// The generated adaptors read all a{sv} arguments, which are options, with this operator. It
/// replaces the template of sdbus-c++, which reads a message of any size to its end.
inline Message& operator>>(Message& message, std::map<std::string, Variant>& options) {
    vgpu::daemon::dbus::read_options(message, options);
    return message;
}

}  // namespace sdbus
