// SPDX-License-Identifier: MIT
//
// vgpud's state files. The first byte of the input says how the rest is used: as a journal beside a
// sound checkpoint, as a checkpoint, as payloads of sound records, or as damage (offset and value)
// to a sound journal of four changes, of which two are of an apply, too. Whatever comes: what is
// read can be written and read again, it can be gone on from, and damage gives a state that once
// was, or a refusal with a reason.
#include "daemon/service/state/journal.h"
#include "daemon/service/state/record_json.h"
#include "daemon/service/state/recovery.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace {

using namespace vgpu::daemon;

constexpr std::uint64_t kBase = 3;

void require(bool is_true) {
    if (!is_true) std::abort();
}

StateImage image_of(std::string journal) {
    Records records;
    records.generation = kBase;
    return {.checkpoint = encode_records(records),
            .journal = std::move(journal),
            .checkpoint_path = "C",
            .journal_path = "J"};
}

Result<Recovered> check(const StateImage& image) {
    const auto recovered = recover(image);
    if (!recovered) {
        require(!recovered.error().cause.empty());
        return recovered;
    }
    const auto again = decode_records(encode_records(recovered->records));
    require(again && *again == recovered->records);
    if (!recovered->is_appendable) return recovered;
    StateImage longer = image;
    require(recovered->journal_end == longer.journal->size());
    GpuRecord gpu;
    gpu.quantum_us = 12345;
    *longer.journal += encode_record(recovered->records.generation + 1,
                                     encode_changes(recovered->records.gpus, {{"added", gpu}}));
    const auto grown = recover(longer);
    require(grown && grown->records.generation == recovered->records.generation + 1);
    require(grown->records.gpus.at("added") == gpu);
    return recovered;
}

void read_payloads(std::string_view bytes) {
    std::string journal = encode_journal_head(kBase);
    for (std::uint64_t i = 1; !bytes.empty(); ++i) {
        const std::size_t end = std::min(bytes.find('\n'), bytes.size());
        journal += encode_record(kBase + i, bytes.substr(0, end));
        bytes.remove_prefix(std::min(end + 1, bytes.size()));
    }
    check(image_of(std::move(journal)));
}

void damage(std::string_view bytes) {
    std::string journal = encode_journal_head(kBase);
    Records records;
    records.generation = kBase;
    std::map<std::uint64_t, Records> states{{kBase, records}};
    for (std::uint32_t i = 1; i <= 4; ++i) {
        const Changes before = records.gpus;
        const std::string id = "gpu" + std::to_string(i % 2);
        GpuRecord& gpu = records.gpus[id];
        gpu.vfs[i] = {.vf = i, .name = "a", .uuid = {}, .weight = i};
        if (i > 2) gpu.vfs.erase(i - 2);
        const std::optional<ApplyIntent> apply =
            i == 2 ? std::optional(ApplyIntent{.label = "x", .wanted = {}, .before = {}})
                   : std::nullopt;
        const bool is_of_apply = i == 2 || i == 3;
        if (is_of_apply) records.apply = apply;
        journal +=
            encode_record(++records.generation,
                          encode_changes(before, {{id, gpu}}, is_of_apply ? &apply : nullptr));
        states[records.generation] = records;
    }
    for (; bytes.size() >= 3; bytes.remove_prefix(3)) {
        const auto byte = [&bytes](std::size_t at) {
            return static_cast<unsigned char>(bytes[at]);
        };
        const std::size_t at = (std::size_t{byte(0)} << 8 | byte(1)) % (journal.size() + 1);
        if (at == journal.size())
            journal.resize(journal.size() / 2 + byte(2));
        else
            journal[at] = bytes[2];
        if (journal.empty()) journal.resize(1);
    }
    const auto recovered = check(image_of(std::move(journal)));
    if (!recovered) return;
    const auto was = states.find(recovered->records.generation);
    require(was != states.end() && was->second == recovered->records);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string bytes;
    bytes.assign(data + 1, data + size);
    switch (data[0] % 4) {
        case 0:
            check(image_of(bytes));
            break;
        case 1:
            check({.checkpoint = bytes,
                   .journal = encode_journal_head(kBase),
                   .checkpoint_path = "C",
                   .journal_path = "J"});
            break;
        case 2:
            read_payloads(bytes);
            break;
        default:
            damage(bytes);
    }
    return 0;
}
