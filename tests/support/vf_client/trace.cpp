// SPDX-License-Identifier: MIT
#include "tests/support/vf_client/trace.h"

#include <fmt/format.h>

#include <array>

namespace vgpu::test {

std::string to_string(const TraceEvent& event) {
    static constexpr std::array<const char*, 9> kNames{
        "read", "write", "rlcg", "mail to", "mail from", "vram", "psp", "packet", "doorbell"};
    return fmt::format("{:<9} {:#07x} {:#x}", kNames.at(static_cast<std::size_t>(event.kind)),
                       event.number, event.value);
}

std::string Trace::tail(std::size_t count) const {
    std::string text;
    const auto first = events_.size() > count ? events_.size() - count : 0;
    for (auto i = first; i < events_.size(); ++i) text += to_string(events_[i]) + "\n";
    return text;
}

}  // namespace vgpu::test
