// SPDX-License-Identifier: MIT
//
// AqlQueue: an AQL user queue with everything the command processor reads: ring, amd_queue_t, MQD,
// EOP buffer, context save area, kernel arguments, scratch on demand. Packets are written body
// first, header last, then the doorbell is rung with the packet index.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "pf-driver/hw/aql.h"
#include "tests/support/vf_client/packets.h"
#include "tests/support/vf_client/signal.h"

namespace vgpu::test {

class Process;

struct AqlQueueOptions {
    std::uint32_t packets = 256;  ///< a power of two
};

/// A kernel in memory of a process.
struct Kernel {
    std::uint64_t descriptor = 0;  ///< address of the kernel descriptor
    std::uint32_t kernarg_bytes = 0;
    std::uint32_t group_bytes = 0;
    std::uint32_t private_bytes = 0;
};

struct Grid {
    std::array<std::uint32_t, 3> grid{1, 1, 1};   ///< work-items
    std::array<std::uint16_t, 3> group{1, 1, 1};  ///< work-items
    std::uint32_t dynamic_group_bytes = 0;        ///< LDS besides the kernel's own
};

/// Kernel arguments, each aligned to its size.
using KernelArgs = std::vector<std::byte>;
template <typename T> void append_argument(KernelArgs& out, const T& value) {
    const auto at = (out.size() + sizeof value - 1) / sizeof value * sizeof value;
    out.resize(at + sizeof value);
    std::memcpy(out.data() + at, &value, sizeof value);
}
template <typename... T> [[nodiscard]] KernelArgs args(const T&... values) {
    KernelArgs out;
    (append_argument(out, values), ...);
    return out;
}

using AqlPacket = std::array<std::byte, AQL_PACKET_BYTES>;

class AqlQueue {
public:
    AqlQueue(Process& process, std::uint32_t doorbell, AqlQueueOptions options);
    ~AqlQueue();

    /// Kernel dispatch with the barrier bit: packets of this queue run one after the other.
    void dispatch(const Kernel& kernel, const Grid& grid, const KernelArgs& arguments,
                  const std::optional<Signal>& completion = {});
    void barrier_and(std::span<const Signal> dependencies, const std::optional<Signal>& completion);
    void invalidate_instruction_cache();

    /// Writes any 64 bytes and rings; the first two bytes are the header and are written last.
    void submit(const AqlPacket& packet);
    /// Writes a packet without ringing; ring() then rings for all written packets.
    void write(const AqlPacket& packet);
    void ring();
    /// Writes any value to the doorbell.
    void ring_with(std::uint64_t value);

    [[nodiscard]] std::uint64_t write_index() const { return write_index_; }
    [[nodiscard]] std::uint64_t read_index() const;
    [[nodiscard]] std::uint64_t error() const;
    [[nodiscard]] std::uint32_t doorbell() const { return doorbell_; }
    [[nodiscard]] const Buffer& mqd() const { return mqd_; }
    [[nodiscard]] const Buffer& queue_memory() const { return queue_; }
    [[nodiscard]] const Signal& inactive_signal() const { return inactive_; }
    [[nodiscard]] Dwords map_packet() const;

    /// Answers the CP's request for scratch, if there is one.
    void serve_scratch();
    [[nodiscard]] unsigned scratch_requests() const { return scratch_requests_; }

private:
    static constexpr std::uint64_t kKernargSlot = 256;

    void make_memory(std::uint32_t control_stack_bytes, std::uint32_t save_bytes);
    void give_scratch(std::uint32_t bytes_per_lane);

    Process& process_;
    std::uint32_t doorbell_;
    std::uint32_t packets_;
    Buffer ring_, queue_, eop_, save_, mqd_, kernargs_;
    std::optional<Buffer> scratch_;
    Signal inactive_;
    std::uint64_t write_index_ = 0;
    std::uint64_t seen_code_ = 0;
    unsigned scratch_requests_ = 0;
};

}  // namespace vgpu::test
