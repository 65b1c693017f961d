// SPDX-License-Identifier: MIT
//
// Properties of GPU and VF objects as values: all of them as a{sv}, and which of those that are
// signalled differ. Object paths are made here. Pure; expanded from *_properties.def,
// used by the objects and by ListVfs/ListGpus.
#pragma once

#include "daemon/dbus/sdbus_compat.h"
#include "daemon/service/event_log.h"
#include "daemon/service/manager.h"

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

/// Different ids give different paths: what a path cannot hold is escaped as _XX.
std::string gpu_path(const std::string& gpu);
std::string vf_path(const std::string& gpu, std::uint32_t vf);

Dict dict_of(const AgentView& agent);
Dict dict_of(const AgentReport& report);
Dict dict_of(const LoggedEvent& event);

/// Properties of VFs that depend on what the main loop alone knows: complete() (context.h) comes
/// before they are told.
inline constexpr std::array kCompleted{
#define VF_PROPERTY(name, type, kind, value)
#define VF_COMPLETED_PROPERTY(name, type, kind, value) std::string_view{#name},
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
};
constexpr bool is_completed(std::string_view name) {
    return std::ranges::find(kCompleted, name) != kCompleted.end();
}

/// Which properties of a VF or a GPU somebody wants to be told.
class PropertyFilter {
public:
    /// All of them.
    PropertyFilter() = default;
    /// `names` by commas, "" for all; OutOfRange names the one that does not exist.
    static Result<PropertyFilter> of_vf(std::string_view names);
    static Result<PropertyFilter> of_gpu(std::string_view names);

    /// How fresh a GPU's snapshot must be for what is wanted of its VFs.
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

/// Properties as ListGpus and ListVfs tell them, with "Path" and "Target" added.
Dict properties_of(const GpuView& view, const PropertyFilter& filter = {});
Dict properties_of(const VfView& view, const PropertyFilter& filter = {});
/// The same by columns: a vector of the property's type for each property, in the order of `views`.
Dict columns_of(const std::vector<const VfView*>& views, const PropertyFilter& filter);
/// Names of the signalled properties that differ, in the order of *_properties.def.
/// Counters and lags change all the time and are not among them: they are for those who ask. Nor is
/// the state if a VF is READY here and RUNNING there: these alternate with every slice.
std::vector<PropertyName> changes(const GpuView& before, const GpuView& after);
std::vector<PropertyName> changes(const VfView& before, const VfView& after);

/// More than any name or target has.
inline constexpr std::size_t kMaxTextBytes = 256;
/// What the options of one request may hold in names and values.
inline constexpr std::size_t kMaxOptionBytes = 256 * 1024;

/// Throws OutOfRange as a D-Bus error if a document that came with a call is longer than
/// kMaxConfigurationBytes.
void check_document(const std::string& text);

/// Throws OutOfRange as a D-Bus error if a text that came with a call is longer than kMaxTextBytes.
void check_argument(std::string_view name, const std::string& text);
/// Throws InvalidOwner as a D-Bus error.
void check_owner(const std::string& owner);

/// The options of a request. Throws as D-Bus errors: WrongType for a value of a type that no option
/// has, OutOfRange if they hold more than kMaxOptionBytes. Before anybody is asked: what is under
/// way is kept in memory, as it came, until it is answered.
Options options_of(const Dict& options);

}  // namespace vgpu::daemon::dbus
