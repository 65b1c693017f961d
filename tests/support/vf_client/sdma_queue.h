// SPDX-License-Identifier: MIT
//
// SdmaQueue: an SDMA user queue as ROCr makes it, with 64-bit monotonic byte pointers. The run list
// maps it. copy() ends with an atomic decrement of a signal, a mailbox fence and a trap.
#pragma once

#include <cstdint>

#include "tests/support/vf_client/packets.h"
#include "tests/support/vf_client/signal.h"

namespace vgpu::test {

class Process;

class SdmaQueue {
public:
    SdmaQueue(Process& process, unsigned engine, std::uint32_t doorbell);
    ~SdmaQueue();

    void push(const Dwords& packets);
    /// Pushes packets, then those that ROCr sends to complete `done`.
    void push(const Dwords& packets, const Signal& done);
    void copy(std::uint64_t destination, std::uint64_t source, std::uint64_t bytes,
              const Signal& done);
    [[nodiscard]] Dwords map_packet() const;
    [[nodiscard]] std::uint64_t read_pointer() const;  ///< bytes
    [[nodiscard]] std::uint64_t write_pointer() const { return wptr_; }

private:
    static constexpr std::uint32_t kRingBytes = 1u << 16;

    Process& process_;
    unsigned engine_;
    std::uint32_t doorbell_;
    Buffer ring_, words_, mqd_;
    std::uint64_t wptr_ = 0;
};

}  // namespace vgpu::test
