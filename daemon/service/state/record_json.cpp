// SPDX-License-Identifier: MIT
#include "daemon/service/state/record_json.h"

#include "daemon/service/state/crc32c.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "vgpud-state";
constexpr std::uint32_t kFirstVersion = 1;
/// The version of the journal whose changes are whole records.
constexpr std::uint32_t kWholeRecords = 1;

/// Causes of failures may quote anything; what is no UTF-8 is replaced, since dump() throws at it.
std::string text_of(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// FNV-1a, of version 1.
/// Kept to read what an old vgpud wrote; nothing is written with it.
std::string fnv_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (const char letter : text) {
        hash ^= static_cast<unsigned char>(letter);
        hash *= 0x100000001b3ull;
    }
    return fmt::format("fnv1a64:{:016x}", hash);
}

/// Over the content as dump() writes it, not as it is in the file: white space does not count, and
/// the order of members is dump()'s.
std::string checksum_of(std::string_view text, std::uint32_t version) {
    return version == kFirstVersion ? fnv_of(text) : fmt::format("crc32c:{:08x}", crc32c(text));
}

Json owner_json(const OwnerRecord& owner) {
    Json json = {{"name", owner.name},
                 {"generation", owner.generation},
                 {"lease_s", owner.lease_s},
                 {"since_s", owner.since.count()},
                 {"expires_s", owner.expires.count()}};
    if (owner.is_kept) json["kept"] = true;
    return json;
}

OwnerRecord owner_of(const Json& json) {
    OwnerRecord owner;
    json.at("name").get_to(owner.name);
    json.at("generation").get_to(owner.generation);
    json.at("lease_s").get_to(owner.lease_s);
    owner.since = UnixTime{json.at("since_s").get<UnixTime::rep>()};
    owner.expires = UnixTime{json.at("expires_s").get<UnixTime::rep>()};
    owner.is_kept = json.value("kept", false);
    return owner;
}

/// What a VF is to be like, whichever it is.
Json definition_json(const VfRecord& record) {
    Json json = {{"name", record.name},
                 {"weight", record.weight},
                 {"quantum_us", record.quantum_us},
                 {"vram_bytes", record.vram_bytes},
                 {"cu_mask", record.cu_mask},
                 {"doorbell_pages", record.doorbell_pages}};
    add_rare_members(record, json);
    if (!record.owner.name.empty()) json["owner"] = owner_json(record.owner);
    return json;
}

Json vf_json(const VfRecord& record) {
    Json json = definition_json(record);
    json["vf"] = record.vf;
    json["uuid"] = uuid_text(record.uuid);
    json["releasing"] = record.is_releasing;
    return json;
}

/// A number that is a VF's.
/// Numbers are indexes of arrays elsewhere: a file may be edited or rot.
std::uint32_t vf_number_of(const Json& json) {
    const auto number = json.get<std::uint64_t>();
    if (number < 1 || number > VGPU_PF_MAX_VFS) throw std::runtime_error("a VF number is none");
    return static_cast<std::uint32_t>(number);
}

Uuid uuid_of(const Json& json) {
    const auto uuid = parse_uuid(json.get<std::string>());
    if (!uuid) throw std::runtime_error("a uuid is malformed");
    return *uuid;
}

/// at() for what every version has, read_rare_members() for the rest.
VfRecord definition_of(const Json& json) {
    VfRecord record;
    json.at("name").get_to(record.name);
    json.at("weight").get_to(record.weight);
    json.at("quantum_us").get_to(record.quantum_us);
    json.at("vram_bytes").get_to(record.vram_bytes);
    json.at("cu_mask").get_to(record.cu_mask);
    json.at("doorbell_pages").get_to(record.doorbell_pages);
    read_rare_members(json, record);
    if (!json.contains("owner")) return record;
    record.owner = owner_of(json.at("owner"));
    if (record.owner.name.empty()) throw std::runtime_error("an owner has no name");
    return record;
}

VfRecord vf_of(const Json& json) {
    VfRecord record = definition_of(json);
    record.vf = vf_number_of(json.at("vf"));
    record.uuid = uuid_of(json.at("uuid"));
    json.at("releasing").get_to(record.is_releasing);
    return record;
}

Json scrubs_json(const GpuRecord& record) {
    Json scrubs = Json::array();
    for (const auto& [vf, generation] : record.scrubs)
        scrubs.push_back({{"vf", vf}, {"generation", generation}});
    return scrubs;
}

Json settings_json(const GpuRecord& record) {
    return {{"quantum_us", record.quantum_us},
            {"max_gap_ms", record.max_gap_ms},
            {"claims", record.claims}};
}

Json gpu_json(const GpuRecord& record) {
    Json json = settings_json(record);
    Json vfs = Json::array();
    for (const auto& [number, vf] : record.vfs) vfs.push_back(vf_json(vf));
    json["vfs"] = std::move(vfs);
    json["scrubs"] = scrubs_json(record);
    return json;
}

/// `vfs`: those that are new or changed; `gone`: numbers of those that are no more; `scrubs`: all,
/// if one changed. Members that would say nothing are left out.
Json difference_json(const GpuRecord& before, const GpuRecord& after) {
    Json json = settings_json(after);
    for (const auto& [number, vf] : after.vfs) {
        const auto known = before.vfs.find(number);
        if (known == before.vfs.end() || known->second != vf) json["vfs"].push_back(vf_json(vf));
    }
    for (const auto& [number, vf] : before.vfs)
        if (!after.vfs.contains(number)) json["gone"].push_back(number);
    if (after.scrubs != before.scrubs) json["scrubs"] = scrubs_json(after);
    return json;
}

void read_vfs(const Json& json, GpuRecord& record) {
    for (const Json& vf : json) {
        const VfRecord one = vf_of(vf);
        record.vfs[one.vf] = one;
    }
}

void read_scrubs(const Json& json, GpuRecord& record) {
    record.scrubs.clear();
    for (const Json& scrub : json)
        record.scrubs[vf_number_of(scrub.at("vf"))] = scrub.at("generation").get<std::uint32_t>();
}

void read_settings(const Json& json, GpuRecord& record) {
    json.at("quantum_us").get_to(record.quantum_us);
    json.at("max_gap_ms").get_to(record.max_gap_ms);
    record.claims = json.value("claims", std::uint64_t{0});
}

GpuRecord gpu_of(const Json& json) {
    GpuRecord record;
    read_settings(json, record);
    read_vfs(json.at("vfs"), record);
    read_scrubs(json.at("scrubs"), record);
    return record;
}

void read_difference(const Json& json, GpuRecord& record) {
    read_settings(json, record);
    if (json.contains("gone"))
        for (const Json& number : json.at("gone"))
            if (record.vfs.erase(vf_number_of(number)) == 0)
                throw std::runtime_error("a VF goes that was not there");
    if (json.contains("vfs")) read_vfs(json.at("vfs"), record);
    if (json.contains("scrubs")) read_scrubs(json.at("scrubs"), record);
}

Json gpus_json(const std::map<std::string, GpuRecord>& records) {
    Json gpus = Json::object();
    for (const auto& [id, gpu] : records) gpus[id] = gpu_json(gpu);
    return gpus;
}

/// A VF that is to be made by the apply has no UUID yet; ways to find it (`was`) are behind it.
Json wanted_json(const WantedVf& wanted) {
    const VfDefinition& one = wanted.definition;
    VfRecord record{.vf = wanted.vf,
                    .name = one.name,
                    .uuid = one.uuid,
                    .weight = one.weight,
                    .quantum_us = one.quantum_us,
                    .qos = one.qos,
                    .custody = one.custody,
                    .profile = one.profile,
                    .owner = wanted.owner};
    set_shape(record, one.shape);
    Json json = definition_json(record);
    if (one.uuid != Uuid{}) json["uuid"] = uuid_text(one.uuid);
    if (wanted.vf != 0) json["vf"] = wanted.vf;
    if (wanted.is_open) json["open"] = true;
    return json;
}

WantedVf wanted_of(const Json& json) {
    const VfRecord record = definition_of(json);
    WantedVf wanted{.definition = daemon::definition_of(record),
                    .owner = record.owner,
                    .is_open = json.value("open", false)};
    if (json.contains("uuid")) wanted.definition.uuid = uuid_of(json.at("uuid"));
    if (json.contains("vf")) wanted.vf = vf_number_of(json.at("vf"));
    return wanted;
}

Json sections_json(const std::vector<WantedGpu>& gpus) {
    Json sections = Json::array();
    for (const WantedGpu& gpu : gpus) {
        Json section = {{"gpu", gpu.gpu}, {"vfs", Json::array()}};
        if (gpu.quantum_us) section["quantum_us"] = *gpu.quantum_us;
        if (gpu.max_gap_ms) section["max_gap_ms"] = *gpu.max_gap_ms;
        for (const WantedVf& vf : gpu.vfs) section["vfs"].push_back(wanted_json(vf));
        sections.push_back(std::move(section));
    }
    return sections;
}

std::vector<WantedGpu> sections_of(const Json& json) {
    std::vector<WantedGpu> gpus;
    for (const Json& section : json) {
        WantedGpu gpu{.gpu = section.at("gpu").get<std::string>()};
        if (section.contains("quantum_us"))
            gpu.quantum_us = section.at("quantum_us").get<std::uint32_t>();
        if (section.contains("max_gap_ms"))
            gpu.max_gap_ms = section.at("max_gap_ms").get<std::uint32_t>();
        for (const Json& vf : section.at("vfs")) gpu.vfs.push_back(wanted_of(vf));
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

Json apply_json(const ApplyIntent& apply) {
    Json json = {{"label", apply.label},
                 {"force", apply.is_forced},
                 {"wanted", sections_json(apply.wanted)},
                 {"before", sections_json(apply.before)}};
    if (!apply.goes_forward()) json["back"] = apply.back_cause;
    return json;
}

ApplyIntent apply_of(const Json& json) {
    return {.label = json.at("label").get<std::string>(),
            .is_forced = json.at("force").get<bool>(),
            .back_cause = json.value("back", ""),
            .wanted = sections_of(json.at("wanted")),
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

const Json& object_of(const Json& gpus) {
    if (!gpus.is_object()) throw std::runtime_error("'gpus' is no object");
    return gpus;
}

std::map<std::string, GpuRecord> gpus_of(const Json& gpus) {
    std::map<std::string, GpuRecord> records;
    for (const auto& [id, gpu] : object_of(gpus).items()) records[id] = gpu_of(gpu);
    return records;
}

const GpuRecord& record_or_default(const Changes& records, const std::string& id) {
    static const GpuRecord kNone;
    const auto known = records.find(id);
    return known == records.end() ? kNone : known->second;
}

/// Schema and version before the checksum: a newer vgpud may have another one.
Result<Checkpoint> checked_checkpoint(const Json& json) {
    const auto version = json.at("version").get<std::uint64_t>();
    if (json.at("schema").get<std::string>() != kSchema)
        return fail(ErrorId::StateCorrupt, "it is no state file of vgpud");
    if (version < kFirstVersion || version > kCheckpointVersion)
        return fail(ErrorId::StateNewer,
                    fmt::format("it has version {}; this vgpud knows versions {} to {}", version,
                                kFirstVersion, kCheckpointVersion));
    Checkpoint checkpoint{.version = static_cast<std::uint32_t>(version), .records = {}};
    const Json& content = json.at("content");
    if (json.at("checksum").get<std::string>() != checksum_of(text_of(content), checkpoint.version))
        return fail(ErrorId::StateCorrupt, "its checksum does not match its content");
    content.at("generation").get_to(checkpoint.records.generation);
    checkpoint.records.gpus = gpus_of(content.at("gpus"));
    if (content.contains("apply")) checkpoint.records.apply = apply_of(content.at("apply"));
    if (content.contains("lease_time"))
        checkpoint.records.lease_time = time_of(content.at("lease_time"));
    return checkpoint;
}

}  // namespace

std::string encode_records(const Records& records) {
    Json content = {{"generation", records.generation}, {"gpus", gpus_json(records.gpus)}};
    if (records.apply) content["apply"] = apply_json(*records.apply);
    if (records.lease_time) content["lease_time"] = time_json(*records.lease_time);
    const Json document = {{"schema", kSchema},
                           {"version", kCheckpointVersion},
                           {"checksum", checksum_of(text_of(content), kCheckpointVersion)},
                           {"content", content}};
    return text_of(document, 2) + "\n";
}

Result<Checkpoint> decode_checkpoint(std::string_view document) {
    try {
        return checked_checkpoint(Json::parse(document));
    } catch (const std::exception& error) {
        return fail(ErrorId::StateCorrupt, error.what());
    }
}

Result<Records> decode_records(std::string_view document) {
    TRY(const Checkpoint checkpoint, decode_checkpoint(document));
    return checkpoint.records;
}

std::string encode_changes(const Changes& before, const Changes& after,
                           const std::optional<ApplyIntent>* apply,
                           const std::optional<LeaseTime>& time) {
    Json gpus = Json::object();
    for (const auto& [id, gpu] : after)
        gpus[id] = difference_json(record_or_default(before, id), gpu);
    Json json = {{"gpus", std::move(gpus)}};
    // null: there is none any more
    if (apply != nullptr) json["apply"] = *apply ? apply_json(**apply) : Json();
    if (time) json["lease_time"] = time_json(*time);
    return text_of(json);
}

Result<> apply_changes(std::string_view payload, std::uint32_t version, Records& records) {
    try {
        const Json json = Json::parse(payload);
        Changes changed;
        for (const auto& [id, gpu] : object_of(json.at("gpus")).items()) {
            GpuRecord& record = changed[id] = record_or_default(records.gpus, id);
            if (version == kWholeRecords)
                record = gpu_of(gpu);
            else
                read_difference(gpu, record);
        }
        std::optional<ApplyIntent> apply = records.apply;
        if (json.contains("apply")) {
            const Json& one = json.at("apply");
            apply = one.is_null() ? std::nullopt : std::optional(apply_of(one));
        }
        if (json.contains("lease_time")) records.lease_time = time_of(json.at("lease_time"));
        for (auto& [id, record] : changed) records.gpus[id] = std::move(record);
        records.apply = std::move(apply);
        return {};
    } catch (const std::exception& error) {
        return fail(ErrorId::StateCorrupt, error.what());
    }
}

}  // namespace vgpu::daemon
