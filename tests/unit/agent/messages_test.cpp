// SPDX-License-Identifier: MIT
#include "vf-agent/messages.h"

#include <gmock/gmock.h>
#include <fstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace vgpu::agent {
namespace {

using Json = nlohmann::json;
using std::chrono_literals::operator""ms;

bool obeys_schema(const std::string& line) {
    std::ifstream file(VGPU_SOURCE_DIR "/schemas/vf-agent.schema.json");
    const Json schema_json = Json::parse(file);
    valijson::Schema schema;
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
    valijson::Validator validator;
    const Json document = Json::parse(line);
    return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
}

TEST(AgentMessages, EverythingItSaysObeysTheSchema) {
    EXPECT_TRUE(obeys_schema(encode(Hello{})));
    EXPECT_TRUE(obeys_schema(encode(Status{})));
    EXPECT_TRUE(obeys_schema(encode(7, {.is_ok = true, .text = "well"}, 12ms)));
    EXPECT_TRUE(obeys_schema(encode(7, {.is_ok = false, .text = ""}, -12ms)));
}

TEST(AgentMessages, HostileNamesAreMadePrintableAndLongListsAreCut) {
    Status status;
    for (int i = 1; i <= 1000; ++i)
        status.processes.push_back({.pid = i, .comm = "\xff\"\n\\" + std::string(9000, 'x')});
    const std::string line = encode(status);
    EXPECT_LT(line.size(), kMaxLine);
    EXPECT_TRUE(obeys_schema(line));
    const Json json = Json::parse(line);
    EXPECT_EQ(json.at("process_count"), 1000);
    EXPECT_EQ(json.at("processes").size(), kMaxProcesses);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(AgentMessages, HostLinesAreChecked) {
    const auto ask =
        parse_host_line(R"({"type":"ask","id":3,"what":"quiesce","limit_ms":500,"more":1})");
    ASSERT_TRUE(ask && std::holds_alternative<Ask>(*ask));
    EXPECT_EQ(std::get<Ask>(*ask).request, Request::Quiesce);
    EXPECT_EQ(std::get<Ask>(*ask).limit, 500ms);
    for (const char* wrong :
         {"", "x", "[]", "3", "{}", R"({"type":7})", R"({"type":"ask","id":-1})",
          R"({"type":"ask","id":1,"what":"reboot","limit_ms":1})",
          R"({"type":"ask","id":1,"what":"thaw","limit_ms":99999999})",
          R"({"type":"welcome","protocol":1})"})
        EXPECT_FALSE(parse_host_line(wrong)) << wrong;
    EXPECT_FALSE(parse_host_line(std::string(1 << 20, '[')));
}

}  // namespace
}  // namespace vgpu::agent
