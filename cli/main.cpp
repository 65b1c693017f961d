// SPDX-License-Identifier: MIT
//
// vgpuctl: the operator's tool. All work is in app.cpp and the verbs.
#include "cli/app.h"
#include "cli/colour.h"

#include <unistd.h>
#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
    return vgpu::cli::run_cli(words, vgpu::cli::connect_service,
                              {.out = std::cout,
                               .err = std::cerr,
                               .is_terminal = is_terminal,
                               .uses_colour = vgpu::cli::wants_colour(
                                   is_terminal, std::getenv("NO_COLOR"), std::getenv("TERM"))});
}
