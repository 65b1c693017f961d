// SPDX-License-Identifier: MIT
#include "cli/bus_call.h"

#include "text/whole_file.h"

#include <fmt/format.h>
#include <array>

namespace vgpu::cli {

namespace {

constexpr const char* kService = "org.vgpu1";
constexpr const char* kBus = "org.freedesktop.DBus";

/// True if `name` is an error name by which sd-bus or the bus reports a timeout.
bool is_timeout(const std::string& name) {
    constexpr std::array kNames{"org.freedesktop.DBus.Error.Timeout",
                                "org.freedesktop.DBus.Error.TimedOut",
                                "org.freedesktop.DBus.Error.NoReply"};
    return std::ranges::find(kNames, name) != kNames.end();
}

/// True if a signal such as SIGSTOP has stopped the process. In /proc/PID/stat, the state letter
/// follows the last ')', because the program's name, which may contain ')', is in parentheses.
bool is_frozen(std::uint32_t process) {
    const auto stat = text::whole_file(fmt::format("/proc/{}/stat", process));
    if (!stat) return false;
    const std::size_t name_end = stat->rfind(") ");
    return name_end != std::string::npos && stat->substr(name_end + 2, 1) == "T";
}

}  // namespace

std::chrono::milliseconds BusCall::duration_of(Limit limit) {
    constexpr std::array<int, 3> kSeconds{5, 30, 150};  // in the order of Limit
    return std::chrono::seconds(kSeconds.at(static_cast<std::size_t>(limit)));
}

/// Pings vgpud. The short limit of Limit::Read is enough, because the main loop of vgpud answers
/// the ping and never waits longer than 20 ms for GPUs. If the bus must first start vgpud, the
/// limit is kToStart.
void BusCall::ping() {
    constexpr std::chrono::seconds kToStart{25};
    limited(process_of_vgpud() ? duration_of(Limit::Read) : kToStart, [this] {
        sdbus::createProxy(bus_, kService, "/org/vgpu1")
            ->callMethod("Ping")
            .onInterface("org.freedesktop.DBus.Peer");
    });
}

std::optional<std::uint32_t> BusCall::process_of_vgpud() {
    try {
        std::uint32_t process = 0;
        sdbus::createProxy(bus_, kBus, "/org/freedesktop/DBus")
            ->callMethod("GetConnectionUnixProcessID")
            .onInterface(kBus)
            .withArguments(std::string(kService))
            .storeResultsTo(process);
        return process;
    } catch (const sdbus::Error&) {
        return {};
    }
}

void BusCall::fail(const sdbus::Error& error, std::chrono::milliseconds limit) {
    if (!is_timeout(error.getName())) throw ServiceError(error.getName(), error.getMessage());
    const auto process = process_of_vgpud();
    throw ServiceError(
        error.getName(),
        fmt::format("{} has not answered within {:g} s{}",
                    process ? fmt::format("process {} (vgpud)", *process) : "vgpud",
                    std::chrono::duration<double>(limit).count(),
                    process && is_frozen(*process) ? "; it is stopped (SIGSTOP)" : ""));
}

}  // namespace vgpu::cli
