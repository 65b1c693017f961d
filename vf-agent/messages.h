// SPDX-License-Identifier: MIT
//
// Lines between agent and host: JSON objects (schemas/vf-agent.schema.json). Outgoing lines fit
// kMaxLine. Incoming lines are checked, and unknown ones are ignored. No I/O.
#pragma once

#include "vf-agent/facts.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace vgpu::agent {

/// Version of the protocol, sent in every hello. Increased when an older host would misread a line.
inline constexpr std::uint32_t kProtocol = 1;
/// Longest line in either direction, newline included.
inline constexpr std::size_t kMaxLine = 64 * 1024;
/// Limit of processes in a status: those with the most VRAM.
inline constexpr std::size_t kMaxProcesses = 32;

/// Releases of agent, Linux, driver and ROCr, and facts of the VF.
struct Hello {
    std::string agent, kernel, rocr;
    DriverFacts driver;
    VfFacts vf;
    bool is_welcomed = false;  ///< answers a welcome, so the host may now send requests
};

/// A status of the VF. Counters start at boot.
struct Status {
    DriverFacts driver;
    VfFacts vf;
    std::uint64_t resets = 0, errors = 0;
    std::string last_error;
    /// All processes, most VRAM first. encode() names the first kMaxProcesses.
    std::vector<ProcessFacts> processes;
    bool is_quiesced = false;
};

/// Result of a request; `text` is for display.
struct Outcome {
    bool is_ok = false;
    std::string text;
};

/// Make a line with newline in printable ASCII ('?' for other letters). Texts are cut at 512 bytes.
std::string encode(const Hello& hello);
std::string encode(const Status& status);
std::string encode(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took);

/// The host is ready. If the interval is 0, the agent sends one status at once, and afterwards only
/// on request.
struct Welcome {
    std::uint32_t protocol = 0;
    std::chrono::seconds status_interval{0};
};

/// The kinds of requests. The agent answers with a Status or a result.
enum class Request { Status, SelfTest, Quiesce, Thaw };

/// A request of the host. The result repeats its `id`. `limit`: at most 10 min, counted from when
/// the line is read.
struct Ask {
    std::uint64_t id = 0;
    Request request = Request::Status;
    std::chrono::milliseconds limit{0};
};

using HostMessage = std::variant<Welcome, Ask>;

/// Parses a line without its newline. None for anything invalid or unknown, which gets no answer.
std::optional<HostMessage> parse_host_line(std::string_view line);

}  // namespace vgpu::agent
