// SPDX-License-Identifier: MIT
#include "daemon/service/state_store.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "vgpud-state";
constexpr std::uint32_t kVersion = 1;

/// FNV-1a over the content as it is written: finds damage, not malice.
std::string checksum_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (const char letter : text) {
        hash ^= static_cast<unsigned char>(letter);
        hash *= 0x100000001b3ull;
    }
    return fmt::format("fnv1a64:{:016x}", hash);
}

Json vf_json(const VfRecord& record) {
    return {{"vf", record.vf},
            {"name", record.name},
            {"uuid", uuid_text(record.uuid)},
            {"weight", record.weight},
            {"quantum_us", record.quantum_us},
            {"vram_bytes", record.vram_bytes},
            {"cu_mask", record.cu_mask},
            {"doorbell_pages", record.doorbell_pages},
            {"releasing", record.is_releasing}};
}

VfRecord vf_of(const Json& json) {
    VfRecord record;
    json.at("vf").get_to(record.vf);
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
    return record;
}

Json gpu_json(const GpuRecord& record) {
    Json vfs = Json::array(), scrubs = Json::array();
    for (const auto& [number, vf] : record.vfs) vfs.push_back(vf_json(vf));
    for (const auto& [vf, generation] : record.scrubs)
        scrubs.push_back({{"vf", vf}, {"generation", generation}});
    return {{"quantum_us", record.quantum_us},
            {"max_gap_ms", record.max_gap_ms},
            {"vfs", std::move(vfs)},
            {"scrubs", std::move(scrubs)}};
}

GpuRecord gpu_of(const Json& json) {
    GpuRecord record;
    json.at("quantum_us").get_to(record.quantum_us);
    json.at("max_gap_ms").get_to(record.max_gap_ms);
    for (const Json& vf : json.at("vfs")) {
        const VfRecord one = vf_of(vf);
        record.vfs[one.vf] = one;
    }
    for (const Json& scrub : json.at("scrubs"))
        record.scrubs[scrub.at("vf").get<std::uint32_t>()] =
            scrub.at("generation").get<std::uint32_t>();
    return record;
}

Records records_of(const Json& content) {
    Records records;
    content.at("generation").get_to(records.generation);
    for (const auto& [id, gpu] : content.at("gpus").items()) records.gpus[id] = gpu_of(gpu);
    return records;
}

Result<Records> checked_records(const Json& json) {
    const auto version = json.at("version").get<std::uint32_t>();
    if (json.at("schema").get<std::string>() != kSchema)
        return fail(ErrorId::StateCorrupt, "it is no state file of vgpud");
    if (version != kVersion)
        return fail(
            ErrorId::VersionMismatch,
            fmt::format("it has version {}; this vgpud knows version {}", version, kVersion));
    const Json& content = json.at("content");
    if (json.at("checksum").get<std::string>() != checksum_of(content.dump()))
        return fail(ErrorId::StateCorrupt, "its checksum does not match its content");
    return records_of(content);
}

}  // namespace

std::string encode_records(const Records& records) {
    Json gpus = Json::object();
    for (const auto& [id, gpu] : records.gpus) gpus[id] = gpu_json(gpu);
    const Json content = {{"generation", records.generation}, {"gpus", std::move(gpus)}};
    const Json document = {{"schema", kSchema},
                           {"version", kVersion},
                           {"checksum", checksum_of(content.dump())},
                           {"content", content}};
    return document.dump(2) + "\n";
}

Result<Records> decode_records(const std::string& document) {
    try {
        return checked_records(Json::parse(document));
    } catch (const std::exception& error) {
        return fail(ErrorId::StateCorrupt, error.what());
    }
}

void StateStore::load() {
    auto document = port_.load();
    if (document && !*document) return;
    auto records = document ? decode_records(**document)
                            : Result<Records>(tl::make_unexpected(document.error()));
    if (records)
        records_ = *std::move(records);
    else
        message_ = fmt::format("the state file {} cannot be trusted: {}", port_.where(),
                               records.error().cause);
}

Records StateStore::records() const {
    const std::scoped_lock lock(records_mutex_);
    return records_;
}

GpuRecord StateStore::gpu(const std::string& id) const {
    const std::scoped_lock lock(records_mutex_);
    const auto at = records_.gpus.find(id);
    return at == records_.gpus.end() ? GpuRecord{} : at->second;
}

Result<> StateStore::commit(const std::string& gpu_id, const GpuRecord& record) {
    if (is_read_only()) return fail(ErrorId::StateReadOnly, message_);
    const std::scoped_lock commit_lock(commit_mutex_);
    Records next = records();
    if (next.gpus.contains(gpu_id) && next.gpus.at(gpu_id) == record) return {};
    next.gpus[gpu_id] = record;
    ++next.generation;
    TRY_VOID(port_.store(encode_records(next)));
    const std::scoped_lock lock(records_mutex_);
    records_ = std::move(next);
    return {};
}

}  // namespace vgpu::daemon
