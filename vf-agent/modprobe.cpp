// SPDX-License-Identifier: MIT
#include "vf-agent/modprobe.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <tuple>

namespace vgpu::agent {

namespace {

struct Version {
    unsigned major = 0, minor = 0;
};

struct Row {
    Version version;
    std::string_view options;
    std::string_view why;
};

// Bit N of ip_block_mask enables block N (from 0) of amdgpu's list of IP blocks. The order of this
// list depends on the release, so each tested release that requires a mask has its own row.
constexpr std::array kRows{
    Row{{6, 12}, "ip_block_mask=0xdf", "with UVD, amdgpu follows a null pointer on a Vega10 VF"}};

Version parse(std::string_view release) {
    Version version;
    const char* end = release.data() + release.size();
    const auto major = std::from_chars(release.data(), end, version.major);
    if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return {};
    std::from_chars(major.ptr + 1, end, version.minor);
    return version;
}

}  // namespace

std::string modprobe_line(std::string_view release) {
    const Version version = parse(release);
    const std::string name = fmt::format("Linux {}.{}", version.major, version.minor);
    for (const Row& row : kRows)
        if (std::tie(row.version.major, row.version.minor) ==
            std::tie(version.major, version.minor))
            return fmt::format("# {}: {}\noptions amdgpu {}\n", name, row.why, row.options);
    return fmt::format("# {}: amdgpu is not known to need an option on a VF\n", name);
}

}  // namespace vgpu::agent
