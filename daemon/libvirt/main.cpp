// SPDX-License-Identifier: MIT
//
// vgpu-libvirt: prints the lines of a DomainWatch on standard output, which vgpud reads. Exits at
// the end of its standard input, so that it does not outlive vgpud.
#include "daemon/libvirt/domain_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

namespace vgpu::libvirt {
namespace {

constexpr std::chrono::milliseconds kInputCheckInterval{1000};

/// True at the end of standard input. vgpud holds the other end of this pipe and never writes to
/// it, so the end means that vgpud is gone.
bool is_input_over() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, 0) <= 0) return false;
    char byte = 0;
    return ::read(STDIN_FILENO, &byte, 1) <= 0;
}

int main_of(int argc, char** argv) {
    std::string uri = "qemu:///system";
    CLI::App app(
        "vgpu-libvirt reports libvirt's domains to vgpud, one JSON object per line; it ends when "
        "its standard input ends",
        "vgpu-libvirt");
    app.add_option("--connect", uri, "URI of the libvirt connection")->capture_default_str();
    app.set_version_flag("--version", fmt::format("vgpu-libvirt {}", VGPU_VERSION));
    CLI11_PARSE(app, argc, argv);
    ::signal(SIGPIPE, SIG_IGN);  // a failed write ends the loop below
    ::signal(SIGHUP, SIG_IGN);   // there is no configuration to reload
    bool is_output_open = true;
    DomainWatch watch(uri, [&is_output_open](const std::string& line) {
        is_output_open = is_output_open && std::puts(line.c_str()) >= 0 && std::fflush(stdout) == 0;
    });
    while (is_output_open && !is_input_over()) watch.iterate(kInputCheckInterval);
    return 0;
}

}  // namespace
}  // namespace vgpu::libvirt

int main(int argc, char** argv) {
    return vgpu::libvirt::main_of(argc, argv);
}
