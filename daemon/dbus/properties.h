// SPDX-License-Identifier: MIT
//
// Properties of GPU and VF objects as values: all of them as a{sv}, and which signalled ones have
// changed. Object paths are made here as well. Pure; expanded from *_properties.def, used by the
// objects and by ListVfs/ListGpus.
#pragma once

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

/// Different ids give different paths: characters that a path cannot hold are escaped as _XX.
std::string gpu_path(const std::string& gpu);
std::string vf_path(const std::string& gpu, std::uint32_t vf);

Dict dict_of(const AgentView& agent);
Dict dict_of(const AgentReport& report);
Dict dict_of(const LoggedEvent& event);

/// Properties of VFs that depend on facts of the main loop: call complete() (context.h) first.
inline constexpr std::array kCompleted{
#define VF_PROPERTY(name, type, kind, value)
#define VF_COMPLETED_PROPERTY(name, type, kind, value) std::string_view{#name},
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
};
constexpr bool is_completed(std::string_view name) {
    return std::ranges::find(kCompleted, name) != kCompleted.end();
}

/// Selects properties of a VF or a GPU.
class PropertyFilter {
public:
    /// Selects all properties.
    PropertyFilter() = default;
    /// `names` separated by commas, "" for all; OutOfRange names an unknown one.
    static Result<PropertyFilter> of_vf(std::string_view names);
    static Result<PropertyFilter> of_gpu(std::string_view names);

    /// How fresh a GPU's snapshot must be for the selected properties of its VFs.
    [[nodiscard]] Freshness freshness() const;
    [[nodiscard]] bool wants_completion() const;
    [[nodiscard]] bool wants(std::string_view name) const {
        return names_.empty() || names_.contains(name);
    }

private:
    static Result<PropertyFilter> among(std::span<const std::string_view> known,
                                        std::string_view names);
    std::set<std::string, std::less<>> names_;
};

/// Properties for ListGpus and ListVfs, with "Path" and "Target".
Dict properties_of(const GpuView& view, const PropertyFilter& filter = {});
Dict properties_of(const VfView& view, const PropertyFilter& filter = {});
/// The same in columns: for each property a vector of its type, in the order of `views`.
Dict columns_of(const std::vector<const VfView*>& views, const PropertyFilter& filter);
/// Names of the signalled properties that differ, in the order of *_properties.def.
/// Excludes counters and lags, which change all the time: clients read them. Excludes a change of
/// the state between READY and RUNNING, which alternate with every slice.
std::vector<PropertyName> changes(const GpuView& before, const GpuView& after);
std::vector<PropertyName> changes(const VfView& before, const VfView& after);

/// Longer than any name or target.
inline constexpr std::size_t kMaxTextBytes = 256;
/// Limit of the names and values in the options of one request.
inline constexpr std::size_t kMaxOptionBytes = 256 * 1024;

/// Throws OutOfRange as a D-Bus error if a document in a call is longer than
/// kMaxConfigurationBytes.
void check_document(const std::string& text);

/// Throws OutOfRange as a D-Bus error if a text in a call is longer than kMaxTextBytes.
void check_argument(std::string_view name, const std::string& text);
/// Throws InvalidOwner as a D-Bus error.
void check_owner(const std::string& owner);

/// The options of a request. Throws as D-Bus errors: WrongType for a value of a type that no option
/// has, OutOfRange if they hold more than kMaxOptionBytes. Call it before the authorisation,
/// because an open request stays in memory until it is answered.
Options options_of(const Dict& options);

}  // namespace vgpu::daemon::dbus
