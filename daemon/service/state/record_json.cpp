// SPDX-License-Identifier: MIT
#include "daemon/service/state/record_json.h"

#include "daemon/backend/vf_limit.h"
#include "daemon/service/state/crc32c.h"
#include "daemon/service/vf/settings.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kGpuSchema = "vgpud-gpu", kApplySchema = "vgpud-apply";

/// The JSON as text. Replaces bytes that are not UTF-8, because dump() would throw. Such bytes may
/// occur in ApplyIntent::rollback_reason.
std::string text_of(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Checksum of the content as dump() writes it: without white space and with sorted members. So the
/// white space and the order of members in the file do not matter.
std::string checksum_of(const Json& content) {
    return fmt::format("crc32c:{:08x}", crc32c(text_of(content)));
}

Json owner_json(const OwnerRecord& owner) {
    Json json = {{"name", owner.name},
                 {"generation", owner.generation},
                 {"lease_s", owner.lease_s},
                 {"since_s", owner.since.count()},
                 {"expires_s", owner.expires.count()}};
    if (owner.is_persistent) json["persistent"] = true;
    return json;
}

OwnerRecord owner_of(const Json& json) {
    OwnerRecord owner;
    json.at("name").get_to(owner.name);
    json.at("generation").get_to(owner.generation);
    json.at("lease_s").get_to(owner.lease_s);
    owner.since = UnixTime{json.at("since_s").get<UnixTime::rep>()};
    owner.expires = UnixTime{json.at("expires_s").get<UnixTime::rep>()};
    owner.is_persistent = json.value("persistent", false);
    return owner;
}

Json next_json(const VfNext& next) {
    Json json = resources_json(next.resources);
    json["replaces"] = next.replaces;
    if (next.needs_scrub) json["needs_scrub"] = true;
    return json;
}

VfNext next_of(const Json& json) {
    return {.resources = resources_of(json),
            .replaces = json.at("replaces").get<std::uint32_t>(),
            .needs_scrub = json.value("needs_scrub", false)};
}

Json spec_json(const VfSpec& spec, const OwnerRecord& owner) {
    Json json = resources_json(spec.resources);
    json["name"] = spec.name;
    if (!spec.profile.empty()) json["profile"] = spec.profile;
    add_settings(spec, json);
    if (!owner.name.empty()) json["owner"] = owner_json(owner);
    return json;
}

Json vf_json(const VfRecord& record) {
    Json json = spec_json(record.spec, record.owner);
    json["vf"] = record.vf;
    json["uuid"] = uuid_text(record.spec.uuid);
    json["releasing"] = record.is_releasing;
    if (record.next) json["next"] = next_json(*record.next);
    return json;
}

/// Reads a VF number. Throws if the number is out of range: other code uses VF numbers as array
/// indices, and somebody may have edited the file.
std::uint32_t vf_number_of(const Json& json) {
    const auto number = json.get<std::uint64_t>();
    if (number < 1 || number > kMaxVfsPerGpu)
        throw std::runtime_error("a VF number is out of range");
    return static_cast<std::uint32_t>(number);
}

Uuid uuid_of(const Json& json) {
    const auto uuid = parse_uuid(json.get<std::string>());
    if (!uuid) throw std::runtime_error("a uuid is malformed");
    return *uuid;
}

VfSpec spec_of(const Json& json) {
    VfSpec spec{.name = json.at("name").get<std::string>(), .resources = resources_of(json)};
    if (json.contains("uuid")) spec.uuid = uuid_of(json.at("uuid"));
    spec.profile = json.value("profile", "");
    read_settings(json, spec);
    return spec;
}

OwnerRecord owner_in(const Json& json) {
    if (!json.contains("owner")) return {};
    OwnerRecord owner = owner_of(json.at("owner"));
    if (owner.name.empty()) throw std::runtime_error("an owner has no name");
    return owner;
}

VfRecord vf_of(const Json& json) {
    VfRecord record{.vf = vf_number_of(json.at("vf")),
                    .spec = spec_of(json),
                    .is_releasing = json.at("releasing").get<bool>(),
                    .owner = owner_in(json)};
    record.spec.uuid = uuid_of(json.at("uuid"));
    if (json.contains("next")) record.next = next_of(json.at("next"));
    return record;
}

Json gpu_json(const GpuRecord& record) {
    Json json = {{"quantum_us", record.settings.quantum_us},
                 {"max_gap_ms", record.settings.max_gap_ms},
                 {"claims", record.claims},
                 {"vfs", Json::array()},
                 {"scrubs", Json::array()}};
    for (const auto& [number, vf] : record.vfs) json["vfs"].push_back(vf_json(vf));
    for (const auto& [vf, generation] : record.scrubs)
        json["scrubs"].push_back({{"vf", vf}, {"generation", generation}});
    return json;
}

GpuRecord gpu_of(const Json& json) {
    GpuRecord record;
    json.at("quantum_us").get_to(record.settings.quantum_us);
    json.at("max_gap_ms").get_to(record.settings.max_gap_ms);
    json.at("claims").get_to(record.claims);
    for (const Json& vf : json.at("vfs")) {
        const VfRecord one = vf_of(vf);
        record.vfs[one.vf] = one;
    }
    for (const Json& scrub : json.at("scrubs"))
        record.scrubs[vf_number_of(scrub.at("vf"))] = scrub.at("generation").get<std::uint32_t>();
    return record;
}

/// A VF that the apply will create has no UUID yet. DesiredVf::was is not recorded: only the plan
/// of the apply needs it, and that plan is already made.
Json desired_json(const DesiredVf& desired) {
    Json json = spec_json(desired.spec, desired.owner);
    if (desired.spec.uuid != Uuid{}) json["uuid"] = uuid_text(desired.spec.uuid);
    if (desired.vf != 0) json["vf"] = desired.vf;
    if (desired.is_open) json["open"] = true;
    return json;
}

DesiredVf desired_of(const Json& json) {
    return {.spec = spec_of(json),
            .vf = json.contains("vf") ? vf_number_of(json.at("vf")) : 0,
            .owner = owner_in(json),
            .is_open = json.value("open", false)};
}

Json sections_json(const std::vector<DesiredGpu>& gpus) {
    Json sections = Json::array();
    for (const DesiredGpu& gpu : gpus) {
        Json section = {{"gpu", gpu.gpu}, {"vfs", Json::array()}};
        if (gpu.scheduler.quantum_us) section["quantum_us"] = *gpu.scheduler.quantum_us;
        if (gpu.scheduler.max_gap_ms) section["max_gap_ms"] = *gpu.scheduler.max_gap_ms;
        for (const DesiredVf& vf : gpu.vfs) section["vfs"].push_back(desired_json(vf));
        sections.push_back(std::move(section));
    }
    return sections;
}

std::vector<DesiredGpu> sections_of(const Json& json) {
    std::vector<DesiredGpu> gpus;
    for (const Json& section : json) {
        DesiredGpu gpu{.gpu = section.at("gpu").get<std::string>()};
        if (section.contains("quantum_us"))
            gpu.scheduler.quantum_us = section.at("quantum_us").get<std::uint32_t>();
        if (section.contains("max_gap_ms"))
            gpu.scheduler.max_gap_ms = section.at("max_gap_ms").get<std::uint32_t>();
        for (const Json& vf : section.at("vfs")) gpu.vfs.push_back(desired_of(vf));
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

Json apply_json(const ApplyIntent& apply) {
    Json json = {{"label", apply.label},
                 {"force", apply.is_forced},
                 {"after", sections_json(apply.after)},
                 {"before", sections_json(apply.before)}};
    if (!apply.goes_forward()) json["rollback_reason"] = apply.rollback_reason;
    return json;
}

ApplyIntent apply_of(const Json& json) {
    return {.label = json.at("label").get<std::string>(),
            .is_forced = json.at("force").get<bool>(),
            .rollback_reason = json.value("rollback_reason", ""),
            .after = sections_of(json.at("after")),
            .before = sections_of(json.at("before"))};
}

Json time_json(const LeaseTime& time) {
    return {
        {"boot", time.boot}, {"base_s", time.base.count()}, {"reading_s", time.reading.count()}};
}

LeaseTime time_of(const Json& json) {
    return {.boot = json.at("boot").get<std::string>(),
            .base = UnixTime{json.at("base_s").get<UnixTime::rep>()},
            .reading = UnixTime{json.at("reading_s").get<UnixTime::rep>()}};
}

/// Adds schema, version and checksum, and returns the text of the file.
std::string seal(Json json, std::string_view schema) {
    json["schema"] = schema;
    json["version"] = kStateVersion;
    json["checksum"] = checksum_of(json);
    return text_of(json, 2) + "\n";
}

/// The content of a file without its checksum. Fails with StateCorrupt or StateNewer; throws if
/// `text` is not JSON or lacks a member. Verifies the checksum, which all versions have, before the
/// version, so that a damaged file is not taken for a newer one.
Result<Json> unseal(std::string_view text, std::string_view schema) {
    Json json = Json::parse(text);
    const auto checksum = json.at("checksum").get<std::string>();
    json.erase("checksum");
    if (checksum != checksum_of(json))
        return fail(ErrorId::StateCorrupt, "its checksum does not match its content");
    if (json.at("schema").get<std::string>() != schema)
        return fail(ErrorId::StateCorrupt, fmt::format("its schema is not '{}'", schema));
    if (const auto version = json.at("version").get<std::uint64_t>(); version != kStateVersion)
        return fail(
            ErrorId::StateNewer,
            fmt::format("it has version {}; this vgpud knows version {}", version, kStateVersion));
    return json;
}

/// Unseals a file and converts its content by `content_of`. Fails with StateCorrupt or StateNewer;
/// the error has the reason.
template <typename Content>
Result<Content> decode(std::string_view text, std::string_view schema,
                       Content (*content_of)(const Json&)) {
    try {
        TRY(const Json json, unseal(text, schema));
        return content_of(json);
    } catch (const std::exception& error) {
        return fail(ErrorId::StateCorrupt, error.what());
    }
}

GpuFile file_of(const Json& json) {
    GpuFile file{.gpu = json.at("gpu").get<std::string>(),
                 .generation = json.at("generation").get<std::uint64_t>(),
                 .record = gpu_of(json)};
    if (json.contains("lease_time")) file.lease_time = time_of(json.at("lease_time"));
    return file;
}

}  // namespace

std::string encode_gpu(const GpuFile& file) {
    Json json = gpu_json(file.record);
    json["gpu"] = file.gpu;
    json["generation"] = file.generation;
    if (file.lease_time) json["lease_time"] = time_json(*file.lease_time);
    return seal(std::move(json), kGpuSchema);
}

Result<GpuFile> decode_gpu(std::string_view text) {
    return decode(text, kGpuSchema, file_of);
}

std::string encode_apply(const ApplyIntent& apply) {
    return seal(apply_json(apply), kApplySchema);
}

Result<ApplyIntent> decode_apply(std::string_view text) {
    return decode(text, kApplySchema, apply_of);
}

}  // namespace vgpu::daemon
