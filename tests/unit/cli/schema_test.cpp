// SPDX-License-Identifier: MIT
//
// schemas/*.json against what the programs really accept and print.
#include "daemon/service/agents/message.h"
#include "daemon/service/config/config.h"
#include "daemon/service/config/configuration.h"
#include "daemon/service/state/record_json.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace vgpu {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path kRoot = VGPU_SOURCE_DIR;

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Empty if `document` obeys the schema, else its first complaint.
std::string complaint_of(const std::string& schema_name, const Json& document) {
    const Json schema_json = Json::parse(text_of(kRoot / "schemas" / schema_name));
    valijson::Schema schema;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
    valijson::Validator validator;
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter adapter(document);
    if (validator.validate(schema, adapter, &results)) return "";
    valijson::ValidationResults::Error error;
    return results.popError(error) ? error.description : "invalid";
}

std::vector<fs::path> files_of(const fs::path& directory) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(kRoot / directory))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    return files;
}

TEST(Schemas, EveryGoldenOutputObeysItsSchema) {
    int checked = 0;
    for (const fs::path& file : files_of("tests/golden/vgpuctl")) {
        EXPECT_EQ(complaint_of("vgpuctl.schema.json", Json::parse(text_of(file))), "") << file;
        ++checked;
    }
    EXPECT_GE(checked, 7);
}

/// A vendor's driver knows little of its VFs.
TEST(Schemas, AListWithoutUnknownValuesObeysTheSchema) {
    Json list = Json::parse(text_of(kRoot / "tests/golden/vgpuctl/list.json"));
    for (Json& gpu : list.at("gpus"))
        for (const char* key : {"quantum_us", "max_gap_ms", "vram_bytes", "cu_count", "switches"})
            gpu.erase(key);
    for (Json& vf : list.at("vfs"))
        for (const char* key : {"vram_bytes", "weight", "quantum_us", "share_window", "share_total",
                                "share_ideal", "lag_quanta", "service_ns", "switches", "overruns"})
            vf.erase(key);
    list.at("vfs").at(0)["driver_quantum_us"] = 16'000;
    list.at("gpus").at(0)["manage"] = "observe";
    EXPECT_EQ(complaint_of("vgpuctl.schema.json", list), "");
    list.at("vfs").at(0).erase("name");
    EXPECT_NE(complaint_of("vgpuctl.schema.json", list), "");
}

TEST(Schemas, EveryLineOfEventsObeysItsSchema) {
    std::istringstream lines(text_of(kRoot / "tests/golden/vgpuctl/events.jsonl"));
    int checked = 0;
    for (std::string line; std::getline(lines, line); ++checked)
        EXPECT_EQ(complaint_of("vgpuctl.schema.json", Json::parse(line)), "") << line;
    EXPECT_GE(checked, 3);
}

TEST(Schemas, ValidConfigurationsAreAcceptedByBothSchemaAndVgpud) {
    for (const fs::path& file : files_of("schemas/examples/valid")) {
        if (!file.filename().string().starts_with("vgpud-config")) continue;
        EXPECT_EQ(complaint_of("vgpud-config.schema.json", Json::parse(text_of(file))), "") << file;
        EXPECT_TRUE(daemon::parse_config(text_of(file), "x")) << file;
    }
    const fs::path shipped = kRoot / "daemon/data/vgpud.json";
    EXPECT_EQ(complaint_of("vgpud-config.schema.json", Json::parse(text_of(shipped))), "");
    EXPECT_TRUE(daemon::parse_config(text_of(shipped), "x"));
}

TEST(Schemas, InvalidConfigurationsAreRefusedByBothSchemaAndVgpud) {
    for (const fs::path& file : files_of("schemas/examples/invalid")) {
        if (!file.filename().string().starts_with("vgpud-config")) continue;
        EXPECT_NE(complaint_of("vgpud-config.schema.json", Json::parse(text_of(file))), "") << file;
        EXPECT_FALSE(daemon::parse_config(text_of(file), "x")) << file;
    }
}

/// JSON with comments.
Json commented_json_of(const fs::path& path) {
    constexpr bool kThrows = true, kHasComments = true;
    return Json::parse(text_of(path), nullptr, kThrows, kHasComments);
}

TEST(Schemas, ValidDocumentsOfProfilesAreAcceptedByBothSchemaAndVgpud) {
    int checked = 0;
    for (const fs::path& file : files_of("schemas/examples/valid")) {
        if (!file.filename().string().starts_with("vgpu-config")) continue;
        EXPECT_EQ(complaint_of("vgpu-config.schema.json", commented_json_of(file)), "") << file;
        const auto read = daemon::parse_configuration(text_of(file));
        EXPECT_TRUE(read) << file << ": " << read.error().cause;
        ++checked;
    }
    EXPECT_GE(checked, 3);
}

/// The first line of each says in a comment why: the words of vgpud. What only makes no sense
/// ("meaning") is beyond a schema.
TEST(Schemas, InvalidDocumentsOfProfilesAreRefusedForTheirReason) {
    int checked = 0;
    for (const fs::path& file : files_of("schemas/examples/invalid")) {
        const std::string name = file.filename().string();
        if (!name.starts_with("vgpu-config")) continue;
        const std::string text = text_of(file);
        const std::string reason = text.substr(3, text.find('\n') - 3);
        const bool is_beyond_schemas = name.starts_with("vgpu-config-meaning");
        EXPECT_EQ(complaint_of("vgpu-config.schema.json", commented_json_of(file)).empty(),
                  is_beyond_schemas)
            << file;
        const auto read = daemon::parse_configuration(text);
        ASSERT_FALSE(read) << file;
        EXPECT_NE(read.error().cause.find(reason), std::string::npos)
            << file << ": " << read.error().cause;
        ++checked;
    }
    EXPECT_GE(checked, 20);
}

TEST(Schemas, WhatVgpudWritesAsConfigurationObeysTheSchema) {
    for (const fs::path& file : files_of("schemas/examples/valid")) {
        if (!file.filename().string().starts_with("vgpu-config")) continue;
        const auto read = daemon::parse_configuration(text_of(file));
        ASSERT_TRUE(read);
        const std::string written = daemon::encode_configuration(*read);
        EXPECT_EQ(complaint_of("vgpu-config.schema.json", Json::parse(written)), "") << written;
        EXPECT_TRUE(*daemon::parse_configuration(written) == *read) << written;
    }
}

/// What only the host says is no line of an agent.
bool is_from_agent(const Json& line) {
    return line.at("type") != "welcome" && line.at("type") != "ask";
}

TEST(Schemas, ValidAgentLinesAreAcceptedByBothSchemaAndVgpud) {
    for (const fs::path& file : files_of("schemas/examples/valid")) {
        if (!file.filename().string().starts_with("vf-agent")) continue;
        const Json line = Json::parse(text_of(file));
        EXPECT_EQ(complaint_of("vf-agent.schema.json", line), "") << file;
        EXPECT_EQ(daemon::parse_agent_line(line.dump()).has_value(), is_from_agent(line)) << file;
    }
}

TEST(Schemas, InvalidAgentLinesAreRefusedByBothSchemaAndVgpud) {
    for (const fs::path& file : files_of("schemas/examples/invalid")) {
        if (!file.filename().string().starts_with("vf-agent")) continue;
        const Json line = Json::parse(text_of(file));
        EXPECT_NE(complaint_of("vf-agent.schema.json", line), "") << file;
        EXPECT_FALSE(daemon::parse_agent_line(line.dump())) << file;
    }
}

TEST(Schemas, WhatVgpudTellsAnAgentObeysTheSchema) {
    for (const std::string& line :
         {daemon::encode_agent_welcome(2), daemon::encode_agent_ask(1, "quiesce", 1000)})
        EXPECT_EQ(complaint_of("vf-agent.schema.json", Json::parse(line)), "") << line;
}

/// What vgpud makes of a state file; empty if it refuses the file.
std::string read_and_written(const std::string& text) {
    if (const auto gpu = daemon::decode_gpu(text)) return daemon::encode_gpu(*gpu);
    if (const auto apply = daemon::decode_apply(text)) return daemon::encode_apply(*apply);
    return "";
}

TEST(Schemas, ValidStateFilesAreAcceptedByBothSchemaAndVgpud) {
    int checked = 0;
    for (const fs::path& file : files_of("schemas/examples/valid")) {
        if (!file.filename().string().starts_with("vgpud-state")) continue;
        EXPECT_EQ(complaint_of("vgpud-state.schema.json", Json::parse(text_of(file))), "") << file;
        EXPECT_EQ(read_and_written(text_of(file)), text_of(file)) << "nothing is lost on the way";
        ++checked;
    }
    EXPECT_EQ(checked, 3);
}

TEST(Schemas, InvalidStateFilesAreRefusedByBothSchemaAndVgpud) {
    int checked = 0;
    for (const fs::path& file : files_of("schemas/examples/invalid")) {
        if (!file.filename().string().starts_with("vgpud-state")) continue;
        EXPECT_NE(complaint_of("vgpud-state.schema.json", Json::parse(text_of(file))), "") << file;
        EXPECT_EQ(read_and_written(text_of(file)), "") << file;
        ++checked;
    }
    EXPECT_EQ(checked, 6);
}

TEST(Schemas, StateFilesObeyTheirSchema) {
    daemon::GpuFile file{.gpu = "gpu0", .generation = 1, .lease_time = daemon::LeaseTime{}};
    auto& vfs = file.record.vfs;
    vfs[1] = {.vf = 1, .spec = {.name = "train", .uuid = daemon::make_uuid()}};
    vfs[1].owner = {.name = "pid:1", .generation = 1};
    vfs[2] = {.vf = 2, .spec = {.name = "eval", .uuid = daemon::make_uuid()}};
    vfs[2].next =
        daemon::VfNext{.resources = {.vram_bytes = 64u << 20}, .replaces = 3, .needs_scrub = true};
    file.record.scrubs[2] = 5;
    const daemon::DesiredVf web{.spec = {.name = "web", .resources = {.vram_bytes = 64u << 20}},
                                .vf = 2};
    daemon::DesiredVf www = web;
    www.spec.uuid = daemon::make_uuid();
    www.is_open = true;
    const daemon::ApplyIntent apply{
        .label = "night",
        .rollback_reason = "it was cancelled",
        .after = {{.gpu = "gpu0", .scheduler = {2000, 60}, .vfs = {web}}},
        .before = {{.gpu = "gpu0", .scheduler = {6000, 60}, .vfs = {www}}}};
    for (const std::string& text : {daemon::encode_gpu(file), daemon::encode_apply(apply)}) {
        EXPECT_EQ(complaint_of("vgpud-state.schema.json", Json::parse(text)), "") << text;
        EXPECT_EQ(read_and_written(text), text);
    }
}

}  // namespace
}  // namespace vgpu
