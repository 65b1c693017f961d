// SPDX-License-Identifier: MIT
#include "daemon/exporter/reader.h"

#include <utility>

#include "vgpu1/manager_proxy.h"

namespace vgpu::exporter {

namespace {

constexpr const char* kManager = org::vgpu1::Manager_proxy::INTERFACE_NAME;
constexpr const char* kPath = "/org/vgpu1";
/// Maximum age of the values. It is longer than 1 s, the interval at which vgpud reads all GPUs, so
/// that a scrape causes no additional read.
constexpr std::uint32_t kMaxAgeMs = 1500;

/// Options of ListGpus and ListVfs that request the properties `names`.
Dict options_for(const std::string& names) {
    return {{"properties", sdbus::Variant{names}}, {"max_age_ms", sdbus::Variant{kMaxAgeMs}}};
}

template <typename Answer>
Answer answer_of(sdbus::IProxy& manager, const std::string& method, const Dict& options) {
    Answer answer;
    manager.callMethod(method).onInterface(kManager).withArguments(options).storeResultsTo(answer);
    return answer;
}

}  // namespace

Readings read_vgpud(sdbus::IConnection& bus, const std::string& destination) {
    const auto manager = sdbus::createProxy(bus, destination, kPath);
    Readings readings{.manager = all_properties(bus, destination, kPath, kManager)};
    // vgpud numbers events from 1, so the number of the newest event is the number of all events.
    readings.manager["Events"] = std::uint64_t{0};
    const Dict newest{{"limit", sdbus::Variant{std::uint32_t{1}}}};
    for (const Dict& event : answer_of<std::vector<Dict>>(*manager, "RecentEvents", newest))
        readings.manager["Events"] = properties_of(event)["seq"];
    readings.gpus = properties_of(
        answer_of<std::vector<Dict>>(*manager, "ListGpus", options_for(properties_of_gpus())));
    readings.vfs = rows_of(answer_of<Dict>(*manager, "ListVfs", options_for(properties_of_vfs())));
    return readings;
}

std::string owner_of_service(sdbus::IConnection& bus) {
    constexpr const char* kBus = "org.freedesktop.DBus";
    std::string owner;
    sdbus::createProxy(bus, kBus, "/org/freedesktop/DBus")
        ->callMethod("GetNameOwner")
        .onInterface(kBus)
        .withArguments(std::string(kService))
        .storeResultsTo(owner);
    return owner;
}

}  // namespace vgpu::exporter
