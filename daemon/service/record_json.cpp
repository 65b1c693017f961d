// SPDX-License-Identifier: MIT
#include "daemon/service/record_json.h"

#include "daemon/service/crc32c.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "vgpud-state";
constexpr std::uint32_t kFirstVersion = 1;
/// The version of the journal whose changes are whole records.
constexpr std::uint32_t kWholeRecords = 1;

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
    return {{"name", owner.name},
            {"generation", owner.generation},
            {"lease_s", owner.lease_s},
            {"since_s", owner.since.count()},
            {"expires_s", owner.expires.count()}};
}

OwnerRecord owner_of(const Json& json) {
    OwnerRecord owner;
    json.at("name").get_to(owner.name);
    json.at("generation").get_to(owner.generation);
    json.at("lease_s").get_to(owner.lease_s);
    owner.since = UnixTime{json.at("since_s").get<UnixTime::rep>()};
    owner.expires = UnixTime{json.at("expires_s").get<UnixTime::rep>()};
    return owner;
}

Json vf_json(const VfRecord& record) {
    Json json = {{"vf", record.vf},
                 {"name", record.name},
                 {"uuid", uuid_text(record.uuid)},
                 {"weight", record.weight},
                 {"quantum_us", record.quantum_us},
                 {"vram_bytes", record.vram_bytes},
                 {"cu_mask", record.cu_mask},
                 {"doorbell_pages", record.doorbell_pages},
                 {"releasing", record.is_releasing}};
    add_rare_members(record, json);
    if (!record.owner.name.empty()) json["owner"] = owner_json(record.owner);
    return json;
}

/// A number that is a VF's.
/// Numbers are indexes of arrays elsewhere: a file may be edited or rot.
std::uint32_t vf_number_of(const Json& json) {
    const auto number = json.get<std::uint64_t>();
    if (number < 1 || number > VGPU_PF_MAX_VFS) throw std::runtime_error("a VF number is none");
    return static_cast<std::uint32_t>(number);
}

/// at() for what every version has, read_rare_members() for the rest.
VfRecord vf_of(const Json& json) {
    VfRecord record;
    record.vf = vf_number_of(json.at("vf"));
    json.at("name").get_to(record.name);
    json.at("weight").get_to(record.weight);
    json.at("quantum_us").get_to(record.quantum_us);
    json.at("vram_bytes").get_to(record.vram_bytes);
    json.at("cu_mask").get_to(record.cu_mask);
    json.at("doorbell_pages").get_to(record.doorbell_pages);
    json.at("releasing").get_to(record.is_releasing);
    const auto uuid = parse_uuid(json.at("uuid").get<std::string>());
    if (!uuid) throw std::runtime_error("a uuid is malformed");
    record.uuid = *uuid;
    read_rare_members(json, record);
    if (json.contains("owner")) record.owner = owner_of(json.at("owner"));
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
    if (json.at("checksum").get<std::string>() != checksum_of(content.dump(), checkpoint.version))
        return fail(ErrorId::StateCorrupt, "its checksum does not match its content");
    content.at("generation").get_to(checkpoint.records.generation);
    checkpoint.records.gpus = gpus_of(content.at("gpus"));
    return checkpoint;
}

}  // namespace

std::string encode_records(const Records& records) {
    const Json content = {{"generation", records.generation}, {"gpus", gpus_json(records.gpus)}};
    const Json document = {{"schema", kSchema},
                           {"version", kCheckpointVersion},
                           {"checksum", checksum_of(content.dump(), kCheckpointVersion)},
                           {"content", content}};
    return document.dump(2) + "\n";
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

std::string encode_changes(const Changes& before, const Changes& after) {
    Json gpus = Json::object();
    for (const auto& [id, gpu] : after)
        gpus[id] = difference_json(record_or_default(before, id), gpu);
    return Json{{"gpus", std::move(gpus)}}.dump();
}

Result<> apply_changes(std::string_view payload, std::uint32_t version, Changes& records) {
    try {
        const Json json = Json::parse(payload);
        Changes changed;
        for (const auto& [id, gpu] : object_of(json.at("gpus")).items()) {
            GpuRecord& record = changed[id] = record_or_default(records, id);
            if (version == kWholeRecords)
                record = gpu_of(gpu);
            else
                read_difference(gpu, record);
        }
        for (auto& [id, record] : changed) records[id] = std::move(record);
        return {};
    } catch (const std::exception& error) {
        return fail(ErrorId::StateCorrupt, error.what());
    }
}

}  // namespace vgpu::daemon
