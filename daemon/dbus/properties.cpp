// SPDX-License-Identifier: MIT
#include "daemon/dbus/properties.h"

#include "daemon/service/config/configuration.h"
#include "daemon/service/vf/shares.h"
#include "daemon/service/words.h"

#include <fmt/format.h>
#include <cctype>
#include <optional>

namespace vgpu::daemon::dbus {

namespace {

/// Converts `text` to an element of an object path, which may have only letters, digits and '_'.
std::string path_element(const std::string& text) {
    std::string element;
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        element += std::isalnum(code) != 0 ? std::string(1, letter) : fmt::format("_{:02x}", code);
    }
    return element;
}

/// True for READY and RUNNING, between which a VF with work alternates.
bool is_schedulable(std::uint32_t state) {
    return state == VGPU_PF_VF_READY || state == VGPU_PF_VF_RUNNING;
}

/// True if all values from which the SIGNALLED properties (vf_properties.def) are made are equal. A
/// cheap check, because it runs for every VF of a changed GPU.
bool is_same(const VfView& a, const VfView& b) {
    return a.active == b.active && a.abilities == b.abilities && a.record == b.record &&
           a.assignment_mode == b.assignment_mode && a.condition == b.condition &&
           a.orphan == b.orphan && a.owner_domain_name == b.owner_domain_name &&
           a.client == b.client && a.lease_expires == b.lease_expires;
}

/// Copies a value of type T to `to`; widens integers to 64 bits. False if `from` has another type.
template <typename T> bool copy_as(const sdbus::Variant& from, Value& to) {
    if (!from.containsValueOfType<T>()) return false;
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double> ||
                  std::is_same_v<T, std::string>)
        to = from.get<T>();
    else if constexpr (std::is_signed_v<T>)
        to = static_cast<std::int64_t>(from.get<T>());
    else
        to = static_cast<std::uint64_t>(from.get<T>());
    return true;
}

/// The value of an option; none for a type that no option has.
template <typename... Types> std::optional<Value> value_of(const sdbus::Variant& variant) {
    Value value;
    if (!(copy_as<Types>(variant, value) || ...)) return {};
    return value;
}

std::size_t bytes_of(const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    return text == nullptr ? sizeof value : text->size();
}

sdbus::Error dbus_error(ErrorId id, std::string cause) {
    const Error error{id, std::move(cause)};
    return make_error(dbus_name_of(error.id), text_of(error));
}

sdbus::Error unsupported_type(const std::string& name, const std::string& signature) {
    constexpr std::size_t kMaxNameBytes = 40;
    return dbus_error(ErrorId::WrongType,
                      fmt::format("option '{}' is of type '{}', but options are booleans (b), "
                                  "numbers (y n q i u x t d) or strings (s)",
                                  printable(start_of(name, kMaxNameBytes)), signature));
}

/// Throws OutOfRange if the options have more than kMaxOptionBytes.
void check_total(std::size_t bytes) {
    if (bytes > kMaxOptionBytes)
        throw dbus_error(ErrorId::OutOfRange,
                         fmt::format("the options hold more than {} bytes", kMaxOptionBytes));
}

/// Throws OutOfRange for more than kMaxOptions.
void check_count(std::size_t count) {
    if (count > kMaxOptions)
        throw dbus_error(ErrorId::OutOfRange, fmt::format("more than {} options", kMaxOptions));
}

/// True if `signature` is a type that an option may have.
bool is_option_type(std::string_view signature) {
    constexpr std::string_view kTypes = "bynqiuxtds";
    return signature.size() == 1 && kTypes.find(signature) != std::string_view::npos;
}

/// Size of the text in a variant; 0 for another type.
std::size_t text_bytes_of(const sdbus::Variant& variant) {
    return variant.containsValueOfType<std::string>() ? variant.get<std::string>().size() : 0;
}

}  // namespace

std::string gpu_path(const std::string& gpu) {
    return "/org/vgpu1/gpu/" + path_element(gpu);
}

std::string vf_path(const std::string& gpu, std::uint32_t vf) {
    return fmt::format("{}/vf/{}", gpu_path(gpu), vf);
}

Dict dict_of(const AgentView& agent) {
    return {{"Socket", sdbus::Variant{agent.socket}},
            {"Connected", sdbus::Variant{agent.is_connected}},
            {"Misbehaved", sdbus::Variant{agent.misbehaved}},
            {"Version", sdbus::Variant{agent.version}},
            {"Kernel", sdbus::Variant{agent.kernel}},
            {"Driver", sdbus::Variant{agent.driver}},
            {"Rocr", sdbus::Variant{agent.rocr}},
            {"PciAddress", sdbus::Variant{agent.pci_address}},
            {"UniqueId", sdbus::Variant{agent.unique_id}},
            {"LastSeenMs", sdbus::Variant{agent.last_seen_ms}},
            {"Health", sdbus::Variant{agent.health}},
            {"LastError", sdbus::Variant{agent.last_error}},
            {"Resets", sdbus::Variant{agent.resets}},
            {"Errors", sdbus::Variant{agent.errors}},
            {"VramTotalBytes", sdbus::Variant{agent.vram_total_bytes}},
            {"VramUsedBytes", sdbus::Variant{agent.vram_used_bytes}},
            {"Processes", sdbus::Variant{agent.processes}},
            {"ProcessList", sdbus::Variant{agent.process_list}},
            {"Quiesced", sdbus::Variant{agent.is_quiesced}}};
}

Dict dict_of(const Abilities& abilities) {
    Dict all;
    for (std::size_t i = 0; i < kChanges; ++i) {
        const auto change = static_cast<Change>(i);
        const Ability& ability = abilities[change];
        Dict one{{"needs", sdbus::Variant{std::string(name_of(ability.needs))}}};
        if (ability.unit != 1) one["unit"] = sdbus::Variant{ability.unit};
        if (ability.min != 0) one["min"] = sdbus::Variant{ability.min};
        if (ability.max != Ability{}.max) one["max"] = sdbus::Variant{ability.max};
        if (ability.is_approximate) one["is_approximate"] = sdbus::Variant{true};
        all[std::string(key_of(change))] = sdbus::Variant{one};
    }
    return all;
}

Dict contract_of(const VfView& view) {
    Dict all;
    if (!view.abilities) return all;
    for (const auto& [key, word] : contract_words(*view.abilities, view.record.spec))
        all[key] = sdbus::Variant{word};
    return all;
}

Dict dict_of(const AgentReport& report) {
    return {{"ok", sdbus::Variant{report.is_ok}},
            {"text", sdbus::Variant{report.text}},
            {"duration_ms", sdbus::Variant{report.duration_ms}}};
}

Dict dict_of(const LoggedEvent& event) {
    return {{"seq", sdbus::Variant{event.seq}},
            {"time_us", sdbus::Variant{event.time_us}},
            {"gpu", sdbus::Variant{event.gpu}},
            {"vf", sdbus::Variant{event.vf}},
            {"kind", sdbus::Variant{std::string(name_of(event.kind))}},
            {"text", sdbus::Variant{event.text}}};
}

// changes() uses the kind of each property as a macro, whose argument is the code that compares the
// values of the property. Only SIGNALLED keeps this code.
#define SIGNALLED(...) __VA_ARGS__
#define SILENT(...)
#define POLLED(...)

Result<PropertyFilter> PropertyFilter::of_vf(std::string_view names) {
    static constexpr std::array kKnown{
#define VF_PROPERTY(name, type, kind, value) std::string_view{#name},
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
        std::string_view{"Path"}, std::string_view{"Target"}};
    return parse(kKnown, names);
}

Result<PropertyFilter> PropertyFilter::of_gpu(std::string_view names) {
    static constexpr std::array kKnown{
#define GPU_PROPERTY(name, type, kind, value) std::string_view{#name},
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY
        std::string_view{"Path"}, std::string_view{"Target"}};
    return parse(kKnown, names);
}

Result<PropertyFilter> PropertyFilter::parse(std::span<const std::string_view> known,
                                             std::string_view names) {
    PropertyFilter filter;
    while (!names.empty()) {
        const std::size_t comma = names.find(',');
        const std::string_view name = names.substr(0, comma);
        if (std::ranges::find(known, name) == known.end())
            return fail(ErrorId::OutOfRange, fmt::format("properties: there is no property '{}'",
                                                         printable(start_of(name, 64))));
        filter.names_.emplace(name);
        names = comma == std::string_view::npos ? "" : names.substr(comma + 1);
    }
    return filter;
}

bool PropertyFilter::needs_completion() const {
    return std::ranges::any_of(kCompleted, [this](auto name) { return includes(name); });
}

Freshness PropertyFilter::freshness() const {
    constexpr std::string_view kPolled = "POLLED";
#define VF_PROPERTY(name, type, kind, value) \
    if (#kind == kPolled && includes(#name)) return Freshness::Counters;
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
    return Freshness::Events;
}

std::vector<std::string> unknown_of(const GpuView& v) {
    std::vector<std::string> names;
#define GPU_PROPERTY(name, type, kind, value)                 \
    if constexpr (kIsOptional<std::decay_t<decltype(value)>>) \
        if (!known<type>(value)) names.emplace_back(#name);
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY
    return names;
}

std::vector<std::string> unknown_of(const VfView& v) {
    std::vector<std::string> names;
#define VF_PROPERTY(name, type, kind, value)                  \
    if constexpr (kIsOptional<std::decay_t<decltype(value)>>) \
        if (!known<type>(value)) names.emplace_back(#name);
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
    return names;
}

Dict properties_of(const GpuView& v, const PropertyFilter& filter) {
    Dict all{{"Path", sdbus::Variant{sdbus::ObjectPath{gpu_path(v.id)}}},
             {"Target", sdbus::Variant{v.id}}};
#define GPU_PROPERTY(name, type, kind, value)                               \
    if (const auto one = known<type>(value); one && filter.includes(#name)) \
        all[#name] = sdbus::Variant{*one};
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY
    return all;
}

std::vector<PropertyName> changes(const GpuView& before, const GpuView& after) {
    std::vector<PropertyName> names;
#define GPU_PROPERTY(name, type, kind, value)                                      \
    kind({                                                                         \
        const auto value_of = [](const GpuView& v) { return known<type>(value); }; \
        if (value_of(before) != value_of(after)) names.emplace_back(#name);        \
    })
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY
    return names;
}

Dict columns_of(const std::vector<const VfView*>& views, const PropertyFilter& filter) {
    const auto column = [&views](auto value_of) {
        std::vector<decltype(value_of(*views.front()))> values;
        values.reserve(views.size());
        for (const VfView* v : views) values.push_back(value_of(*v));
        return sdbus::Variant{values};
    };
    Dict all{{"Path", column([](const VfView& v) {
                  return sdbus::ObjectPath{vf_path(v.gpu, v.active.vf)};
              })},
             {"Target",
              column([](const VfView& v) { return fmt::format("{}/vf{}", v.gpu, v.active.vf); })},
             {"Unknown", column([](const VfView& v) { return unknown_of(v); })}};
#define VF_PROPERTY(name, type, kind, value) \
    if (filter.includes(#name))              \
        all[#name] =                         \
            column([](const VfView& v) { return known<type>(value).value_or(unset<type>()); });
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
    return all;
}

std::vector<PropertyName> changes(const VfView& before, const VfView& after) {
    std::vector<PropertyName> names;
    if (is_same(before, after)) return names;
#define VF_PROPERTY(name, type, kind, value)                                      \
    kind({                                                                        \
        const auto value_of = [](const VfView& v) { return known<type>(value); }; \
        if (value_of(before) != value_of(after)) names.emplace_back(#name);       \
    })
#include "daemon/dbus/vf_properties.def"
#undef VF_PROPERTY
    if (is_schedulable(before.active.state) && is_schedulable(after.active.state))
        std::erase(names, PropertyName{"State"});
    return names;
}

void check_document(const std::string& text) {
    if (text.size() <= kMaxConfigurationBytes) return;
    throw dbus_error(ErrorId::OutOfRange, fmt::format("the document has {} bytes; the limit is {}",
                                                      text.size(), kMaxConfigurationBytes));
}

void check_argument(std::string_view name, const std::string& text) {
    if (text.size() <= kMaxTextBytes) return;
    throw dbus_error(ErrorId::OutOfRange, fmt::format("argument '{}' has {} bytes; the limit is {}",
                                                      name, text.size(), kMaxTextBytes));
}

void check_owner(const std::string& owner) {
    if (const auto named = check_owner_name(owner); !named)
        throw dbus_error(named.error().id, named.error().cause);
}

/// Counts options with equal names too, because a message may repeat a name without end.
void read_options(sdbus::Message& message, Dict& options) {
    if (!message.enterContainer("{sv}")) return;
    std::size_t count = 0, bytes = 0;
    while (message.enterDictEntry("sv")) {
        check_count(++count);
        std::string name;
        message >> name;
        check_total(bytes += name.size());
        if (const std::string type = next_variant_type(message); !is_option_type(type))
            throw unsupported_type(name, type);
        sdbus::Variant value;
        message >> value;
        check_total(bytes += text_bytes_of(value));
        options.emplace(std::move(name), std::move(value));
        message.exitDictEntry();
    }
    message.clearFlags();
    message.exitContainer();
}

Options options_of(const Dict& options) {
    Options values;
    std::size_t bytes = 0;
    for (const auto& [name, variant] : options) {
        auto value =
            value_of<bool, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                     std::int64_t, std::uint64_t, double, std::string>(variant);
        if (!value) throw unsupported_type(name, variant.peekValueType());
        bytes += name.size() + bytes_of(*value);
        check_total(bytes);
        values[name] = *std::move(value);
    }
    return values;
}

}  // namespace vgpu::daemon::dbus
