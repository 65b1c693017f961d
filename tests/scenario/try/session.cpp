// SPDX-License-Identifier: MIT
#include "tests/scenario/try/session.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "tests/support/deadline.h"
#include "tests/support/stack/child_process.h"

namespace vgpu::trial {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBash = "/bin/bash";
constexpr int kNotExecutable = 126, kNotFound = 127, kBySignal = 128;
constexpr timespec kEndLimit{.tv_sec = 2, .tv_nsec = 0};

/// Sources the user's own file first, which may set PATH and the prompt.
constexpr std::string_view kBashFile = R"([ -r ~/.bashrc ] && . ~/.bashrc
PATH="{0}:$PATH"
PS1="(vgpu) $PS1"
[ -r "{1}" ] && . "{1}"
)";

std::string bin_dir() {
    return fs::path(test::program("vgpuctl")).parent_path();
}

/// $SHELL if a person can work in it.
std::string shell_of_user() {
    const char* const shell = std::getenv("SHELL");
    if (shell == nullptr || ::access(shell, X_OK) != 0) return kBash;
    const std::string name = fs::path(shell).filename();
    return name == "nologin" || name == "false" ? kBash : shell;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (auto& text : strings) out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

int shell_status(int status) {
    return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

sigset_t block_ending_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD})
        ::sigaddset(&signals, number);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

int pending_end(const sigset_t& signals) {
    sigset_t ends = signals;
    ::sigdelset(&ends, SIGCHLD);
    constexpr timespec kNow{};
    const int number = ::sigtimedwait(&ends, nullptr, &kNow);
    return number > 0 ? number : 0;
}

Session::Session(Surroundings around, std::vector<std::string> command)
    : around_(std::move(around)), command_(std::move(command)) {
    if (command_.empty()) choose_shell();
}

void Session::choose_shell() {
    directory_ = around_.private_dir + "/work";
    fs::create_directory(directory_);
    is_interactive_ = ::isatty(STDIN_FILENO) == 1;
    if (!is_interactive_) {
        command_ = {kBash};
        return;
    }
    command_ = {shell_of_user()};
    if (fs::path(command_.front()).filename() == "bash") {
        const std::string file = around_.private_dir + "/bashrc";
        std::ofstream(file) << fmt::format(kBashFile, bin_dir(),
                                           test::build_file("pages/vgpuctl.bash"));
        command_.insert(command_.end(), {"--rcfile", file});
    }
    command_.emplace_back("-i");
}

void Session::become() const {
    const char* const path = std::getenv("PATH");
    ::setenv("PATH",
             fmt::format("{}:{}", bin_dir(), path == nullptr ? "/usr/bin:/bin" : path).c_str(), 1);
    ::unsetenv("TMPDIR");
    if (!around_.outer_tmpdir.empty()) ::setenv("TMPDIR", around_.outer_tmpdir.c_str(), 1);
    ::setenv("VGPUCTL_BUS", around_.bus_address.c_str(), 1);
    ::setenv("VGPU_TRY", around_.private_dir.c_str(), 1);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGHUP);
    if (!directory_.empty() && ::chdir(directory_.c_str()) != 0) ::_exit(kNotExecutable);
    auto words = command_;
    ::execvp(words.front().c_str(), pointers(words).data());
    const int error = errno;
    fmt::print(stderr, "tests/try: {}: {}\n", command_.front(), std::strerror(error));
    ::_exit(error == ENOENT ? kNotFound : kNotExecutable);
}

/// A shell at its prompt ignores most signals, but not the loss of its terminal.
void Session::end(pid_t pid, int number) const {
    ::kill(pid, is_interactive_ ? SIGHUP : number);
}

int Session::run(const sigset_t& signals) {
    // there is no other thread, so the child may call any function
    const pid_t pid = ::fork();
    if (pid < 0) throw test::VfError("cannot start " + command_.front(), errno);
    if (pid == 0) become();
    int status = 0, ended_by = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        siginfo_t told{};
        const int number = ended_by == 0 ? ::sigwaitinfo(&signals, &told)
                                         : ::sigtimedwait(&signals, &told, &kEndLimit);
        if (number < 0 && errno == EAGAIN) ::kill(pid, SIGKILL);
        if (number <= 0 || number == SIGCHLD) continue;
        // a key: the terminal has sent it to the session as well
        if (told.si_code == SI_KERNEL && number != SIGHUP) continue;
        ended_by = number;
        end(pid, number);
    }
    return ended_by == 0 ? shell_status(status) : kBySignal + ended_by;
}

}  // namespace vgpu::trial
