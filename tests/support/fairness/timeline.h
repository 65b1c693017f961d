// SPDX-License-Identifier: MIT
//
// Timeline: an SVG picture that shows which VF ran when. It has one lane per VF, one box per run,
// and marks for events.
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
    std::map<std::uint32_t, std::string> lanes;  ///< VF -> label, in order of VFs
    std::vector<TimelineRun> runs;
    std::vector<TimelineMark> marks;
};

/// The text of the SVG file; times on its axis count from the first run.
[[nodiscard]] std::string to_svg(const Timeline& timeline);

}  // namespace vgpu::test
