// SPDX-License-Identifier: MIT
#include "tests/support/stack/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/stack/temp_dir.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {
namespace {

namespace fs = std::filesystem;

constexpr milliseconds kTermLimit{3000};

std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string tail(const std::string& text) {
    constexpr std::size_t kTail = 3000;
    return text.size() <= kTail ? text : "..." + text.substr(text.size() - kTail);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (auto& text : strings) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

/// Runs in the child of vfork(), which shares the parent's memory and may only make system calls.
[[noreturn]] void become(const ChildProcess::Spec& spec, char* const* argv, char* const* env) {
    const int log =
        ::open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::setpgid(0, 0);  // Ctrl-C in the terminal reaches only the parent
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execve(argv[0], argv, env);
    ::_exit(127);
}

pid_t spawn(const ChildProcess::Spec& spec) {
    auto arguments = spec.argv;
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    environment.insert(environment.end(), spec.environment.begin(), spec.environment.end());
    const auto argv = pointers(arguments);
    const auto env = pointers(environment);
    // fork() of a process with sanitizers or many threads takes longer than some programs run.
    const auto pid = ::vfork();
    if (pid < 0) throw VfError("vfork: " + std::string(std::strerror(errno)), errno);
    if (pid == 0) become(spec, argv.data(), env.data());
    return pid;
}

std::vector<pid_t> children() {
    std::vector<pid_t> out;
    std::error_code error;
    for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
        std::istringstream pids(read_file(task.path() / "children"));
        for (pid_t pid = 0; pids >> pid;) out.push_back(pid);
    }
    return out;
}

/// Waits for the end of a child by pidfd; false after `limit`.
bool wait_end(pid_t pid, milliseconds limit) {
    const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!fd) return true;
    const Deadline deadline(limit);
    pollfd end{fd.get(), POLLIN, 0};
    while (::poll(&end, 1, deadline.left_ms()) <= 0)
        if (deadline.passed()) return false;
    return true;
}

int shell_status(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::string program(const std::string& name) {
    return fs::read_symlink("/proc/self/exe").parent_path() / name;
}

std::string build_file(const std::string& relative) {
    return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / relative;
}

ChildProcess::ChildProcess(Spec spec) : spec_(std::move(spec)), pid_(spawn(spec_)) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : spec_(std::move(other.spec_)), pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

ChildProcess::~ChildProcess() {
    if (pid_ < 0 || status_) return;
    ::kill(pid_, SIGTERM);
    if (reap(kTermLimit)) return;
    ::kill(pid_, SIGKILL);
    reap(kTermLimit);
}

bool ChildProcess::reap(milliseconds limit) {
    if (status_) return true;
    if (!wait_end(pid_, limit)) return false;
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_) status_ = shell_status(status);
    return status_.has_value();
}

bool ChildProcess::is_running() {
    return !reap(milliseconds(0));
}

void ChildProcess::signal(int number) const {
    if (!status_) ::kill(pid_, number);
}

void ChildProcess::kill_now() {
    signal(SIGKILL);
    wait_exit();
}

int ChildProcess::wait_exit(milliseconds limit) {
    if (!reap(limit))
        throw VfError(fmt::format("{} did not end within {} ms (scaled); log:\n{}", spec_.name,
                                  limit.count(), tail(output())));
    return *status_;
}

std::string ChildProcess::output() const {
    return read_file(spec_.log);
}

void ChildProcess::wait_for_output(const std::string& text, milliseconds limit) {
    const Deadline deadline(limit);
    while (output().find(text) == std::string::npos) {
        if (!is_running() && output().find(text) == std::string::npos)
            throw VfError(fmt::format("{} ended with status {} before it printed \"{}\"; log:\n{}",
                                      spec_.name, *status_, text, tail(output())));
        if (deadline.passed())
            throw VfError(fmt::format("{} did not print \"{}\" within {} ms (scaled); log:\n{}",
                                      spec_.name, text, limit.count(), tail(output())));
        polling_pause();
    }
}

Completed run(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
              milliseconds limit) {
    const TempDir dir;
    ChildProcess child({argv.front(), argv, dir.file("out"), environment});
    const auto status = child.wait_exit(limit);
    return {status, child.output()};
}

Orphans::Orphans() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Orphans::~Orphans() {
    // the children of a killed process become children of this process
    for (auto left = children(); !left.empty(); left = children()) {
        for (const auto pid : left) ::kill(pid, SIGKILL);
        for (const auto pid : left)
            if (!wait_end(pid, kTermLimit) || ::waitpid(pid, nullptr, 0) != pid) return;
    }
}

}  // namespace vgpu::test
