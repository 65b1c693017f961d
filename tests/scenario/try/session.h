// SPDX-License-Identifier: MIT
//
// Session: the shell or command of tests/try, as one process. It has a command, a directory and an
// environment. vgpuctl works in it, because it has the private bus by VGPUCTL_BUS and the programs
// of this build by PATH.
#pragma once

#include <csignal>
#include <string>
#include <vector>

namespace vgpu::trial {

struct Surroundings {
    std::string private_dir;
    std::string bus_address;
    std::string outer_tmpdir;  ///< TMPDIR as the user has it; empty: not set
};

/// Blocks the signals that end a session, and SIGCHLD, so that run() can wait for them.
sigset_t block_ending_signals();
/// One of the ending signals that has come since then, or 0.
int pending_end(const sigset_t& signals);

class Session {
public:
    /// `command` empty: a shell if standard input is a terminal, else bash with the lines of
    /// standard input. Shells work in a directory below the private one, a command stays where it
    /// is.
    Session(Surroundings around, std::vector<std::string> command);

    [[nodiscard]] bool is_interactive() const { return is_interactive_; }
    /// Exit status as a shell counts it. A signal to this process ends the session, too.
    int run(const sigset_t& signals);

private:
    void choose_shell();
    [[noreturn]] void become() const;
    void end(pid_t pid, int number) const;

    Surroundings around_;
    std::vector<std::string> command_;
    std::string directory_;  ///< to change to; empty: none
    bool is_interactive_ = false;
};

}  // namespace vgpu::trial
