// SPDX-License-Identifier: MIT
//
// What an agent in a guest may say, checked: the guest is hostile, so a line is bounded in length,
// depth and number of values before it is parsed, every member must be there with its type and
// range, and every text is clipped and made printable. schemas/vf-agent.schema.json describes the
// lines. Pure; AgentSession is the caller, tests/fuzz/agent_fuzz.cpp feeds it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace vgpu::daemon {

/// An agent that says another number is refused as misbehaviour, with words that say so.
inline constexpr std::uint32_t kAgentProtocol = 1;
/// Longest line in either direction, its newline included.
inline constexpr std::size_t kMaxAgentLine = 64 * 1024;

/// All texts are clipped printable ASCII; what was not printable is '?'.
struct AgentHello {
    std::string agent, kernel, driver, rocr;
    std::string pci_address, unique_id;
    bool is_welcomed = false;  ///< it answers our welcome
};

/// A process of the guest that uses the VF; all of it is the guest's word.
struct AgentProcess {
    std::uint32_t pid = 0;
    std::string comm;
    std::uint64_t vram_bytes = 0;
    std::uint32_t queues = 0;
};

/// process_count may be more than the processes that are listed.
struct AgentStatus {
    std::string driver, render_node, last_error;
    std::uint64_t resets = 0, errors = 0;
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
    std::uint32_t process_count = 0;
    std::vector<AgentProcess> processes;
    bool is_quiesced = false;
};

/// The answer to the question `id`; an id that was never asked is nobody's.
struct AgentResult {
    std::uint64_t id = 0;
    bool is_ok = false;
    std::string text;
    std::uint64_t duration_ms = 0;
};

using AgentMessage = std::variant<AgentHello, AgentStatus, AgentResult>;

/// The message of one line without its newline, or what is wrong with it.
tl::expected<AgentMessage, std::string> parse_agent_line(std::string_view line);

/// One line with its newline: how often, in seconds, the agent is to send its status.
std::string encode_agent_welcome(std::uint32_t status_interval_s);
/// `what`: "status", "self-test", "quiesce" or "thaw".
/// One line with its newline. `limit_ms` is how long the agent may take.
std::string encode_agent_ask(std::uint64_t id, std::string_view what, std::uint64_t limit_ms);

}  // namespace vgpu::daemon
