// SPDX-License-Identifier: MIT
//
// Properties of GPUs and VFs as values, from *_properties.def: all properties as a{sv}, and the
// signalled properties that changed. Also object paths. Pure functions.
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
/// The abilities by kind of change. Each ability has needs (s). The members unit, min and max (t)
/// and is_approximate (b) are left out if they have their defaults.
Dict dict_of(const Abilities& abilities);
/// Names of properties without a known value.
std::vector<std::string> unknown_of(const GpuView& view);
std::vector<std::string> unknown_of(const VfView& view);
/// How the driver keeps each setting of the schedule, by the key of the setting: "kept",
/// "approximated" or "refused" (service/vf/shares.h).
Dict contract_of(const VfView& view);
Dict dict_of(const AgentReport& report);
Dict dict_of(const LoggedEvent& event);

/// Properties that need complete() (context.h).
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

    /// The freshness that the properties require of a snapshot.
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

/// The known properties for ListGpus, with "Path" and "Target".
Dict properties_of(const GpuView& view, const PropertyFilter& filter = {});
/// The properties of VFs, as ListVfs returns them: for each property a vector of values, in the
/// order of `views`. A value that is not known is unset(); "Unknown" names these properties for
/// each VF.
Dict columns_of(const std::vector<const VfView*>& views, const PropertyFilter& filter);
/// Signalled properties that changed, in the order of *_properties.def. Excludes counters and lags,
/// which clients read when they need them, and changes of the state between READY and RUNNING.
std::vector<PropertyName> changes(const GpuView& before, const GpuView& after);
std::vector<PropertyName> changes(const VfView& before, const VfView& after);

/// Limit of an argument in bytes; longer than any name or target.
inline constexpr std::size_t kMaxTextBytes = 256;
/// Limit in bytes of the names and values of one request's options.
inline constexpr std::size_t kMaxOptionBytes = 256 * 1024;

/// Throws OutOfRange if `text` is longer than kMaxConfigurationBytes.
void check_document(const std::string& text);

/// Throws OutOfRange if `text` is longer than kMaxTextBytes. `name`: the argument, for the message.
void check_argument(std::string_view name, const std::string& text);
/// Throws InvalidOwner if no owner can have this name.
void check_owner(const std::string& owner);

/// Converts the options of a request. Throws WrongType for a type that no option has, and
/// OutOfRange for more than kMaxOptionBytes. Call options_of() before the authorisation, because
/// the options of open requests stay in memory.
Options options_of(const Dict& options);

}  // namespace vgpu::daemon::dbus
