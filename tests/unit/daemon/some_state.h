// SPDX-License-Identifier: MIT
//
// Records for tests of the state files, and files as another vgpud may have written them.
#pragma once

#include "daemon/service/state/crc32c.h"
#include "daemon/service/state/record_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vgpu::daemon::testing {

inline GpuRecord some_record(std::uint32_t weight = 7) {
    GpuRecord record{.settings = {.quantum_us = 5000, .max_gap_ms = 100}, .claims = 4};
    record.vfs[3] = {.vf = 3,
                     .spec = {.name = "train",
                              .uuid = *parse_uuid("00112233-4455-6677-8899-aabbccddeeff"),
                              .resources = {.vram_bytes = 64u << 20, .cu_mask = ~0ull},
                              .weight = weight}};
    record.vfs[3].owner = {.name = "slurm:1",
                           .generation = 4,
                           .lease_s = 60,
                           .since = UnixTime{1000},
                           .expires = UnixTime{1060}};
    record.scrubs[2] = 9;
    return record;
}

/// Two GPUs; the state after is new, the state before has all members.
inline ApplyIntent some_apply() {
    const VfSpec web{.name = "web",
                     .resources = {.vram_bytes = 64u << 20, .security = {.guard_limits = {5}}},
                     .weight = 300,
                     .assignment_policy = {.scrubs_on_release = true},
                     .profile = "small"};
    VfSpec old_web = web;
    old_web.name = "www";
    old_web.uuid = *parse_uuid("00112233-4455-6677-8899-aabbccddeeff");
    old_web.qos.min_pct = 12.5;
    const OwnerRecord owner{.name = "slurm:1", .generation = 4, .since = UnixTime{1000}};
    return {.label = "night",
            .is_forced = true,
            .after = {{.gpu = "gpu0",
                       .scheduler = {.quantum_us = 2000},
                       .vfs = {{.spec = web, .vf = 2}}},
                      {.gpu = "gpu1"}},
            .before = {{.gpu = "gpu0",
                        .scheduler = {.quantum_us = 6000, .max_gap_ms = 60},
                        .vfs = {{.spec = old_web, .vf = 3, .owner = owner, .is_open = true}}},
                       {.gpu = "gpu1", .scheduler = {.quantum_us = 6000, .max_gap_ms = 60}}}};
}

/// The file with `change` made, as a vgpud that means it writes it.
template <typename Change> std::string rewritten(const std::string& text, Change change) {
    nlohmann::json json = nlohmann::json::parse(text);
    json.erase("checksum");
    change(json);
    json["checksum"] = fmt::format("crc32c:{:08x}", crc32c(json.dump()));
    return json.dump(2);
}

inline std::string newer(const std::string& text) {
    return rewritten(text, [](nlohmann::json& json) { json["version"] = kStateVersion + 1; });
}

}  // namespace vgpu::daemon::testing
