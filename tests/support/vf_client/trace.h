// SPDX-License-Identifier: MIT
//
// Trace: what the driver did to the device, in order: register accesses (direct and by RLCG), reads
// of BAR0 structures, mailbox messages, PSP commands, scheduler packets. Tests check the order of a
// boot with it; a failing test prints its tail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::test {

enum class TraceKind : std::uint8_t {
    Read,         ///< number: register; value read
    Write,        ///< number: register; value written
    RlcgWrite,    ///< number: register; value written through the scratch registers
    MailboxSend,  ///< number: event
    MailboxGot,   ///< number: event
    VramRead,     ///< number: VRAM offset; value: bytes
    PspCommand,   ///< number: command id; value: its main argument
    Packet,       ///< number: PM4 opcode; value: doorbell of the ring
    Doorbell,     ///< number: doorbell index; value rung
};

struct TraceEvent {
    TraceKind kind{};
    std::uint32_t number = 0;
    std::uint64_t value = 0;
    bool operator==(const TraceEvent&) const = default;
};

class Trace {
public:
    void add(TraceKind kind, std::uint32_t number, std::uint64_t value = 0) {
        if (is_on_) events_.push_back({kind, number, value});
    }
    void set_recording(bool on) { is_on_ = on; }
    [[nodiscard]] bool is_recording() const { return is_on_; }
    [[nodiscard]] const std::vector<TraceEvent>& events() const { return events_; }
    /// The last `count` events, one a line, registers by number.
    [[nodiscard]] std::string tail(std::size_t count) const;

private:
    std::vector<TraceEvent> events_;
    bool is_on_ = true;
};

[[nodiscard]] std::string to_string(const TraceEvent& event);

}  // namespace vgpu::test
