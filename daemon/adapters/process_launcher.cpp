// SPDX-License-Identifier: MIT
#include "daemon/adapters/process_launcher.h"

#include "daemon/adapters/owner_probe.h"
#include "daemon/adapters/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <string_view>

namespace vgpu::daemon::adapters {

namespace {

constexpr int kExecFailed = 127;  // exit status, as of a shell
constexpr mode_t kLogMode = 0640;
/// Variables for vgpud only. A child with these variables could report to systemd as if the child
/// were vgpud.
constexpr std::array<std::string_view, 3> kNotForChildren{
    "NOTIFY_SOCKET=", "WATCHDOG_PID=", "WATCHDOG_USEC="};

std::string pid_file_of(const ProcessSpec& spec) {
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

/// The values that the forked child uses; the ints are descriptors. A child that cannot change its
/// user or run the program writes the errno to `failure`; a successful exec closes `failure`.
struct Inheritance {
    char* const* command;
    char* const* environment;
    int input;
    int output;
    int failure;
    const DeviceUser* user;  ///< null: vgpud's user
};

/// Returns 0 or an errno. The change from root to another user drops all capabilities.
int become_user(const DeviceUser& user) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
        ::setresuid(user.uid, user.uid, user.uid) != 0)
        return errno;
    return 0;
}

[[noreturn]] void end_child(int failure, int code) {
    static_cast<void>(::write(failure, &code, sizeof code) == 0);
    ::_exit(kExecFailed);
}

/// Runs the program in the forked child. Allocates no memory, because another thread may have held
/// the allocator's lock during the fork. First reads a byte from `gate`, which vgpud writes after
/// it has written the pid file. If vgpud dies before that, the child reads end of file and exits.
[[noreturn]] void run_child(const Inheritance& given, int gate) {
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
    // Close all other fds, even those without O_CLOEXEC. `failure` moves to the number after
    // stderr, so that the fds to close are one range.
    constexpr int kFailure = STDERR_FILENO + 1;
    if (given.failure != kFailure) ::dup3(given.failure, kFailure, O_CLOEXEC);
    ::close_range(kFailure + 1, ~0u, 0);
    if (given.user != nullptr)
        if (const int code = become_user(*given.user); code != 0) end_child(kFailure, code);
    ::execvpe(given.command[0], given.command, given.environment);
    end_child(kFailure, errno);
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

/// Waits until the child runs the program or ends. Returns the errno that the child wrote to
/// `failure`; 0 if the child wrote none.
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

std::string describe_end(int status) {
    if (WIFSIGNALED(status))
        return fmt::format("by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    return fmt::format("with exit status {}", WEXITSTATUS(status));
}

/// Opens a file of vgpud. Refuses a link or a file of another user, because the device user may
/// have put it in the file's place.
Result<UniqueFd> open_own(const std::string& path, int flags, mode_t mode = 0) {
    UniqueFd file(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode));
    if (!file.is_open())
        return fail_errno(ErrorId::System, errno, fmt::format("cannot open {}", path));
    struct stat facts {};
    if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        facts.st_uid != ::geteuid() || facts.st_nlink != 1)
        return fail(ErrorId::System, fmt::format("{} is not a file of vgpud: remove it", path));
    return file;
}

Result<> write_pid_file(const ProcessSpec& spec, const ProcessId& id) {
    constexpr mode_t kPidFileMode = 0644;
    // without the start time, a later process with this pid would count as the child
    if (id.start_time == 0)
        return fail(ErrorId::System,
                    fmt::format("cannot read the start time of process {} in /proc", id.pid));
    const std::string path = pid_file_of(spec);
    TRY(const UniqueFd file, open_own(path, O_WRONLY | O_CREAT, kPidFileMode));
    const std::string line = fmt::format("{} {}\n", id.pid, id.start_time);
    if (::ftruncate(file.get(), 0) != 0 ||
        ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
        return fail_errno(ErrorId::System, errno, fmt::format("cannot write {}", path));
    return {};
}

/// Lets `user` make sockets in the directory and remove them, but not remove vgpud's files.
Result<> share_directory(const std::string& directory, const DeviceUser& user) {
    constexpr mode_t kStickyForGroup = 01775;
    const auto same_user = static_cast<uid_t>(-1);
    if (::chown(directory.c_str(), same_user, user.gid) != 0 ||
        ::chmod(directory.c_str(), kStickyForGroup) != 0)
        return fail_errno(ErrorId::System, errno, fmt::format("cannot share {}", directory));
    return {};
}

}  // namespace

Result<DeviceUser> device_user(const std::string& name) {
    const passwd* const user = ::getpwnam(name.c_str());
    if (user == nullptr)
        return fail(ErrorId::ConfigInvalid,
                    fmt::format("--device-user: there is no user '{}'", name));
    if (user->pw_uid == 0)
        return fail(ErrorId::ConfigInvalid,
                    fmt::format("--device-user: '{}' is root; name a user without rights", name));
    return DeviceUser{.uid = user->pw_uid, .gid = user->pw_gid};
}

/// Ends the last line of the log. That line may lack its line feed, because the disk was full or
/// because an earlier program was killed.
static void end_last_line(const std::string& log) {
    const auto file = open_own(log, O_RDWR | O_CREAT | O_APPEND, kLogMode);
    if (!file) return;
    char last = '\n';
    const off_t bytes = ::lseek(file->get(), 0, SEEK_END);
    if (bytes <= 0 || ::pread(file->get(), &last, 1, bytes - 1) != 1 || last == '\n') return;
    static_cast<void>(::write(file->get(), "\n", 1) == 1);
}

/// Writes the pid file of a child, and lets the child execute its program. After an error the child
/// reads end of file and exits.
static Result<> record_and_release(const ProcessSpec& spec, const ProcessId& id, Pipe& gate) {
    Result<> released = write_pid_file(spec, id);
    const char go = 1;
    if (released && ::write(gate.writer.get(), &go, 1) != 1)
        released = fail_errno(ErrorId::System, errno, fmt::format("cannot start {}", spec.label));
    if (released) return {};
    gate.writer.reset();
    ::waitpid(id.pid, nullptr, 0);
    return released;
}

/// Waits until the child executes its program. System, with the reason, if the child cannot.
static Result<> await_exec(const ProcessSpec& spec, pid_t pid, Pipe& failure) {
    const int code = exec_error(failure);
    if (code == 0) return {};
    ::waitpid(pid, nullptr, 0);
    return fail(ErrorId::System, fmt::format("cannot run '{}': {}. Install this program, or name "
                                             "it in 'programs' of vgpud's configuration",
                                             spec.command[0], std::strerror(code)));
}

Result<ProcessId> ProcessLauncher::start(const ProcessSpec& spec) {
    trim_log(spec);
    const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!input.is_open()) return fail_errno(ErrorId::System, errno, "cannot open /dev/null");
    if (user_) TRY_VOID(share_directory(spec.directory, *user_));
    end_last_line(log_of(spec));
    TRY(const UniqueFd output, open_own(log_of(spec), O_WRONLY | O_CREAT | O_APPEND, kLogMode));
    // Start one child at a time: children forked at the same time would inherit the writers of each
    // other's gates, and would not read end of file if vgpud dies.
    static std::mutex gates;
    std::unique_lock only_gate(gates);
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
        // Close the child's copy of the writer. With this copy, the child would never read end of
        // file after vgpud dies.
        gate.writer.reset();
        run_child({.command = command.data(),
                   .environment = environment.data(),
                   .input = input.get(),
                   .output = output.get(),
                   .failure = failure.writer.get(),
                   .user = user_ ? &*user_ : nullptr},
                  gate.reader.get());
    }
    const ProcessId id{.pid = pid, .start_time = OwnerProbe().start_time_of(pid).value_or(0)};
    TRY_VOID(record_and_release(spec, id, gate));
    only_gate.unlock();
    TRY_VOID(await_exec(spec, pid, failure));
    return id;
}

/// Copies the end of the log to LABEL.log.1, and empties the log in place, because the program
/// keeps appending to the same file.
void ProcessLauncher::trim_log(const ProcessSpec& spec) {
    const std::string path = log_of(spec);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error || bytes <= kMaxLogBytes) return;
    const auto log = open_own(path, O_RDWR | O_CREAT, kLogMode);
    const auto kept = open_own(path + ".1", O_WRONLY | O_CREAT, kLogMode);
    if (!log || !kept) return;
    std::string last(kMaxLogBytes, '\0');
    const auto begin = static_cast<off_t>(bytes - kMaxLogBytes);
    const ssize_t count = ::pread(log->get(), last.data(), last.size(), begin);
    const bool is_kept =
        count > 0 && ::ftruncate(kept->get(), 0) == 0 &&
        ::write(kept->get(), last.data(), static_cast<std::size_t>(count)) == count;
    // The log is emptied even if the copy failed, because the log's size limit matters more.
    static_cast<void>(is_kept);
    static_cast<void>(::ftruncate(log->get(), 0) == 0);
}

std::optional<ProcessId> ProcessLauncher::find(const ProcessSpec& spec) {
    const auto file = open_own(pid_file_of(spec), O_RDONLY);
    if (!file) return {};
    constexpr std::size_t kMaxBytes = 64;
    std::array<char, kMaxBytes> bytes{};
    const ssize_t count = ::read(file->get(), bytes.data(), bytes.size());
    if (count <= 0) return {};
    std::istringstream record(std::string(bytes.data(), static_cast<std::size_t>(count)));
    ProcessId id;
    if (!(record >> id.pid >> id.start_time) || id.pid <= 1) return {};
    return end_of(id) ? std::nullopt : std::optional(id);
}

/// While /proc hides the process, the process counts as running, because nobody may remove the
/// sockets of a running process.
std::optional<std::string> ProcessLauncher::end_of(const ProcessId& id) {
    int status = 0;
    // Until waitpid() a dead child is a zombie and keeps its pid in use.
    if (::waitpid(id.pid, &status, WNOHANG) == id.pid) return describe_end(status);
    const bool may_run = OwnerProbe().process_exists(id).value_or(true);
    return may_run ? std::nullopt : std::optional(std::string());
}

bool ProcessLauncher::socket_exists(const std::string& path) {
    struct stat file {};
    return ::stat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

void ProcessLauncher::remove_stale(const std::string& path) {
    if (socket_exists(path)) ::unlink(path.c_str());
}

}  // namespace vgpu::daemon::adapters
