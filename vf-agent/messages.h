// SPDX-License-Identifier: MIT
//
// The lines that agent and host exchange: one JSON object each, described by
// schemas/vf-agent.schema.json. Outgoing lines fit kMaxLine; incoming lines are checked, and
// unknown ones are ignored. Used by Session; no I/O.
#pragma once

#include "vf-agent/facts.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace vgpu::agent {

/// Sent in every hello; raised when a host of an older release would misread a line.
inline constexpr std::uint32_t kProtocol = 1;
/// Longest line in either direction, its newline included.
inline constexpr std::size_t kMaxLine = 64 * 1024;
/// Processes named in a status; those with the most VRAM.
inline constexpr std::size_t kMaxProcesses = 32;

/// Identifies the agent: releases of agent, Linux, driver and ROCr, and its VF.
struct Hello {
    std::string agent, kernel, rocr;
    DriverFacts driver;
    VfFacts vf;
    bool is_welcomed = false;  ///< this hello answers a welcome: the host may now send asks
};

/// State of the VF at this moment. Counters start at the guest's boot.
struct Status {
    DriverFacts driver;
    VfFacts vf;
    std::uint64_t resets = 0, errors = 0;
    std::string last_error;
    /// All processes, most VRAM first: encode() names kMaxProcesses of them and counts all.
    std::vector<ProcessFacts> processes;
    bool is_quiesced = false;
};

/// Result of an ask of the host. `text` is for people, on success as on failure.
struct Outcome {
    bool is_ok = false;
    std::string text;
};

/// Each returns one line with its newline, in printable ASCII: other letters become '?', texts are
/// cut at 512 bytes.
std::string encode(const Hello& hello);
std::string encode(const Status& status);
std::string encode(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took);

/// The host is ready for the agent and requests a status at this interval (0: only when asked).
struct Welcome {
    std::uint32_t protocol = 0;
    std::chrono::seconds status_interval{0};
};

/// Acts that a host may ask for. A status answers Status; a result answers the others.
enum class Act { Status, SelfTest, Quiesce, Thaw };

/// The host chooses `id`; the result repeats it. `limit` is at most 10 min and counts from the
/// moment at which the agent reads the line.
struct Ask {
    std::uint64_t id = 0;
    Act act = Act::Status;
    std::chrono::milliseconds limit{0};
};

using HostMessage = std::variant<Welcome, Ask>;

/// `line` without its newline. Empty if the line is not a JSON object, has an unknown type, or
/// lacks a member or has one out of range: the agent does not answer such a line.
std::optional<HostMessage> parse_host_line(std::string_view line);

}  // namespace vgpu::agent
