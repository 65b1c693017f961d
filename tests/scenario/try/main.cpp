// SPDX-License-Identifier: MIT
//
// vgpu-try [COMMAND…]: vgpud with one small software GPU on a bus of its own, for as long as a
// shell or COMMAND runs. tests/try, which starts vgpu-try, says more. However vgpu-try ends, it
// ends its processes and removes its directory. If a part does not start, one file with all logs
// stays.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "tests/scenario/try/session.h"
#include "tests/support/stack/host.h"
#include "tests/support/stack/temp_dir.h"

namespace vgpu::trial {
namespace {

namespace fs = std::filesystem;

constexpr int kNotStarted = 125, kBySignal = 128;
constexpr const char* kGreeting =
    "A software GPU is yours in this shell. Type first: vgpuctl list   (the tour: "
    "docs/tutorial.md)\n"
    "To leave: exit, or Ctrl-D. Then everything that was started here ends and is removed.\n";

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// TMPDIR, if sockets below it have addresses that are short and need no quotes; else /tmp.
std::string parent_of_private_dir() {
    constexpr std::size_t kLongest = 60;
    constexpr const char* kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/.";
    const std::string wanted = variable("TMPDIR");
    const bool fits = wanted.starts_with('/') && wanted.size() <= kLongest &&
                      wanted.find_first_not_of(kPlain) == std::string::npos &&
                      fs::is_directory(wanted) && ::access(wanted.c_str(), W_OK | X_OK) == 0;
    return fits ? wanted : "/tmp";
}

/// Copies all logs into one file beside the private directory; returns its name.
std::string keep_logs(const test::TempDir& dir) {
    std::string name = dir.path().parent_path() / "vgpu-try-XXXXXX.log";
    const int fd = ::mkstemps(name.data(), static_cast<int>(std::strlen(".log")));
    if (fd < 0) return "nowhere: " + std::string(std::strerror(errno));
    ::close(fd);
    std::ofstream out(name);
    for (const char* log : {"bus.log", "vgpud.log", "run/gpu0/softgpu.log", "run/gpu0/vgpu-pf.log"})
        if (std::ifstream in(dir.file(log)); in && in.peek() != EOF)
            out << "== " << log << "\n" << in.rdbuf() << "\n";
    return name;
}

test::HostOptions small_gpu() {
    // one CPU stays free for the PF core and vgpud
    return {.threads = std::max(1u, std::thread::hardware_concurrency() - 1)};
}

int run(const test::TempDir& dir, const std::string& outer_tmpdir,
        const std::vector<std::string>& command, const sigset_t& signals) {
    std::optional<test::Host> host;
    std::string condition;
    try {
        host.emplace(dir, small_gpu());
    } catch (const std::exception& error) {
        condition = error.what();
    }
    if (const int number = pending_end(signals); number != 0) return kBySignal + number;
    if (!host) {
        fmt::print(stderr, "tests/try: {}\ntests/try: not started; all logs are in {}\n", condition,
                   keep_logs(dir));
        return kNotStarted;
    }
    Session session({.private_dir = dir.path(),
                     .bus_address = host->bus_address(),
                     .outer_tmpdir = outer_tmpdir},
                    command);
    if (session.is_interactive()) fmt::print("{}", kGreeting);
    std::fflush(stdout);
    return session.run(signals);
}

}  // namespace
}  // namespace vgpu::trial

int main(int argc, char** argv) {
    using namespace vgpu;
    const sigset_t signals = trial::block_ending_signals();
    try {
        const std::string outer_tmpdir = trial::variable("TMPDIR");
        ::setenv("TMPDIR", trial::parent_of_private_dir().c_str(), 1);
        const test::TempDir dir;
        return trial::run(dir, outer_tmpdir, {argv + 1, argv + argc}, signals);
    } catch (const test::VfError& error) {
        fmt::print(stderr, "tests/try: {}: {}\n", error.what(), std::strerror(error.code()));
    } catch (const std::exception& error) {
        fmt::print(stderr, "tests/try: {}\n", error.what());
    }
    return trial::kNotStarted;
}
