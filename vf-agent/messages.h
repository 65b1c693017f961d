// SPDX-License-Identifier: MIT
//
// The lines that agent and host exchange: one JSON object each, described by
// schemas/vf-agent.schema.json. What goes out is clipped to kMaxLine; what comes in is checked, a
// line that is none of ours is nothing. Used by Session; pure.
#pragma once

#include "vf-agent/facts.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace vgpu::agent {

/// Told in every hello; raised when a host of an older release would misread a line.
inline constexpr std::uint32_t kProtocol = 1;
/// Longest line in either direction, its newline included.
inline constexpr std::size_t kMaxLine = 64 * 1024;
/// Processes named in a status; those with the most VRAM.
inline constexpr std::size_t kMaxProcesses = 32;

/// Who speaks: releases of agent, Linux and ROCr, and the VF that this is about.
struct Hello {
    std::string agent, kernel, rocr;
    DriverFacts driver;
    VfFacts vf;
    bool is_welcomed = false;  ///< it answers a welcome: the host may ask
};

/// How the VF is at this moment. Counters count from the guest's boot.
struct Status {
    DriverFacts driver;
    VfFacts vf;
    std::uint64_t resets = 0, errors = 0;
    std::string last_error;
    /// All of them, most VRAM first: encode() names kMaxProcesses and counts the rest.
    std::vector<ProcessFacts> processes;
    bool is_quiesced = false;
};

/// How something that the host asked for ended.
/// `text` is for people, in both cases.
struct Outcome {
    bool is_ok = false;
    std::string text;
};

/// Each returns one line with its newline, in printable ASCII: other letters become '?', long words
/// are cut at 512.
std::string encode(const Hello& hello);
std::string encode(const Status& status);
std::string encode(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took);

/// The host is there: speak to me, and send a status so often (0: only when asked).
struct Welcome {
    std::uint32_t protocol = 0;
    std::chrono::seconds status_interval{0};
};

/// What a host may ask for. Status is answered by a status, the others by a result.
enum class Act { Status, SelfTest, Quiesce, Thaw };

/// `id` is the host's and comes back in the result; `limit` is at most 10 min and counts from the
/// moment at which the agent reads the line.
struct Ask {
    std::uint64_t id = 0;
    Act act = Act::Status;
    std::chrono::milliseconds limit{0};
};

using HostMessage = std::variant<Welcome, Ask>;

/// `line` without its newline. Nothing for what is no JSON object, has an unknown type, or lacks a
/// member or has one out of range: such a line is not answered.
std::optional<HostMessage> parse_host_line(std::string_view line);

}  // namespace vgpu::agent
