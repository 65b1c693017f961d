// SPDX-License-Identifier: MIT
//
// FakePerf: counters in memory. A test sets the values by config.
#pragma once

#include "daemon/backend/xe/perf.h"

#include <cerrno>
#include <map>

namespace vgpu::daemon::testing {

/// What outlives the FakePerf that a backend owns.
struct PerfWorld {
    std::map<std::uint64_t, std::uint64_t> values;  ///< by config; other counters do not exist
    std::map<int, std::uint64_t> open;              ///< configs by descriptor
    int open_error = 0;                             ///< errno of every open; 0: none
    int read_error = 0;
};

class FakePerf final : public xe::Perf {
public:
    static constexpr std::uint32_t kType = 33;

    explicit FakePerf(PerfWorld& world) : world_(world) {}

    tl::expected<int, int> open(std::uint32_t type, std::uint64_t config, int cpu) override {
        if (world_.open_error != 0) return tl::make_unexpected(world_.open_error);
        if (type != kType || cpu != 0 || !world_.values.contains(config))
            return tl::make_unexpected(ENOENT);
        world_.open[++last_] = config;
        return last_;
    }
    tl::expected<std::uint64_t, int> read(int counter) override {
        if (world_.read_error != 0) return tl::make_unexpected(world_.read_error);
        return world_.values.at(world_.open.at(counter));
    }
    void close(int counter) override { world_.open.erase(counter); }

private:
    PerfWorld& world_;
    int last_ = 100;
};

}  // namespace vgpu::daemon::testing
