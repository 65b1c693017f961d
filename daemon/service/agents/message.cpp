// SPDX-License-Identifier: MIT
#include "daemon/service/agents/message.h"

#include "daemon/service/words.h"
#include "text/json_document.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

namespace vgpu::daemon {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 4;
constexpr std::size_t kMaxValues = 1024;
constexpr std::size_t kMaxProcesses = 32;
constexpr std::size_t kMaxWord = 64;
constexpr std::size_t kMaxText = 400;
constexpr std::uint64_t kMaxBytes = 1ull << 50;

/// Guests choose these texts, and terminals and logs show them, so control characters are replaced.
std::string clean(std::string_view text, std::size_t max) {
    return printable(start_of(text, max));
}

/// True if the line is small enough to be parsed. Its depth and its number of ',' and ':' bound the
/// number of its values.
bool is_bounded(std::string_view line) {
    const auto values =
        std::ranges::count_if(line, [](char letter) { return letter == ',' || letter == ':'; });
    return static_cast<std::size_t>(values) <= kMaxValues &&
           text::too_deep(line, text::Comments::Refused, kMaxDepth).empty();
}

/// Reads members of an object, and stores the name of the first wrong member in `wrong`. A wrong
/// member reads as 0, false or empty, so that callers check `wrong` only at the end.
class Members {
public:
    Members(const Json& json, std::string& wrong) : json_(json), wrong_(wrong) {
        if (!json_.is_object()) complain("structure");
    }

    std::string text(const char* name, std::size_t max = kMaxWord) {
        const Json* value = find(name);
        if (value != nullptr && value->is_string())
            return clean(value->get_ref<const std::string&>(), max);
        complain(name);
        return "";
    }
    std::uint64_t number(const char* name, std::uint64_t max) {
        const Json* value = find(name);
        if (value != nullptr && value->is_number_unsigned() && value->get<std::uint64_t>() <= max)
            return value->get<std::uint64_t>();
        complain(name);
        return 0;
    }
    std::uint32_t number32(const char* name, std::uint32_t max = UINT32_MAX) {
        return static_cast<std::uint32_t>(number(name, max));
    }
    bool flag(const char* name) {
        const Json* value = find(name);
        if (value != nullptr && value->is_boolean()) return value->get<bool>();
        complain(name);
        return false;
    }
    Members object(const char* name) {
        static const Json kNone;
        const Json* value = find(name);
        return {value != nullptr ? *value : kNone, wrong_};
    }
    const Json& list(const char* name) {
        static const Json kNone = Json::array();
        const Json* value = find(name);
        if (value != nullptr && value->is_array() && value->size() <= kMaxProcesses) return *value;
        complain(name);
        return kNone;
    }

private:
    const Json* find(const char* name) const {
        if (!json_.is_object()) return nullptr;
        const auto at = json_.find(name);
        return at == json_.end() ? nullptr : &*at;
    }
    void complain(const char* what) {
        if (wrong_.empty()) wrong_ = what;
    }

    const Json& json_;
    std::string& wrong_;
};

AgentMessage parse_hello(Members members, std::string& wrong) {
    if (members.number("protocol", UINT32_MAX) != kAgentProtocol && wrong.empty())
        wrong = "protocol (another version)";
    AgentHello hello{.agent = members.text("agent"),
                     .kernel = members.text("kernel"),
                     .driver = "",
                     .rocr = members.text("rocr"),
                     .pci_address = "",
                     .unique_id = "",
                     .is_welcomed = members.flag("welcomed")};
    Members driver = members.object("driver");
    hello.driver = driver.text("name");
    for (const char* name : {"version", "srcversion"})
        if (const std::string word = driver.text(name); !word.empty()) hello.driver += " " + word;
    Members vf = members.object("vf");
    hello.pci_address = vf.text("pci");
    hello.unique_id = vf.text("unique_id");
    return hello;
}

AgentProcess parse_process(Members members) {
    return {.pid = members.number32("pid", INT32_MAX),
            .comm = members.text("comm"),
            .vram_bytes = members.number("vram_bytes", kMaxBytes),
            .queues = members.number32("queues")};
}

AgentMessage parse_status(Members members, std::string& wrong) {
    AgentStatus status;
    Members health = members.object("health");
    status.driver = health.text("driver");
    status.render_node = health.text("render_node");
    status.resets = health.number("resets", INT64_MAX);
    status.errors = health.number("errors", INT64_MAX);
    status.last_error = health.text("last_error", kMaxText);
    Members vram = members.object("vram");
    status.vram_total_bytes = vram.number("total_bytes", kMaxBytes);
    status.vram_used_bytes = vram.number("used_bytes", kMaxBytes);
    status.process_count = members.number32("process_count");
    for (const Json& one : members.list("processes"))
        status.processes.push_back(parse_process({one, wrong}));
    status.is_quiesced = members.flag("quiesced");
    return status;
}

AgentMessage parse_result(Members members, std::string&) {
    return AgentResult{.id = members.number("id", UINT64_MAX),
                       .is_ok = members.flag("ok"),
                       .text = members.text("text", kMaxText),
                       .duration_ms = members.number("duration_ms", INT64_MAX)};
}

struct Kind {
    std::string_view type;
    AgentMessage (*parse)(Members members, std::string& wrong);
};
constexpr std::array kKinds{Kind{"hello", parse_hello}, Kind{"status", parse_status},
                            Kind{"result", parse_result}};

std::string encode_line(const Json& json) {
    return json.dump() + "\n";
}

}  // namespace

tl::expected<AgentMessage, std::string> parse_agent_line(std::string_view line) {
    if (line.size() >= kMaxAgentLine) return tl::make_unexpected("a line that is too long");
    if (!is_bounded(line)) return tl::make_unexpected("a document that is too deep or too large");
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return tl::make_unexpected("no JSON object");
    std::string wrong;
    Members members(json, wrong);
    const std::string type = members.text("type");
    for (const Kind& kind : kKinds) {
        if (kind.type != type) continue;
        AgentMessage message = kind.parse(members, wrong);
        if (wrong.empty()) return message;
        return tl::make_unexpected("'" + type + "' with a wrong " + wrong);
    }
    return tl::make_unexpected("a message of unknown type");
}

std::string encode_agent_welcome(std::uint32_t status_interval_s) {
    return encode_line({{"type", "welcome"},
                        {"protocol", kAgentProtocol},
                        {"status_interval_s", status_interval_s}});
}

std::string encode_agent_ask(std::uint64_t id, std::string_view what, std::uint64_t limit_ms) {
    return encode_line({{"type", "ask"}, {"id", id}, {"what", what}, {"limit_ms", limit_ms}});
}

}  // namespace vgpu::daemon
