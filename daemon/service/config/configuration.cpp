// SPDX-License-Identifier: MIT
#include "daemon/service/config/configuration.h"

#include "daemon/backend/vf_limit.h"
#include "daemon/service/config/config.h"
#include "daemon/service/input/value_io.h"
#include "daemon/service/vf/settings.h"
#include "text/json_document.h"
#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMaxCus = 64;
/// More than the VRAM of any device. This limit exists to report typing errors with their path;
/// check_capacity() checks the limits of the GPU.
constexpr std::uint64_t kMaxVramBytes = 1ull << 50;
constexpr std::string_view kOff = "off";

/// Reads the size of a VF's VRAM. A document may leave the size out, because some drivers decide it
/// themselves; for other drivers check_capacity() refuses a VF without a size. A number without a
/// unit is in bytes.
void read_vram(JsonSection& section, std::uint64_t& to) {
    const Json* value = section.find("vram");
    if (value == nullptr) return;
    std::optional<std::uint64_t> bytes;
    if (value->is_number_unsigned()) bytes = value->get<std::uint64_t>();
    if (value->is_string()) bytes = text::parse_size(value->get<std::string>());
    if (!bytes || *bytes == 0 || *bytes > kMaxVramBytes)
        return section.complain("vram",
                                fmt::format("must be {}, not {}", text::kSizeWords, shown(*value)));
    to = *bytes;
}

/// The value is a number N, which means the first N compute units, or a mask such as "0x0f".
void read_compute_units(JsonSection& section, std::uint64_t& mask) {
    const Json* value = section.find("compute_units");
    if (value == nullptr) return;
    if (value->is_string()) {
        const std::string text = value->get<std::string>();
        const auto bits = text.starts_with("0x")
                              ? text::number_in<std::uint64_t>(std::string_view(text).substr(2), 16)
                              : std::nullopt;
        if (bits && *bits != 0) mask = *bits;
        if (mask == 0) section.complain("compute_units", "must be a mask such as \"0x0f\"");
        return;
    }
    std::uint32_t count = 0;
    section.number("compute_units", {1, kMaxCus}, count);
    if (count > 0) mask = count >= kMaxCus ? ~0ull : (1ull << count) - 1;
}

void read_resources(const Json& json, const std::string& path, Error& error,
                    VfResources& resources) {
    JsonSection section(json, path, error);
    section.only({"vram", "doorbell_pages", "compute_units"});
    read_vram(section, resources.vram_bytes);
    section.number("doorbell_pages", {1, UINT32_MAX}, resources.doorbell_pages);
    read_compute_units(section, resources.cu_mask);
}

void read_scheduler(const Json& json, const std::string& path, Error& error, VfSpec& profile) {
    JsonSection section(json, path, error);
    section.only(setting_keys(Section::Scheduler));
    read_settings(section, Section::Scheduler, profile);
}

/// "off" disables a limit. An absent limit stays 0, the PF core's default.
void read_guard(const Json& json, const std::string& path, Error& error, VfSecurity& security) {
    JsonSection section(json, path, error);
    section.only({kGuardKinds[0], kGuardKinds[1], kGuardKinds[2], kGuardKinds[3]});
    for (std::size_t kind = 0; kind < kGuardKinds.size(); ++kind) {
        const std::string key(kGuardKinds[kind]);
        const Json* value = section.find(key);
        if (value != nullptr && *value == std::string(kOff))
            security.guard_limits[kind] = kGuardOff;
        else
            section.number(key, {1, kMaxGuardLimit}, security.guard_limits[kind]);
    }
}

/// The keys of `section` in a profile: the keys in `own`, and the keys of settings.
std::vector<std::string_view> keys_of(Section section, std::vector<std::string_view> own) {
    const auto settings = setting_keys(section);
    own.insert(own.end(), settings.begin(), settings.end());
    return own;
}

void read_security(const Json& json, const std::string& path, Error& error, VfSpec& profile) {
    JsonSection section(json, path, error);
    VfSecurity& security = profile.resources.security;
    section.only(keys_of(Section::Security, {"preempt_timeout_us", "full_access_timeout_ms",
                                             "exclusive_full_access", "guard"}));
    read_settings(section, Section::Security, profile);
    section.number("preempt_timeout_us", {1, kMaxPreemptTimeoutUs}, security.preempt_timeout_us);
    section.number("full_access_timeout_ms", {1, kMaxFullAccessTimeoutMs},
                   security.full_access_timeout_ms);
    section.flag("exclusive_full_access", security.is_exclusive_full_access);
    if (const Json* guard = section.find("guard"))
        read_guard(*guard, section.path_of("guard"), error, security);
}

/// Reads a profile, of which only `resources` is required.
VfSpec profile_of(const Json& json, const std::string& path, Error& error) {
    VfSpec profile;
    JsonSection section(json, path, error);
    section.only(keys_of(Section::Profile, {"resources", "scheduler", "security"}));
    read_settings(section, Section::Profile, profile);
    if (const Json* resources = section.find("resources"))
        read_resources(*resources, section.path_of("resources"), error, profile.resources);
    else
        section.complain("resources", "is missing");
    if (const Json* scheduler = section.find("scheduler"))
        read_scheduler(*scheduler, section.path_of("scheduler"), error, profile);
    if (const Json* security = section.find("security"))
        read_security(*security, section.path_of("security"), error, profile);
    return profile;
}

std::string replace_all(std::string text, std::string_view what, const std::string& by) {
    for (std::size_t at = text.find(what); at != std::string::npos;
         at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
    return text;
}

std::string name_of(const std::string& pattern, const std::string& gpu, std::uint32_t n) {
    return replace_all(replace_all(pattern, "{n}", std::to_string(n)), "{gpu}", gpu);
}

/// Limits the work of replace_all(). A longer pattern cannot make a valid name, of at most 63
/// bytes, for the GPU "gpu0", with which check_pattern() tries the pattern.
constexpr std::size_t kMaxPatternBytes = 256;

/// Checks the name of the VF with the largest number, which is the longest name.
void check_pattern(JsonSection& section, const std::string& key, const std::string& pattern,
                   std::uint32_t count) {
    if (pattern.size() > kMaxPatternBytes || !is_valid_name(name_of(pattern, "gpu0", count)))
        section.complain(key,
                         "must be a name of 1 to 63 letters, digits, '-', '_' or '.' that starts "
                         "with a letter; {n} and {gpu} in it are replaced");
    if (count > 1 && pattern.find("{n}") == std::string::npos)
        section.complain(key,
                         fmt::format("must contain {{n}}: {} VFs cannot share one name", count));
}

VfGroup group_of(const Json& json, const std::string& path, Error& error,
                 const std::map<std::string, VfSpec>& profiles) {
    VfGroup group;
    JsonSection section(json, path, error);
    section.only({"profile", "count", "name", "was", "description"});
    section.text("profile", group.profile);
    section.number("count", {1, kMaxVfsPerGpu}, group.count);
    section.text("name", group.name);
    section.text("was", group.was);
    read_value(section, "description", kDescription, group.description);
    if (group.profile.empty()) section.complain("profile", "is missing");
    if (group.name.empty()) section.complain("name", "is missing");
    // Skipped after another mistake: its result would be dropped, and did_you_mean() is slow for
    // thousands of names.
    if (!profiles.contains(group.profile) && !section.has_complained()) {
        std::vector<std::string_view> known;
        for (const auto& [name, profile] : profiles) known.push_back(name);
        const std::string shown = group.profile.substr(0, 64);
        section.complain("profile", fmt::format("'{}' is not among the profiles{}", shown,
                                                did_you_mean(shown, known)));
    }
    check_pattern(section, "name", group.name, group.count);
    if (!group.was.empty()) check_pattern(section, "was", group.was, group.count);
    return group;
}

void read_gpu_scheduler(const Json& json, const std::string& path, Error& error,
                        GpuChange& change) {
    JsonSection section(json, path, error);
    section.only({"quantum_us", "max_gap_ms"});
    std::uint32_t quantum_us = 0, max_gap_ms = 0;
    section.number("quantum_us", {scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs}, quantum_us);
    section.number("max_gap_ms", {kMinGapMs, kMaxGapMs}, max_gap_ms);
    if (quantum_us > 0) change.quantum_us = quantum_us;
    if (max_gap_ms > 0) change.max_gap_ms = max_gap_ms;
}

GpuSection gpu_section_of(const Json& json, const std::string& path, Error& error,
                          const std::map<std::string, VfSpec>& profiles) {
    GpuSection gpu;
    JsonSection section(json, path, error);
    section.only({"gpu", "scheduler", "vfs"});
    section.text("gpu", gpu.gpu);
    if (gpu.gpu.empty()) section.complain("gpu", "is missing");
    if (const Json* scheduler = section.find("scheduler"))
        read_gpu_scheduler(*scheduler, section.path_of("scheduler"), error, gpu.scheduler);
    const Json* vfs = section.find("vfs");
    if (vfs == nullptr || !vfs->is_array()) {
        section.complain("vfs", "must be a list of VFs; [] for none");
        return gpu;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < vfs->size() && !section.has_complained(); ++i) {
        gpu.vfs.push_back(
            group_of((*vfs)[i], section.path_of(fmt::format("vfs/{}", i)), error, profiles));
        count += gpu.vfs.back().count;
        if (count > kMaxVfsPerGpu)
            section.complain("vfs", fmt::format("requests more than {} VFs", kMaxVfsPerGpu));
    }
    return gpu;
}

void check_count(JsonSection& root, const std::string& path, const Json& list, std::size_t max,
                 std::string_view what) {
    if (list.size() > max)
        root.complain(path, fmt::format("has {} {}; the limit is {}", list.size(), what, max));
}

void read_profiles(JsonSection& root, Configuration& to) {
    const Json* profiles = root.find("profiles");
    if (profiles == nullptr || !profiles->is_object())
        return root.complain("profiles", "must be an object of profiles by name");
    check_count(root, "profiles", *profiles, kMaxProfiles, "profiles");
    for (const auto& [name, profile] : profiles->items()) {
        if (root.has_complained()) return;
        const std::string path = "profiles/" + name.substr(0, 64);
        if (!is_valid_label(name)) root.complain(path, "is not a valid name for a profile");
        to.profiles[name] = profile_of(profile, root.path_of(path), root.error());
    }
}

std::vector<GpuSection> gpu_sections_of(JsonSection& root, const std::string& path,
                                        const Json& json,
                                        const std::map<std::string, VfSpec>& profiles) {
    std::vector<GpuSection> sections;
    if (!json.is_array()) {
        root.complain(path, "must be a list of GPUs");
        return sections;
    }
    check_count(root, path, json, kMaxGpuSections, "entries for GPUs");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < json.size() && !root.has_complained(); ++i) {
        const std::string place = fmt::format("{}/{}", path, i);
        sections.push_back(gpu_section_of(json[i], root.path_of(place), root.error(), profiles));
        if (!seen.insert(sections.back().gpu).second)
            root.complain(place + "/gpu", "has two entries; put their VFs into one entry");
    }
    return sections;
}

/// Call after read_profiles(), because `to.profiles` must be complete.
void read_configs(JsonSection& root, Configuration& to) {
    const Json* configs = root.find("configs");
    if (configs == nullptr || !configs->is_object() || configs->empty())
        return root.complain("configs", "must be an object of at least one config by label");
    check_count(root, "configs", *configs, kMaxLabels, "labels");
    for (const auto& [label, sections] : configs->items()) {
        if (root.has_complained()) return;
        const std::string path = "configs/" + label.substr(0, 64);
        if (!is_valid_label(label)) root.complain(path, "is not a valid label");
        to.configs[label] = gpu_sections_of(root, path, sections, to.profiles);
    }
}

/// Finds duplicate members, of which nlohmann::json silently keeps only the last. The parser calls
/// visit() for each event.
class DuplicateFinder {
public:
    /// Always returns true, so that the parser keeps what it has read.
    bool visit(Json::parse_event_t event, const Json& value) {
        if (event == Json::parse_event_t::object_start) keys_.emplace_back();
        if (event == Json::parse_event_t::object_end) keys_.pop_back();
        if (event != Json::parse_event_t::key) return true;
        const auto& key = value.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second && key_.empty()) key_ = key;
        return true;
    }
    /// The first duplicate key; empty if there is none.
    [[nodiscard]] const std::string& key() const { return key_; }

private:
    std::vector<std::set<std::string>> keys_;  ///< keys so far, for each open object
    std::string key_;                          ///< first duplicate key
};

Result<> parse_into(Json& json, std::string_view text) {
    DuplicateFinder duplicates;
    const auto visit = [&duplicates](int, Json::parse_event_t event, const Json& value) {
        return duplicates.visit(event, value);
    };
    auto read = text::read_json(text, text::Comments::Allowed, visit);
    if (!read) {
        constexpr std::size_t kMaxErrorBytes = 300;
        return fail(ErrorId::BadConfiguration, std::string(start_of(read.error(), kMaxErrorBytes)));
    }
    json = *std::move(read);
    if (!duplicates.key().empty())
        return fail(ErrorId::BadConfiguration,
                    fmt::format("'{}' occurs twice in one object", duplicates.key().substr(0, 64)));
    if (!json.is_object()) return fail(ErrorId::BadConfiguration, "the document is not an object");
    return {};
}

// --- writing

/// The number N if the mask has exactly the first N units, N < kMaxCus; else the mask.
Json compute_units_json(std::uint64_t mask) {
    for (std::uint32_t count = 1; count < kMaxCus; ++count)
        if (mask == (1ull << count) - 1) return count;
    return fmt::format("{:#x}", mask);
}

nlohmann::ordered_json security_json(const VfSpec& profile) {
    const VfSecurity& security = profile.resources.security;
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    if (security.preempt_timeout_us > 0) json["preempt_timeout_us"] = security.preempt_timeout_us;
    if (security.full_access_timeout_ms > 0)
        json["full_access_timeout_ms"] = security.full_access_timeout_ms;
    if (security.is_exclusive_full_access) json["exclusive_full_access"] = true;
    for (std::size_t kind = 0; kind < kGuardKinds.size(); ++kind) {
        const std::uint32_t limit = security.guard_limits[kind];
        const std::string key(kGuardKinds[kind]);
        if (limit == kGuardOff)
            json["guard"][key] = kOff;
        else if (limit > 0)
            json["guard"][key] = limit;
    }
    add_settings(profile, Section::Security, json);
    return json;
}

nlohmann::ordered_json profile_json(const VfSpec& profile) {
    nlohmann::ordered_json json;
    json["resources"] = Json::object();
    if (profile.resources.vram_bytes > 0)
        json["resources"]["vram"] = text::exact_size_text(profile.resources.vram_bytes);
    if (profile.resources.doorbell_pages > 0)
        json["resources"]["doorbell_pages"] = profile.resources.doorbell_pages;
    if (profile.resources.cu_mask != 0)
        json["resources"]["compute_units"] = compute_units_json(profile.resources.cu_mask);
    json["scheduler"]["weight"] = profile.weight;
    add_settings(profile, Section::Scheduler, json["scheduler"]);
    auto security = security_json(profile);
    if (!security.empty()) json["security"] = std::move(security);
    add_settings(profile, Section::Profile, json);
    return json;
}

nlohmann::ordered_json group_json(const VfGroup& group) {
    nlohmann::ordered_json json{{"profile", group.profile}};
    if (group.count != 1) json["count"] = group.count;
    json["name"] = group.name;
    if (!group.was.empty()) json["was"] = group.was;
    if (!group.description.empty()) json["description"] = group.description;
    return json;
}

nlohmann::ordered_json gpu_json(const GpuSection& gpu) {
    nlohmann::ordered_json json{{"gpu", gpu.gpu}};
    const auto& [quantum_us, max_gap_ms] = gpu.scheduler;
    if (quantum_us) json["scheduler"]["quantum_us"] = *quantum_us;
    if (max_gap_ms) json["scheduler"]["max_gap_ms"] = *max_gap_ms;
    json["vfs"] = nlohmann::ordered_json::array();
    for (const VfGroup& group : gpu.vfs) json["vfs"].push_back(group_json(group));
    return json;
}

// --- choosing

/// The sections of the config `label`. If `label` is empty, the document must have a single config.
Result<const std::vector<GpuSection>*> sections_of(const Configuration& configuration,
                                                   const std::string& label) {
    const auto& configs = configuration.configs;
    if (const auto at = configs.find(chosen_label(configuration, label)); at != configs.end())
        return &at->second;
    std::vector<std::string_view> known;
    for (const auto& [name, sections] : configs) known.push_back(name);
    const std::string shown = label.substr(0, 64);
    const std::string what =
        label.empty() ? fmt::format("the document has {} configs", configs.size())
                      : fmt::format("there is no label '{}'{}", shown, did_you_mean(shown, known));
    return fail(ErrorId::NoSuchLabel,
                fmt::format("{}; its labels are {}", what, fmt::join(known, ", ")));
}

/// Refuses sections for GPUs that do not exist. Otherwise their VFs would be missing without an
/// error.
Result<> check_gpus(const std::vector<GpuSection>& sections, std::span<const std::string> gpus) {
    const std::vector<std::string_view> known(gpus.begin(), gpus.end());
    for (const GpuSection& section : sections) {
        if (section.gpu == "*") continue;
        if (std::find(gpus.begin(), gpus.end(), section.gpu) != gpus.end()) continue;
        const std::string shown = section.gpu.substr(0, 64);
        return fail(ErrorId::NoSuchGpu,
                    fmt::format("there is no GPU '{}'{}", shown, did_you_mean(shown, known)));
    }
    return {};
}

/// Expands the groups of a section into VFs. check_names() checks their names later.
std::vector<DesiredVf> desired_vfs(const Configuration& configuration, const GpuSection& section,
                                   const std::string& gpu) {
    std::vector<DesiredVf> vfs;
    for (const VfGroup& group : section.vfs) {
        const VfSpec& profile = configuration.profiles.at(group.profile);
        for (std::uint32_t n = 1; n <= group.count; ++n) {
            DesiredVf& vf = vfs.emplace_back();
            vf.spec = profile;
            vf.spec.name = name_of(group.name, gpu, n);
            vf.spec.profile = group.profile;
            if (!group.description.empty()) vf.spec.description = group.description;
            vf.was = name_of(group.was, gpu, n);
        }
    }
    return vfs;
}

/// Makes two passes, because a former name must differ from the names of all other VFs. Allows VFs
/// of two GPUs to share a name; make_change_plan() decides about these.
Result<> check_names(const std::vector<DesiredGpu>& desired) {
    std::set<std::string> names;
    std::set<std::pair<std::string, std::string>> names_on_gpu;
    for (const DesiredGpu& gpu : desired)
        for (const DesiredVf& vf : gpu.vfs) {
            const std::string& name = vf.spec.name;
            if (!is_valid_name(name))
                return fail(ErrorId::InvalidName,
                            fmt::format("'{}' is not a valid name for a VF of {}",
                                        name.substr(0, 80), gpu.gpu));
            names.insert(name);
            if (!names_on_gpu.emplace(gpu.gpu, name).second)
                return fail(ErrorId::BadConfiguration,
                            fmt::format("'{}' is the name of two VFs of {}", name, gpu.gpu));
        }
    std::set<std::string> former;
    for (const DesiredGpu& gpu : desired)
        for (const DesiredVf& vf : gpu.vfs) {
            if (vf.was.empty() || vf.was == vf.spec.name) continue;
            if (names.contains(vf.was) || !former.insert(vf.was).second)
                return fail(ErrorId::BadConfiguration,
                            fmt::format("'{}' is renamed from '{}', but another VF also has that "
                                        "name or former name; rename one after the other",
                                        vf.spec.name, vf.was));
        }
    return {};
}

}  // namespace

Result<Configuration> parse_configuration(std::string_view text) {
    if (text.size() > kMaxConfigurationBytes)
        return fail(ErrorId::BadConfiguration,
                    fmt::format("the document has {} bytes; the limit is {}", text.size(),
                                kMaxConfigurationBytes));
    Json json;
    TRY_VOID(parse_into(json, text));
    Error error{.id = ErrorId::BadConfiguration, .cause = ""};
    Configuration configuration;
    JsonSection root(json, "", error);
    root.only({"$schema", "profiles", "configs"});
    read_profiles(root, configuration);
    read_configs(root, configuration);
    if (!error.cause.empty()) return tl::make_unexpected(error);
    return configuration;
}

std::string encode_configuration(const Configuration& configuration) {
    nlohmann::ordered_json json{{"profiles", nlohmann::ordered_json::object()},
                                {"configs", nlohmann::ordered_json::object()}};
    for (const auto& [name, profile] : configuration.profiles)
        json["profiles"][name] = profile_json(profile);
    for (const auto& [label, sections] : configuration.configs) {
        json["configs"][label] = nlohmann::ordered_json::array();
        for (const GpuSection& section : sections)
            json["configs"][label].push_back(gpu_json(section));
    }
    return json.dump(2) + "\n";
}

bool is_valid_label(std::string_view label) {
    const bool has_start =
        !label.empty() && std::isalnum(static_cast<unsigned char>(label[0])) != 0;
    return has_start && is_valid_name("a" + std::string(label));
}

std::string chosen_label(const Configuration& configuration, const std::string& label) {
    const bool is_only_one = label.empty() && configuration.configs.size() == 1;
    return is_only_one ? configuration.configs.begin()->first : label;
}

Result<std::vector<DesiredGpu>> desired_gpus(const Configuration& configuration,
                                             const std::string& label,
                                             std::span<const std::string> gpus) {
    TRY(const std::vector<GpuSection>* sections, sections_of(configuration, label));
    TRY_VOID(check_gpus(*sections, gpus));
    std::vector<DesiredGpu> desired;
    for (const std::string& gpu : gpus) {
        const auto named = std::find_if(sections->begin(), sections->end(),
                                        [&](const GpuSection& one) { return one.gpu == gpu; });
        const auto general = std::find_if(sections->begin(), sections->end(),
                                          [](const GpuSection& one) { return one.gpu == "*"; });
        const auto section = named != sections->end() ? named : general;
        if (section == sections->end()) continue;
        desired.push_back({.gpu = gpu,
                           .scheduler = section->scheduler,
                           .vfs = desired_vfs(configuration, *section, gpu)});
    }
    TRY_VOID(check_names(desired));
    return desired;
}

}  // namespace vgpu::daemon
