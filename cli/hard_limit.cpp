// SPDX-License-Identifier: MIT
#include "cli/hard_limit.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>

namespace vgpu::cli {

namespace {

/// The line that on_alarm() writes, and the exit code. One static object holds them, because a
/// signal handler must not allocate memory.
struct FinalLine {
    std::array<char, 512> text{};
    std::size_t size = 0;
    int exit_code = 0;
};
FinalLine final_line;

/// Async-signal-safe.
extern "C" void on_alarm(int) {
    const ssize_t written = ::write(STDERR_FILENO, final_line.text.data(), final_line.size);
    ::_exit(written < 0 ? 1 : final_line.exit_code);
}

}  // namespace

HardLimit::HardLimit(std::chrono::seconds limit, const std::string& words, int exit_code) {
    const std::string line = words.substr(0, final_line.text.size() - 1) + "\n";
    std::copy(line.begin(), line.end(), final_line.text.begin());
    final_line.size = line.size();
    final_line.exit_code = exit_code;
    std::signal(SIGALRM, on_alarm);
    ::alarm(static_cast<unsigned>(limit.count()));
}

HardLimit::~HardLimit() {
    ::alarm(0);
    std::signal(SIGALRM, SIG_DFL);
}

}  // namespace vgpu::cli
