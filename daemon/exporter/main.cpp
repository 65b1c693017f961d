// SPDX-License-Identifier: MIT
//
// vgpu-exporter: options and the main loop. The program has no state to save, so a signal may end
// it at any time.
#include "daemon/adapters/system_clock.h"
#include "daemon/exporter/answers.h"
#include "daemon/exporter/listen.h"
#include "daemon/exporter/reader.h"
#include "daemon/exporter/server.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <cstdio>

namespace vgpu::exporter {
namespace {

using daemon::adapters::UniqueFd;

constexpr const char* kDefaultAddress = "127.0.0.1:9482";
/// Time limit of a D-Bus call. A scrape makes one call to the bus and four to vgpud, so these calls
/// take at most 10 s, which is the default timeout of Prometheus.
constexpr std::chrono::seconds kCallLimit{2};

/// Reads all values from vgpud. Connects each time, because the bus may have been restarted. Calls
/// vgpud by the unique name of its connection, because a call to org.vgpu1 would make the bus start
/// a stopped vgpud.
Readings readings_of(const std::string& bus_name) {
    try {
        const auto bus = open_bus(bus_name);
        bus->setMethodCallTimeout(std::chrono::microseconds(kCallLimit));
        return read_vgpud(*bus, owner_of_service(*bus));
    } catch (const sdbus::Error& error) {
        return {.problem = fmt::format("{}: {}", error.getName(), error.getMessage())};
    }
}

OrWhy<std::vector<UniqueFd>> listeners_of(std::vector<std::string> addresses) {
    auto listeners = passed_sockets();
    if (!listeners) return listeners;
    if (listeners->empty() && addresses.empty()) addresses.emplace_back(kDefaultAddress);
    for (const std::string& address : addresses) {
        auto listener = listen_at(address);
        if (!listener) return tl::make_unexpected("--listen: " + listener.error());
        fmt::print("vgpu-exporter: serving http://{}/metrics\n", address_of(listener->get()));
        listeners->push_back(*std::move(listener));
    }
    std::fflush(stdout);
    return listeners;
}

[[noreturn]] void serve(std::vector<UniqueFd> listeners, const std::string& bus_name) {
    const daemon::adapters::SystemClock clock;
    bool is_up = true;
    const auto ask = [&bus_name, &is_up] {
        Readings readings = readings_of(bus_name);
        if (is_up != readings.problem.empty())
            fmt::print(
                stderr, "vgpu-exporter: {}\n",
                is_up ? "vgpud does not answer: " + readings.problem : "vgpud answers again");
        is_up = readings.problem.empty();
        return readings;
    };
    Answers answers(ask, clock);
    const auto metrics = [&answers](MetricsFormat format) { return answers.response(format); };
    Server server(std::move(listeners), metrics, clock);
    for (;;) {
        daemon::adapters::PollSet poll_set;
        server.watch(poll_set);
        daemon::adapters::wait_for(poll_set, clock);
        server.dispatch(poll_set);
    }
}

int main_of(int argc, char** argv) {
    std::vector<std::string> addresses;
    std::string bus = "system";
    CLI::App app("vgpu-exporter serves the metrics of vgpud to Prometheus", "vgpu-exporter");
    app.add_option("--listen", addresses,
                   fmt::format("ADDRESS:PORT to serve /metrics at; may be repeated (default: the "
                               "sockets from systemd, else {})",
                               kDefaultAddress))
        ->type_name("ADDRESS:PORT");
    app.add_option("--bus", bus, "the bus of vgpud: system, session or a D-Bus address")
        ->capture_default_str();
    app.set_version_flag("--version", fmt::format("vgpu-exporter {}", VGPU_VERSION));
    CLI11_PARSE(app, argc, argv);
    auto listeners = listeners_of(addresses);
    if (!listeners) {
        fmt::print(stderr, "vgpu-exporter: {}\n", listeners.error());
        return 1;
    }
    serve(*std::move(listeners), bus);
}

}  // namespace
}  // namespace vgpu::exporter

int main(int argc, char** argv) {
    return vgpu::exporter::main_of(argc, argv);
}
