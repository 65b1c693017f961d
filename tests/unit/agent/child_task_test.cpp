// SPDX-License-Identifier: MIT
//
// ChildTask with real processes, one of which cannot be reaped at once.
#include "vf-agent/child_task.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace vgpu::agent {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

/// The only child of this process.
pid_t only_child() {
    pid_t pid = 0;
    std::ifstream("/proc/self/task/" + std::to_string(::getpid()) + "/children") >> pid;
    return pid;
}

bool is_gone_within(pid_t pid, Nanoseconds limit) {
    const std::filesystem::path process = "/proc/" + std::to_string(pid);
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::filesystem::exists(process)) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

/// A process that is dead stays a zombie while somebody traces it: as one that a driver holds in
/// the kernel.
class Tracer {
public:
    explicit Tracer(pid_t pid) {
        int ends[2];
        if (::pipe(ends) != 0) return;
        pid_ = ::fork();
        if (pid_ == 0) {
            const char can = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 1 : 0;
            if (::write(ends[1], &can, 1) != 1) ::_exit(1);
            for (;;) ::pause();
        }
        char can = 0;
        holds_ = ::read(ends[0], &can, 1) == 1 && can == 1;
        ::close(ends[0]);
        ::close(ends[1]);
    }
    ~Tracer() { end(); }
    void end() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    [[nodiscard]] bool holds() const { return holds_; }

private:
    pid_t pid_ = -1;
    bool holds_ = false;
};

TEST(ChildTask, AChildThatCannotBeReapedAtOnceIsReapedLater) {
    auto task = std::make_unique<ChildTask>(std::vector<std::string>{"/bin/sleep", "1000"},
                                            Nanoseconds(1h));
    const pid_t child = only_child();
    ASSERT_GT(child, 0);
    Tracer tracer(child);
    if (!tracer.holds()) GTEST_SKIP() << "this user may not trace";
    task.reset();
    EXPECT_TRUE(std::filesystem::exists("/proc/" + std::to_string(child)));
    tracer.end();
    EXPECT_TRUE(is_gone_within(child, 5s)) << "a zombie is left";
}

}  // namespace
}  // namespace vgpu::agent
