// SPDX-License-Identifier: MIT
//
// The lines of JSON that vgpud and an agent exchange: parses and checks the agent's lines, encodes
// vgpud's lines. The guest may be hostile. So the length, the depth and the number of values of a
// line are checked before the line is parsed, each member must have the right type and range, and
// texts are clipped and made printable. schemas/vf-agent.schema.json is the schema of lines. Pure
// functions; used by AgentSession and tests/fuzz/agent_fuzz.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace vgpu::daemon {

/// Version of the protocol. To AgentSession, another version is misbehaviour: it disconnects the
/// agent, and the event names the version as the cause.
inline constexpr std::uint32_t kAgentProtocol = 1;
/// Longest line in either direction, newline included.
inline constexpr std::size_t kMaxAgentLine = 64 * 1024;

/// An agent's first message. In all messages, an empty text means none or unknown, and texts are
/// clipped, printable UTF-8, with '?' for control characters (text::printable()).
struct AgentHello {
    /// Releases of vgpu-agent, Linux, the VF's driver ("NAME VERSION SRCVERSION") and ROCr.
    std::string agent, kernel, driver, rocr;
    /// The VF's PCI address in the guest, and the content of amdgpu's file unique_id in sysfs.
    std::string pci_address, unique_id;
    bool is_welcomed = false;  ///< true if the hello answers vgpud's welcome
};

/// A process of the guest that uses the VF, as the agent reports it.
struct AgentProcess {
    std::uint32_t pid = 0;  ///< in the guest
    std::string comm;
    std::uint64_t vram_bytes = 0;
    std::uint32_t queues = 0;  ///< user queues of KFD
};

/// An agent's report about the VF and its driver in the guest.
struct AgentStatus {
    /// `driver`: empty if no driver is bound; `render_node`: empty if there is none.
    std::string driver, render_node, last_error;
    std::uint64_t resets = 0, errors = 0;  ///< counted since the guest's boot
    std::uint64_t vram_total_bytes = 0, vram_used_bytes = 0;
    std::uint32_t process_count = 0;  ///< may exceed the number of listed processes
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

/// Parses a line, given without its newline. The error completes the sentence "it sent …", such as
/// "no JSON object".
tl::expected<AgentMessage, std::string> parse_agent_line(std::string_view line);

/// The line of vgpud's welcome, with newline. The welcome requests a status every
/// `status_interval_s` seconds; 0: only on request.
std::string encode_agent_welcome(std::uint32_t status_interval_s);
/// The line of request `id`, with newline. `what`: "status", "self-test", "quiesce" or "thaw".
/// `limit_ms`: time within which the agent must answer.
std::string encode_agent_ask(std::uint64_t id, std::string_view what, std::uint64_t limit_ms);

}  // namespace vgpu::daemon
