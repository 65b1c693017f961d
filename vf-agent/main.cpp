// SPDX-License-Identifier: MIT
//
// vgpu-agent: the command line, and the loop that connects Port, Session and LinuxGuest. On SIGTERM
// and SIGINT, the agent resumes the processes that it has stopped, and ends. SIGHUP only causes a
// log line.
#include "pf-driver/process/log_limit.h"
#include "pf-driver/process/socket_path.h"
#include "vf-agent/hsa_check.h"
#include "vf-agent/linux_guest.h"
#include "vf-agent/modprobe.h"
#include "vf-agent/port.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace vgpu::agent {
namespace {

/// Time between attempts to open a missing port, and between checks whether the host has connected.
constexpr Nanoseconds kRetry = std::chrono::milliseconds(500);
/// Limit of bytes that one iteration of the loop reads, so that a host that never stops sending
/// cannot delay signals and tasks.
constexpr std::size_t kMaxPerIteration = 4 * kMaxLine;

/// The options. The exit status is 0, 1 for a failed self-test, or CLI11's for wrong options.
struct CommandLine {
    std::string port;
    std::string pci_address;
    std::string modprobe_release;
    bool is_self_test = false;
    bool is_thaw = false;
};

Nanoseconds now() {
    return std::chrono::steady_clock::now().time_since_epoch();
}

int catch_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
    ::signal(SIGPIPE, SIG_IGN);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    return ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// The agent's log, with a rate limit (pf-driver/process/log_limit.h), so that the host cannot
/// flood the log. All lines have the level 0.
class Log {
public:
    void write(const std::string& line) {
        const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now());
        std::uint32_t left_out = 0;
        if (!vgpu_log_admit(&limit_, static_cast<std::uint64_t>(now_ms.count()), 0, line.data(),
                            line.size(), &left_out))
            return;
        const std::string more =
            left_out == 0 ? "" : fmt::format(" ({} more lines about this were left out)", left_out);
        fmt::print(stderr, "vgpu-agent: {}{}\n", line, more);
    }

private:
    vgpu_log_limit limit_{};
};

/// Opens the port, and informs the session when the host connects, sends or disconnects.
class Agent {
public:
    explicit Agent(const CommandLine& command_line)
        : command_line_(command_line), guest_(command_line.pci_address), session_(guest_, port_) {
        static_cast<void>(guest_.thaw());  // a killed earlier agent may have left processes frozen
    }
    ~Agent() { session_.on_host_gone(); }

    void serve(int signals) {
        while (!wait(signals) || !is_end(signals)) {
            if (!port_.is_open()) open();
            if (port_.is_open()) handle_input();
            session_.step(now());
        }
    }

private:
    /// Reads one signal. True if the signal ends the agent.
    bool is_end(int signals) {
        signalfd_siginfo signal{};
        if (::read(signals, &signal, sizeof signal) != sizeof signal) return false;
        if (signal.ssi_signo != SIGHUP) return true;
        log_.write("SIGHUP ignored: there is no configuration");
        return false;
    }

    void open() {
        const std::string path = command_line_.port.empty() ? find_port() : command_line_.port;
        if (!path.empty() && port_.open(path)) {
            logged_error_.clear();
            return;
        }
        const std::string words =
            path.empty() ? fmt::format("there is no port {}", kPortName) : open_error(path, errno);
        // logs the same error only once in a row, because open() is called twice per second
        if (words != logged_error_) log_.write(words + "; waiting for it");
        logged_error_ = words;
    }

    static std::string open_error(const std::string& path, int code) {
        if (code != ENAMETOOLONG) return fmt::format("{}: {}", path, std::strerror(code));
        std::array<char, 512> words{};
        vgpu_socket_path_error(path.c_str(), words.data(), words.size());
        return words.data();
    }

    void handle_input() {
        std::string bytes;
        Port::ReadResult result = Port::ReadResult::Bytes;
        while (result == Port::ReadResult::Bytes && bytes.size() < kMaxPerIteration)
            result = port_.read(bytes);
        const bool is_connected =
            result == Port::ReadResult::Bytes || result == Port::ReadResult::Nothing;
        if (is_connected && !has_host_) {
            log_.write("the host is connected");
            session_.on_host(now());
        }
        if (has_host_ || is_connected) session_.on_bytes(bytes, now());
        if (!is_connected && has_host_) {
            log_.write("the host is disconnected");
            session_.on_host_gone();
        }
        has_host_ = is_connected;
        if (result == Port::ReadResult::Lost) port_.close();
    }

    /// Waits until there is a signal, the port is ready, or the session's next step is due, at most
    /// 60 s, or kRetry without a host. True if there is a signal.
    [[nodiscard]] bool wait(int signals) const {
        // without a host, poll() would always report the port as ready
        const int fd = has_host_ ? port_.fd() : -1;
        const int events = POLLIN | (session_.needs_write() ? POLLOUT : 0);
        std::array<pollfd, 2> waited{
            pollfd{.fd = signals, .events = POLLIN, .revents = 0},
            pollfd{.fd = fd, .events = static_cast<short>(events), .revents = 0}};
        Nanoseconds limit = has_host_ ? Nanoseconds(std::chrono::seconds(60)) : kRetry;
        if (const auto next = session_.next_step())
            limit = std::clamp(*next - now(), Nanoseconds{0}, limit);
        const auto limit_ms = std::chrono::ceil<std::chrono::milliseconds>(limit);
        ::poll(waited.data(), waited.size(), static_cast<int>(limit_ms.count()));
        return waited[0].revents != 0;
    }

    const CommandLine& command_line_;
    Log log_;
    Port port_;
    LinuxGuest guest_;
    Session session_;
    bool has_host_ = false;
    std::string logged_error_;  ///< last error of open() in the log
};

int self_test() {
    const Outcome outcome = check_hsa();
    fmt::print("{}\n", outcome.text);
    std::fflush(stdout);
    return outcome.is_ok ? kSelfTestPassed : kSelfTestFailed;
}

int main_of(int argc, char** argv) {
    CommandLine line;
    CLI::App app("vgpu-agent reports the VF in this guest to the host.", "vgpu-agent");
    app.add_option(
        "--port", line.port,
        fmt::format("device or socket for the connection to the host (default: {})", kPortName));
    app.add_option("--pci", line.pci_address, "the VF, such as 0000:00:05.0");
    app.add_option("--modprobe-options", line.modprobe_release,
                   "print the line for modprobe.d that this Linux release needs (default: the "
                   "running one) and exit")
        ->expected(0, 1);
    app.add_flag("--self-test", line.is_self_test, "test the VF, print the result, and exit");
    app.add_flag("--thaw", line.is_thaw,
                 "resume the processes that a killed agent had stopped, and exit");
    app.set_version_flag("--version", "vgpu-agent " VGPU_VERSION);
    CLI11_PARSE(app, argc, argv);
    if (app.count("--modprobe-options") > 0) {
        const bool is_given = !line.modprobe_release.empty();
        fmt::print("{}",
                   modprobe_line(is_given ? line.modprobe_release : Facts().kernel_release()));
        return 0;
    }
    if (line.is_self_test) return self_test();
    if (line.is_thaw) {
        Freezer().thaw();
        return 0;
    }
    // before threads exist, because threads inherit the signal mask
    const int signals = catch_signals();
    Agent agent(line);
    agent.serve(signals);
    return 0;
}

}  // namespace
}  // namespace vgpu::agent

int main(int argc, char** argv) {
    return vgpu::agent::main_of(argc, argv);
}
