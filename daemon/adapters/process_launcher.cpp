// SPDX-License-Identifier: MIT
#include "daemon/adapters/process_launcher.h"

#include "daemon/adapters/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

namespace vgpu::daemon::adapters {

namespace {

constexpr int kExecFailed = 127;
/// What the service manager says to vgpud alone: a child that answered would speak in its name.
constexpr std::array<std::string_view, 3> kNotForChildren{
    "NOTIFY_SOCKET=", "WATCHDOG_PID=", "WATCHDOG_USEC="};

std::string note_of(const ProcessSpec& spec) {
    return fmt::format("{}/{}.pid", spec.directory, spec.label);
}

/// State letter and start time of a process, fields 3 and 22 of /proc/PID/stat.
struct ProcessFacts {
    char state = 'X';
    std::uint64_t start_time = 0;
};

std::optional<ProcessFacts> facts_of(int pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    if (!std::getline(file, line)) return {};
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream fields(line.substr(name_end + 1));
    constexpr int kFieldsToStartTime = 18;
    ProcessFacts facts;
    std::string skipped;
    fields >> facts.state;
    for (int i = 0; i < kFieldsToStartTime; ++i) fields >> skipped;
    fields >> facts.start_time;
    return fields ? std::optional(facts) : std::nullopt;
}

bool is_for_children(std::string_view variable) {
    return std::none_of(kNotForChildren.begin(), kNotForChildren.end(),
                        [&](std::string_view name) { return variable.starts_with(name); });
}

/// Ends with a null pointer, as exec wants it.
std::vector<char*> environment_of_children() {
    std::vector<char*> environment;
    for (char** at = ::environ; at != nullptr && *at != nullptr; ++at)
        if (is_for_children(*at)) environment.push_back(*at);
    environment.push_back(nullptr);
    return environment;
}

/// What a child gets.
struct Inheritance {
    char* const* command;
    char* const* environment;
    int input;
    int output;
};

/// Runs in the child: only async-signal-safe calls between fork and exec.
/// The gate is a pipe: it opens when the note is on disk, and ends the child when vgpud dies before
/// that (end of file).
[[noreturn]] void become(const Inheritance& given, int gate) {
    char go = 0;
    if (::read(gate, &go, 1) != 1) ::_exit(kExecFailed);
    ::setsid();
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(given.input, STDIN_FILENO);
    ::dup2(given.output, STDOUT_FILENO);
    ::dup2(given.output, STDERR_FILENO);
    // Also what a library has opened without O_CLOEXEC.
    ::close_range(STDERR_FILENO + 1, ~0u, 0);
    ::execvpe(given.command[0], given.command, given.environment);
    ::_exit(kExecFailed);
}

Result<> write_note(const ProcessSpec& spec, const ProcessId& id) {
    const std::string path = note_of(spec);
    std::ofstream file(path, std::ios::trunc);
    file << id.pid << ' ' << id.start_time << '\n';
    file.close();
    if (!file) return fail_errno(ErrorId::System, errno, fmt::format("cannot write {}", path));
    return {};
}

}  // namespace

Result<ProcessId> ProcessLauncher::start(const ProcessSpec& spec) {
    constexpr mode_t kLogMode = 0640;
    const std::string log = fmt::format("{}/{}.log", spec.directory, spec.label);
    const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const UniqueFd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kLogMode));
    if (!input.is_open() || !output.is_open())
        return fail_errno(ErrorId::System, errno, fmt::format("cannot open {}", log));
    std::array<int, 2> pipe_ends{};
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
        return fail_errno(ErrorId::System, errno, "cannot make a pipe");
    const UniqueFd gate(pipe_ends[0]);
    UniqueFd opener(pipe_ends[1]);
    std::vector<std::string> words = spec.command;
    std::vector<char*> command;
    for (std::string& word : words) command.push_back(word.data());
    command.push_back(nullptr);
    const std::vector<char*> environment = environment_of_children();

    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno(ErrorId::System, errno, "cannot fork");
    if (pid == 0) {
        // The child's copy of the writing end: with it open, the gate would never see vgpud's end.
        opener.reset();
        become({.command = command.data(),
                .environment = environment.data(),
                .input = input.get(),
                .output = output.get()},
               gate.get());
    }
    const auto facts = facts_of(pid);
    const ProcessId id{.pid = pid, .start_time = facts ? facts->start_time : 0};
    TRY_VOID(write_note(spec, id));
    const char go = 1;
    if (::write(opener.get(), &go, 1) != 1)
        return fail_errno(ErrorId::System, errno, fmt::format("cannot start {}", spec.label));
    return id;
}

std::optional<ProcessId> ProcessLauncher::find(const ProcessSpec& spec) {
    std::ifstream file(note_of(spec));
    ProcessId id;
    if (!(file >> id.pid >> id.start_time) || id.pid <= 1) return {};
    return is_alive(id) ? std::optional(id) : std::nullopt;
}

bool ProcessLauncher::is_alive(const ProcessId& id) {
    int status = 0;
    // Our own child stays a zombie until it is waited for, and a zombie keeps its pid.
    if (::waitpid(id.pid, &status, WNOHANG) == id.pid) return false;
    const auto facts = facts_of(id.pid);
    return facts && facts->state != 'Z' && facts->start_time == id.start_time;
}

bool ProcessLauncher::socket_exists(const std::string& path) {
    struct stat file {};
    return ::stat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

void ProcessLauncher::remove_stale(const std::string& path) {
    if (socket_exists(path)) ::unlink(path.c_str());
}

}  // namespace vgpu::daemon::adapters
