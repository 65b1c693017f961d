// SPDX-License-Identifier: MIT
//
// Fuzzes recordings of vgpuctl trace, which may come from anybody. For any file, an error says
// where and why. A recording that is read can be replayed and exported, and the exports are valid.
// No text has commands for a terminal.
#include "daemon/simulator/recording_export.h"
#include "daemon/simulator/scenario.h"
#include "tests/support/hostile_recording.h"

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using namespace vgpu::simulator;
using vgpu::test::is_harmless;

constexpr std::size_t kFewWords = 2'000;

void require(bool is_true) {
    if (!is_true) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto recording = read_recording(std::string(data, data + size));
    if (!recording) {
        require(recording.error().starts_with("byte ") && recording.error().size() < kFewWords);
        require(is_harmless(recording.error()));
        return 0;
    }
    const Replay replayed = replay(*recording);
    require(replayed.different == 0 || !replayed.first_difference.empty());
    require(is_harmless(recording->gpu) && is_harmless(recording->vgpud));
    const std::string trace = chrome_trace(*recording), picture = svg_picture(*recording);
    require(nlohmann::json::accept(trace) && is_harmless(trace));
    require(picture.ends_with("</svg>\n") && is_harmless(picture));
    const std::string document = scenario_text(*recording);
    const auto scenario = parse_scenario(document);
    require(is_harmless(document));
    require(scenario || scenario.error().size() < 10 * kFewWords);
    return 0;
}
