// SPDX-License-Identifier: MIT
//
// Record: when each VF was in the engine, from the device's run log alone; what was promised is
// checked against it by arithmetic that shares nothing with the core.
#pragma once

#include "tests/unit/core/rig.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace vgpu::test {

struct Interval {
    std::uint64_t start, end;
    [[nodiscard]] std::uint64_t ns() const { return end - start; }
};

/// Every run of every VF, as the device logs it.
class Record {
public:
    explicit Record(Rig& rig) : gpu_(rig.gpu), began_(rig.gpu.now()) {
        rig.gpu.on_run = [this](const vgpu_hw_run_log_entry& entry) {
            runs_[entry.vf].push_back({entry.run_start_ns, entry.run_end_ns});
        };
    }
    ~Record() { gpu_.on_run = nullptr; }
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;

    [[nodiscard]] const std::vector<Interval>& of(std::uint32_t vf) const { return runs_[vf]; }

    /// Service of `vf` in [from, to).
    [[nodiscard]] std::uint64_t service(std::uint32_t vf, std::uint64_t from,
                                        std::uint64_t to) const {
        std::uint64_t sum = 0;
        for (const Interval& run : runs_[vf]) {
            const std::uint64_t start = std::max(run.start, from), end = std::min(run.end, to);
            if (end > start) sum += end - start;
        }
        return sum;
    }
    [[nodiscard]] std::uint64_t service(std::uint32_t vf) const {
        return service(vf, began_, kEndless);
    }
    [[nodiscard]] double share(std::uint32_t vf) const {
        std::uint64_t sum = 0;
        for (std::uint32_t other = 1; other < runs_.size(); ++other) sum += service(other);
        return static_cast<double>(service(vf)) / static_cast<double>(sum);
    }

    /// The most that any window held beyond rate * window; windows begin and end with runs.
    [[nodiscard]] double max_beyond(std::uint32_t vf, std::uint32_t rate_ppm) const {
        const double rate = rate_ppm / 1e6;
        double min = 1e18, max = -1e18, sum = 0;
        for (const Interval& run : runs_[vf]) {
            min = std::min(min, sum - rate * static_cast<double>(run.start));
            sum += static_cast<double>(run.ns());
            max = std::max(max, sum - rate * static_cast<double>(run.end) - min);
        }
        return max;
    }

private:
    ModelGpu& gpu_;
    std::uint64_t began_;
    std::array<std::vector<Interval>, VGPU_PF_MAX_VFS + 1> runs_;
};

}  // namespace vgpu::test
