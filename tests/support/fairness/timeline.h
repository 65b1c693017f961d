// SPDX-License-Identifier: MIT
//
// Timeline: a picture (SVG) of who ran when: one lane per VF, one box per run, marks for events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace vgpu::test {

struct TimelineRun {
    std::uint32_t vf = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};

struct TimelineMark {
    std::int64_t time_ns = 0;
    std::string text;
};

struct Timeline {
    std::string title;
    std::map<std::uint32_t, std::string> lanes;  ///< VF -> label, in order
    std::vector<TimelineRun> runs;
    std::vector<TimelineMark> marks;
};

/// The whole file; times count from the first run.
[[nodiscard]] std::string to_svg(const Timeline& timeline);

}  // namespace vgpu::test
