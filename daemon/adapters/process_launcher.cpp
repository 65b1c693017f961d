// SPDX-License-Identifier: MIT
#include "daemon/adapters/process_launcher.h"

#include "daemon/adapters/owner_probe.h"
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
#include <filesystem>
#include <fstream>
#include <string_view>

namespace vgpu::daemon::adapters {

namespace {

constexpr int kExecFailed = 127;
/// Variables for vgpud only: a child with them could report to systemd in vgpud's name.
constexpr std::array<std::string_view, 3> kNotForChildren{
    "NOTIFY_SOCKET=", "WATCHDOG_PID=", "WATCHDOG_USEC="};

std::string record_path(const ProcessSpec& spec) {
    return fmt::format("{}/{}.pid", spec.directory, spec.label);
}

bool is_for_children(std::string_view variable) {
    return std::none_of(kNotForChildren.begin(), kNotForChildren.end(),
                        [&](std::string_view name) { return variable.starts_with(name); });
}

/// The environment of children, with a null pointer at the end for exec.
std::vector<char*> environment_of_children() {
    std::vector<char*> environment;
    for (char** at = ::environ; at != nullptr && *at != nullptr; ++at)
        if (is_for_children(*at)) environment.push_back(*at);
    environment.push_back(nullptr);
    return environment;
}

/// Resources of the child. A failed exec writes its errno to `failure`; a successful exec closes
/// it.
struct Inheritance {
    char* const* command;
    char* const* environment;
    int input;
    int output;
    int failure;
};

/// Runs in the child, so it makes only async-signal-safe calls. `gate`: vgpud writes a byte once
/// the record is on disk. If vgpud dies before, the child reads end of file and ends.
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
    // Close all other fds, even those without O_CLOEXEC. `failure` moves to the lowest number, so
    // that one range remains.
    constexpr int kFailure = STDERR_FILENO + 1;
    if (given.failure != kFailure) ::dup3(given.failure, kFailure, O_CLOEXEC);
    ::close_range(kFailure + 1, ~0u, 0);
    ::execvpe(given.command[0], given.command, given.environment);
    const int code = errno;
    static_cast<void>(::write(kFailure, &code, sizeof code) == 0);
    ::_exit(kExecFailed);
}

/// Both ends are closed on exec.
struct Pipe {
    UniqueFd reader, writer;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        return fail_errno(ErrorId::System, errno, "cannot make a pipe");
    return Pipe{.reader = UniqueFd(ends[0]), .writer = UniqueFd(ends[1])};
}

/// 0 once the program runs, else exec's errno.
int exec_error(Pipe& failure) {
    failure.writer.reset();
    int code = 0;
    ssize_t got = 0;
    do {
        got = ::read(failure.reader.get(), &code, sizeof code);
    } while (got < 0 && errno == EINTR);
    return got == sizeof code ? code : 0;
}

std::string log_of(const ProcessSpec& spec) {
    return fmt::format("{}/{}.log", spec.directory, spec.label);
}

std::string describe(int status) {
    if (WIFSIGNALED(status))
        return fmt::format("by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    return fmt::format("with exit status {}", WEXITSTATUS(status));
}

Result<> write_record(const ProcessSpec& spec, const ProcessId& id) {
    const std::string path = record_path(spec);
    std::ofstream file(path, std::ios::trunc);
    file << id.pid << ' ' << id.start_time << '\n';
    file.close();
    if (!file) return fail_errno(ErrorId::System, errno, fmt::format("cannot write {}", path));
    return {};
}

}  // namespace

Result<ProcessId> ProcessLauncher::start(const ProcessSpec& spec) {
    constexpr mode_t kLogMode = 0640;
    trim_log(spec);
    const std::string log = log_of(spec);
    const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const UniqueFd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kLogMode));
    if (!input.is_open() || !output.is_open())
        return fail_errno(ErrorId::System, errno, fmt::format("cannot open {}", log));
    TRY(Pipe gate, make_pipe());
    TRY(Pipe failure, make_pipe());
    std::vector<std::string> words = spec.command;
    std::vector<char*> command;
    for (std::string& word : words) command.push_back(word.data());
    command.push_back(nullptr);
    const std::vector<char*> environment = environment_of_children();

    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno(ErrorId::System, errno, "cannot fork");
    if (pid == 0) {
        // otherwise the child would keep the gate open after vgpud dies
        gate.writer.reset();
        become({.command = command.data(),
                .environment = environment.data(),
                .input = input.get(),
                .output = output.get(),
                .failure = failure.writer.get()},
               gate.reader.get());
    }
    const ProcessId id{.pid = pid, .start_time = OwnerProbe().start_time_of(pid).value_or(0)};
    TRY_VOID(write_record(spec, id));
    const char go = 1;
    if (::write(gate.writer.get(), &go, 1) != 1)
        return fail_errno(ErrorId::System, errno, fmt::format("cannot start {}", spec.label));
    if (const int code = exec_error(failure); code != 0) {
        ::waitpid(pid, nullptr, 0);
        return fail_errno(ErrorId::System, code, fmt::format("cannot run '{}'", spec.command[0]));
    }
    return id;
}

/// Copies the last lines and empties the file itself, because the program keeps appending to it.
void ProcessLauncher::trim_log(const ProcessSpec& spec) {
    namespace fs = std::filesystem;
    const std::string log = log_of(spec);
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(log, error);
    if (error || bytes <= kMaxLogBytes) return;
    std::ifstream from(log, std::ios::binary);
    from.seekg(static_cast<std::streamoff>(bytes - kMaxLogBytes));
    std::string last(kMaxLogBytes, '\0');
    from.read(last.data(), static_cast<std::streamsize>(last.size()));
    std::ofstream(log + ".1", std::ios::binary | std::ios::trunc).write(last.data(), from.gcount());
    fs::resize_file(log, 0, error);
}

std::optional<ProcessId> ProcessLauncher::find(const ProcessSpec& spec) {
    std::ifstream file(record_path(spec));
    ProcessId id;
    if (!(file >> id.pid >> id.start_time) || id.pid <= 1) return {};
    return end_of(id) ? std::nullopt : std::optional(id);
}

std::optional<std::string> ProcessLauncher::end_of(const ProcessId& id) {
    int status = 0;
    // Until waitpid() a dead child is a zombie and keeps its pid in use.
    if (::waitpid(id.pid, &status, WNOHANG) == id.pid) return describe(status);
    const bool runs = OwnerProbe().start_time_of(id.pid) == id.start_time;
    return runs ? std::nullopt : std::optional(std::string());
}

bool ProcessLauncher::socket_exists(const std::string& path) {
    struct stat file {};
    return ::stat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

void ProcessLauncher::remove_stale(const std::string& path) {
    if (socket_exists(path)) ::unlink(path.c_str());
}

}  // namespace vgpu::daemon::adapters
