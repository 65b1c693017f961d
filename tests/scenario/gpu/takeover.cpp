// SPDX-License-Identifier: MIT
#include "tests/scenario/gpu/takeover.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tests/support/deadline.h"
#include "tests/support/unique_fd.h"

namespace vgpu::test {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD
constexpr std::uint64_t kSyscallBytes = 2;    // of the instruction
/// Far below the stack pointer, so that a signal handler does not reach it.
constexpr std::uint64_t kRoomBelowStack = 0x8000;

void check(long result, const char* what) {
    if (result < 0) throw VfError(what, errno);
}

}  // namespace

bool Takeover::Outcome::is_denied() const {
    return is_refused || has_ended || value == -EPERM || value == -EACCES;
}

std::string Takeover::Outcome::text() const {
    if (has_ended) return "the process was killed";
    if (is_refused) return "refused by the filter";
    return fmt::format("{} ({})", value, value < 0 ? std::strerror(static_cast<int>(-value)) : "");
}

Takeover::Takeover(ChildProcess& process) : pid_(process.pid()) {
    check(::ptrace(PTRACE_SEIZE, pid_, 0, PTRACE_O_TRACESYSGOOD), "PTRACE_SEIZE");
    check(::ptrace(PTRACE_INTERRUPT, pid_, 0, 0), "PTRACE_INTERRUPT");
    wait_stop();
    wait_entry();
}

Takeover::~Takeover() {
    if (!has_ended_) (void)::ptrace(PTRACE_DETACH, pid_, 0, 0);
}

void Takeover::go_on(int signal) {
    check(::ptrace(PTRACE_SYSCALL, pid_, 0, signal), "PTRACE_SYSCALL");
}

/// Returns the signal of the stop. It does not reap an ended process: ChildProcess does.
int Takeover::wait_stop() {
    siginfo_t info{};
    const auto who = static_cast<id_t>(pid_);
    check(::waitid(P_PID, who, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL), "waitid");
    if (info.si_code == CLD_KILLED || info.si_code == CLD_EXITED || info.si_code == CLD_DUMPED) {
        has_ended_ = true;
        return 0;
    }
    int status = 0;
    check(::waitpid(pid_, &status, __WALL), "waitpid");
    return WSTOPSIG(status);
}

/// Waits for the entry of a system call; delivers signals meanwhile.
void Takeover::wait_entry() {
    for (int signal = 0;;) {
        go_on(signal);
        const int stop = wait_stop();
        if (has_ended_) throw VfError("the process ended");
        signal = stop == kSyscallStop || stop == SIGTRAP ? 0 : stop;
        if (stop != kSyscallStop) continue;
        entry_ = registers();
        // at the entry of a call the kernel shows this result
        if (static_cast<std::int64_t>(entry_.rax) == -ENOSYS) break;
    }
    if (room_ == 0) room_ = entry_.rsp - kRoomBelowStack;
}

user_regs_struct Takeover::registers() const {
    user_regs_struct registers{};
    check(::ptrace(PTRACE_GETREGS, pid_, 0, &registers), "PTRACE_GETREGS");
    return registers;
}

void Takeover::set_registers(const user_regs_struct& registers) const {
    check(::ptrace(PTRACE_SETREGS, pid_, 0, &registers), "PTRACE_SETREGS");
}

/// A refused call shows at its end as SIGSYS, which the thread does not get: its handler would
/// change the registers of its own call.
Takeover::Outcome Takeover::call(std::int64_t number, const Arguments& arguments) {
    user_regs_struct injected = entry_;
    injected.orig_rax = static_cast<std::uint64_t>(number);
    injected.rdi = arguments[0];
    injected.rsi = arguments[1];
    injected.rdx = arguments[2];
    injected.r10 = arguments[3];
    injected.r8 = arguments[4];
    injected.r9 = arguments[5];
    set_registers(injected);
    go_on(0);
    Outcome outcome;
    wait_stop();
    outcome.has_ended = has_ended_;
    if (has_ended_) return outcome;
    outcome.value = static_cast<std::int64_t>(registers().rax);
    user_regs_struct again = entry_;
    again.rip -= kSyscallBytes;
    again.rax = entry_.orig_rax;
    again.orig_rax = ~0ull;  // no restart of a call
    set_registers(again);
    for (int stop = 0; stop != kSyscallStop;) {
        go_on(0);
        stop = wait_stop();
        outcome.has_ended = has_ended_;
        if (has_ended_) return outcome;
        outcome.is_refused |= stop == SIGSYS;
    }
    entry_ = registers();
    return outcome;
}

std::uint64_t Takeover::put(std::span<const std::byte> bytes) {
    constexpr std::uint64_t kAlignment = 16;
    room_ = (room_ - bytes.size()) & ~(kAlignment - 1);
    const UniqueFd memory(::open(fmt::format("/proc/{}/mem", pid_).c_str(), O_RDWR | O_CLOEXEC));
    const auto put = ::pwrite(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(room_));
    check(put, "write to /proc/PID/mem");
    return room_;
}

std::uint64_t Takeover::put(const std::string& text) {
    return put(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
}

}  // namespace vgpu::test
