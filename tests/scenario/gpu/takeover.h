// SPDX-License-Identifier: MIT
//
// Takeover: makes a child process execute system calls of the test, as an attacker who has taken it
// over would. The main thread is stopped by ptrace where it enters a system call, and executes the
// test's call in that place; afterwards it enters its own call again.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "tests/support/stack/child_process.h"

namespace vgpu::test {

class Takeover {
public:
    using Arguments = std::array<std::uint64_t, 6>;
    /// Result of a call.
    struct Outcome {
        bool is_refused = false;  ///< the filter refused the call: the kernel did not execute it
        bool has_ended = false;   ///< the call killed the process
        std::int64_t value = 0;   ///< as the kernel returns it: negative errno

        /// True if the filter or the kernel denied the call, or the process was killed.
        [[nodiscard]] bool is_denied() const;
        /// The result in words, for messages of tests.
        [[nodiscard]] std::string text() const;
    };

    explicit Takeover(ChildProcess& process);
    ~Takeover();
    Takeover(const Takeover&) = delete;
    Takeover& operator=(const Takeover&) = delete;

    Outcome call(std::int64_t number, const Arguments& arguments = {});
    /// Copies bytes below the used part of the thread's stack, where they stay; returns the
    /// address.
    std::uint64_t put(std::span<const std::byte> bytes);
    std::uint64_t put(const std::string& text);

private:
    void go_on(int signal);
    int wait_stop();
    void wait_entry();
    user_regs_struct registers() const;
    void set_registers(const user_regs_struct& registers) const;

    pid_t pid_;
    bool has_ended_ = false;
    user_regs_struct entry_{};  // at the entry of the thread's own call
    std::uint64_t room_ = 0;    // lowest address in use
};

}  // namespace vgpu::test
