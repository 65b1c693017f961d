// SPDX-License-Identifier: MIT
//
// The lines that agent and host exchange: JSON objects (schemas/vf-agent.schema.json). encode()
// makes the agent's lines, of at most kMaxLine bytes. parse_host_line() checks the host's lines;
// the agent ignores invalid and unknown lines. No I/O.
#pragma once

#include "vf-agent/facts.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace vgpu::agent {

/// Version of the protocol, sent in every hello. A host with another version rejects the agent.
/// Increased when an older host would misread a line.
inline constexpr std::uint32_t kProtocol = 1;
/// Longest line in either direction, in bytes, newline included.
inline constexpr std::size_t kMaxLine = 64 * 1024;
/// Limit of processes in a status line, which lists the processes with the most VRAM.
inline constexpr std::size_t kMaxProcesses = 32;

/// The agent's greeting: releases of agent, Linux, driver and ROCr, and facts of the VF.
struct Hello {
    std::string agent, kernel, rocr;
    DriverFacts driver;
    VfFacts vf;
    bool is_welcomed = false;  ///< true if this hello answers a welcome
};

/// A status of the VF. `resets` and `errors` count from boot.
struct Status {
    DriverFacts driver;
    VfFacts vf;
    std::uint64_t resets = 0, errors = 0;
    std::string last_error;
    /// All processes, most VRAM first. The encoded line lists the first kMaxProcesses.
    std::vector<ProcessFacts> processes;
    bool is_quiesced = false;
};

/// Result of a request. `text` is a message for people.
struct Outcome {
    bool is_ok = false;
    std::string text;
};

/// Encodes a message as a line in printable ASCII, with a newline. Replaces other bytes of texts by
/// '?', and cuts each text at 512 bytes. `id`: Ask::id. `took`: how long the request ran.
std::string encode(const Hello& hello);
std::string encode(const Status& status);
std::string encode(std::uint64_t id, const Outcome& outcome, std::chrono::milliseconds took);

/// The host's message that it is ready. The agent then sends a hello, a status at once, and further
/// statuses every `status_interval`, or only on request if `status_interval` is 0.
struct Welcome {
    std::uint32_t protocol = 0;  ///< the host's version; the agent does not check it
    std::chrono::seconds status_interval{0};
};

/// The kinds of requests. The agent answers Status with a Status, and the other kinds with an
/// Outcome.
enum class Request { Status, SelfTest, Quiesce, Thaw };

/// A request of the host; in JSON, a line of the type "ask".
struct Ask {
    std::uint64_t id = 0;  ///< the agent's result has the same id
    Request request = Request::Status;
    /// Time limit, from when the agent reads the line; at most 10 min.
    std::chrono::milliseconds limit{0};
};

using HostMessage = std::variant<Welcome, Ask>;

/// Parses a line, given without its newline. None for an invalid or unknown line, which the agent
/// does not answer.
std::optional<HostMessage> parse_host_line(std::string_view line);

}  // namespace vgpu::agent
