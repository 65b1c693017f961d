// SPDX-License-Identifier: MIT
//
// Recordings of vgpuctl trace: a file of anybody's. Whatever comes: a refusal says where and why;
// what is accepted can be replayed, by a schedule that it may have brought into any state, and
// exported, and what is exported can be read.
#include "simulator/recording_export.h"
#include "simulator/scenario.h"

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using namespace vgpu::simulator;

constexpr std::size_t kFewWords = 2'000;

void require(bool is_true) {
    if (!is_true) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto recording = read_recording(std::string(data, data + size));
    if (!recording) {
        require(recording.error().starts_with("byte ") && recording.error().size() < kFewWords);
        return 0;
    }
    const Replay replayed = replay(*recording);
    require(replayed.different == 0 || !replayed.first_difference.empty());
    require(nlohmann::json::accept(chrome_trace(*recording)));
    require(svg_picture(*recording).ends_with("</svg>\n"));
    const auto scenario = parse_scenario(scenario_text(*recording));
    require(scenario || scenario.error().size() < 10 * kFewWords);
    return 0;
}
