// SPDX-License-Identifier: MIT
//
// Perf: the interface to counters of the kernel's PMUs (perf_event_open(2)), which count for all
// processes together. HostPerf uses the kernel; unit tests have counters in memory. Only the GPU's
// thread calls a Perf.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>

namespace vgpu::daemon::xe {

class Perf {
public:
    virtual ~Perf() = default;

    /// Opens the counter `config` of the PMU of type `type` on the CPU `cpu`. Returns the counter's
    /// descriptor, for read() and close(), or an errno.
    virtual tl::expected<int, int> open(std::uint32_t type, std::uint64_t config, int cpu) = 0;
    /// The counter's value, or an errno.
    virtual tl::expected<std::uint64_t, int> read(int counter) = 0;
    virtual void close(int counter) = 0;
};

class HostPerf final : public Perf {
public:
    tl::expected<int, int> open(std::uint32_t type, std::uint64_t config, int cpu) override;
    tl::expected<std::uint64_t, int> read(int counter) override;
    void close(int counter) override;
};

}  // namespace vgpu::daemon::xe
