// SPDX-License-Identifier: MIT
//
// vgpuctl: the operator's tool. app.cpp and the verbs do all the work.
#include "cli/app.h"
#include "cli/colour.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <iostream>

namespace {

std::size_t terminal_columns() {
    winsize size{};
    const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : vgpu::cli::kColumns;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
    const int status =
        vgpu::cli::run_cli(words, vgpu::cli::connect_service,
                           {.out = std::cout,
                            .err = std::cerr,
                            .is_terminal = is_terminal,
                            .uses_colour = vgpu::cli::may_use_colour(
                                is_terminal, std::getenv("NO_COLOR"), std::getenv("TERM")),
                            .columns = terminal_columns()});
    // die from SIGINT instead of exiting with 130, so that the shell also ends a loop over vgpuctl
    if (status == static_cast<int>(vgpu::cli::ExitCode::Interrupted)) std::raise(SIGINT);
    return status;
}
