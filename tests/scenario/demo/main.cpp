// SPDX-License-Identifier: MIT
//
// vgpu-demo: one software GPU shared between four VFs by vgpud, each VF driven by a guest process
// that runs real gfx900 programs. Shows shares, isolation and recovery, and reports whether all
// checks passed. tests/demo starts it. With --guest, the program is one of the guests.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "tests/scenario/demo/guest.h"
#include "tests/scenario/demo/observe.h"
#include "tests/scenario/demo/show.h"

int main(int argc, char** argv) {
    using namespace vgpu::demo;
    ShowOptions options;
    options.self = std::filesystem::read_symlink("/proc/self/exe");
    // one CPU stays free for guests, scheduler and PF core
    options.host.threads = std::max(1u, std::thread::hardware_concurrency() - 1);
    std::string guest_socket;
    int report = -1;
    ObserveOptions observed;
    std::vector<std::uint64_t> weights;
    CLI::App app{"shares one software GPU between four VFs and shows what they got"};
    app.add_option("--quanta", options.quanta, "quanta of the smallest VF before a verdict");
    app.add_option("--quantum-us", options.host.quantum_us, "time slice");
    app.add_option("--threads", options.host.threads, "worker threads of the GPU");
    app.add_option("--away-ms", options.away_ms,
                   "least time without vgpud, in which shares are judged");
    app.add_option("--timeline", options.timeline, "SVG file to write");
    app.add_option("--runs", options.runs, "CSV file to write: every run of the measured time");
    app.add_option("--guest", guest_socket)->group("");
    app.add_option("--report", report)->group("");
    app.add_option("--observe", observed.uapi_socket,
                   "only show who receives what: uapi socket of a running vgpu-pf");
    app.add_option("--weights", weights, "with --observe: weights of VF1, VF2 and so on");
    CLI11_PARSE(app, argc, argv);
    if (!guest_socket.empty()) return run_guest(guest_socket, SharedReport(report));
    try {
        observed.quantum_us = options.host.quantum_us;
        for (std::uint32_t vf = 1; const std::uint64_t weight : weights)
            observed.weights[vf++] = weight;
        observed.quanta = options.quanta;
        observed.timeline = options.timeline;
        const auto failed = observed.uapi_socket.empty() ? Show(options).run() : observe(observed);
        fmt::print("\n{}\n",
                   failed == 0 ? "everything held" : fmt::format("{} claims did not hold", failed));
        return failed == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "\nthe demo broke off: {}\n", error.what());
        return 1;
    }
}
