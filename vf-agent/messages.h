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

inline constexpr std::uint32_t kProtocol = 1;
/// Longest line in either direction, its newline included.
inline constexpr std::size_t kMaxLine = 64 * 1024;
/// Processes named in a status; those with the most VRAM.
inline constexpr std::size_t kMaxProcesses = 32;

struct Hello {
    std::string agent, kernel, rocr;
    DriverFacts driver;
    VfFacts vf;
    bool is_welcomed = false;  ///< it answers a welcome: the host may ask
};

struct Status {
    DriverFacts driver;
    VfFacts vf;
    std::uint64_t resets = 0, errors = 0;
    std::string last_error;
    std::vector<ProcessFacts> processes;
    bool is_quiesced = false;
};

/// How something that the host asked for ended.
struct Outcome {
    bool is_ok = false;
    std::string text;
};

std::string encode(const Hello& hello);
std::string encode(const Status& status);
std::string encode(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took);

/// The host is there: speak to me, and send a status so often (0: only when asked).
struct Welcome {
    std::uint32_t protocol = 0;
    std::chrono::seconds status_interval{0};
};

enum class Act { Status, SelfTest, Quiesce, Thaw };

struct Ask {
    std::uint64_t id = 0;
    Act act = Act::Status;
    std::chrono::milliseconds limit{0};
};

using HostMessage = std::variant<Welcome, Ask>;

std::optional<HostMessage> parse_host_line(std::string_view line);

}  // namespace vgpu::agent
