// SPDX-License-Identifier: MIT
//
// Messages of agents, checked. The guest is hostile: a line is bounded in length, depth and number
// of values before parsing, members need their types and ranges, and texts are clipped and made
// printable. schemas/vf-agent.schema.json is the schema of lines. Pure; used by AgentSession and
// tests/fuzz/agent_fuzz.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace vgpu::daemon {

/// Version of the protocol. An agent with another version is disconnected for misbehaviour, and the
/// event says why.
inline constexpr std::uint32_t kAgentProtocol = 1;
/// Longest line in either direction, newline included.
inline constexpr std::size_t kMaxAgentLine = 64 * 1024;

/// An agent's first message. The texts of all messages are clipped, printable UTF-8, with '?' for
/// control characters (text::printable()).
struct AgentHello {
    std::string agent, kernel, driver, rocr;
    std::string pci_address, unique_id;
    bool is_welcomed = false;  ///< true if the hello answers vgpud's welcome
};

/// A process of the guest that uses the VF, as the agent reports it.
struct AgentProcess {
    std::uint32_t pid = 0;
    std::string comm;
    std::uint64_t vram_bytes = 0;
    std::uint32_t queues = 0;
};

/// What an agent reports about the VF and its driver in the guest. `process_count` may exceed the
/// number of listed processes.
struct AgentStatus {
    std::string driver, render_node, last_error;
    std::uint64_t resets = 0, errors = 0;
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
    std::uint32_t process_count = 0;
    std::vector<AgentProcess> processes;
    bool is_quiesced = false;
};

/// An agent's answer to request `id`. AgentSession ignores unknown ids.
struct AgentResult {
    std::uint64_t id = 0;
    bool is_ok = false;
    std::string text;
    std::uint64_t duration_ms = 0;
};

using AgentMessage = std::variant<AgentHello, AgentStatus, AgentResult>;

/// The message of a line without its newline, or what is wrong with the line.
tl::expected<AgentMessage, std::string> parse_agent_line(std::string_view line);

/// The line of a welcome, with newline. It asks for a status every `status_interval_s` seconds.
std::string encode_agent_welcome(std::uint32_t status_interval_s);
/// The line of request `id`, with newline. `what`: "status", "self-test", "quiesce" or "thaw". The
/// agent must answer within `limit_ms`.
std::string encode_agent_ask(std::uint64_t id, std::string_view what, std::uint64_t limit_ms);

}  // namespace vgpu::daemon
