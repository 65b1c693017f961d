// SPDX-License-Identifier: MIT
#include "vf-agent/messages.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace vgpu::agent {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxText = 512;  // bytes
constexpr std::uint64_t kMaxLimitMs = 600'000;
constexpr std::uint64_t kMaxIntervalS = 3600;

/// Makes a text printable ASCII and cuts it, because other processes choose some texts.
std::string clean(std::string_view text) {
    std::string words(text.substr(0, kMaxText));
    std::replace_if(
        words.begin(), words.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    return words;
}

std::string line_with(const Json& json) {
    return json.dump() + "\n";
}

/// The member `name`; none if it is absent, not an unsigned integer, or above `max`.
std::optional<std::uint64_t> number_in(const Json& json, const char* name, std::uint64_t max) {
    const auto at = json.find(name);
    if (at == json.end() || !at->is_number_unsigned()) return {};
    const auto number = at->get<std::uint64_t>();
    return number <= max ? std::optional(number) : std::nullopt;
}

struct RequestName {
    std::string_view name;
    Request request;
};
constexpr std::array kRequests{
    RequestName{"status", Request::Status}, RequestName{"self-test", Request::SelfTest},
    RequestName{"quiesce", Request::Quiesce}, RequestName{"thaw", Request::Thaw}};

std::optional<HostMessage> parse_welcome(const Json& json) {
    const auto protocol = number_in(json, "protocol", UINT32_MAX);
    const auto interval = number_in(json, "status_interval_s", kMaxIntervalS);
    if (!protocol || !interval) return {};
    return Welcome{.protocol = static_cast<std::uint32_t>(*protocol),
                   .status_interval = std::chrono::seconds(*interval)};
}

std::optional<HostMessage> parse_ask(const Json& json) {
    const auto id = number_in(json, "id", UINT64_MAX);
    const auto limit = number_in(json, "limit_ms", kMaxLimitMs);
    const auto what = json.find("what");
    if (!id || !limit || what == json.end() || !what->is_string()) return {};
    for (const RequestName& row : kRequests)
        if (row.name == what->get_ref<const std::string&>())
            return Ask{
                .id = *id, .request = row.request, .limit = std::chrono::milliseconds(*limit)};
    return {};
}

}  // namespace

std::string encode(const Hello& hello) {
    return line_with(
        {{"type", "hello"},
         {"protocol", kProtocol},
         {"welcomed", hello.is_welcomed},
         {"agent", clean(hello.agent)},
         {"kernel", clean(hello.kernel)},
         {"driver",
          {{"name", clean(hello.driver.name)},
           {"version", clean(hello.driver.version)},
           {"srcversion", clean(hello.driver.srcversion)}}},
         {"rocr", clean(hello.rocr)},
         {"vf", {{"pci", clean(hello.vf.pci_address)}, {"unique_id", clean(hello.vf.unique_id)}}}});
}

std::string encode(const Status& status) {
    Json processes = Json::array();
    for (const ProcessFacts& process : status.processes) {
        if (processes.size() == kMaxProcesses) break;
        processes.push_back({{"pid", process.pid},
                             {"comm", clean(process.comm)},
                             {"vram_bytes", process.vram_bytes},
                             {"queues", process.queues}});
    }
    return line_with(
        {{"type", "status"},
         {"health",
          {{"driver", clean(status.driver.name)},
           {"render_node", clean(status.vf.render_node)},
           {"resets", status.resets},
           {"errors", status.errors},
           {"last_error", clean(status.last_error)}}},
         {"vram",
          {{"total_bytes", status.vf.vram_total_bytes}, {"used_bytes", status.vf.vram_used_bytes}}},
         {"process_count", status.processes.size()},
         {"processes", processes},
         {"quiesced", status.is_quiesced}});
}

std::string encode(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took) {
    return line_with({{"type", "result"},
                      {"id", id},
                      {"ok", outcome.is_ok},
                      {"text", clean(outcome.text)},
                      {"duration_ms", std::max<std::int64_t>(0, took.count())}});
}

std::optional<HostMessage> parse_host_line(std::string_view line) {
    if (line.size() > kMaxLine) return {};
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return {};
    const auto type = json.find("type");
    if (type == json.end()) return {};
    if (*type == "welcome") return parse_welcome(json);
    if (*type == "ask") return parse_ask(json);
    return {};
}

}  // namespace vgpu::agent
