// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/base/priority.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include "pf-driver/softgpu/base/pi_mutex.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu {
namespace {

/// How a child ended.
enum Ending { kAsClaimed, kWrongAnswer, kCannotMap, kCannotTry };

/// What `child` returns in a process of its own, whose limits and capabilities may go.
template <typename Child> int in_a_child(Child child) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(child());
    int status = 0;
    if (pid < 0 || ::waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return kCannotTry;
    return WEXITSTATUS(status);
}

/// The hard limit, too; without privileges that cannot be raised.
bool limit_locked_memory(rlim_t bytes) {
    const rlimit limit{bytes, bytes};
    return ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

bool drop_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> none{};
    return ::syscall(SYS_capset, &header, none.data()) == 0;
}

rlim_t mapped_bytes() {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * 4096;
}

TEST(PiMutex, AMutexThatAnotherThreadHoldsCannotBeTriedWithSuccess) {
    PiMutex mutex;
    const auto is_free = [&] {
        bool taken = false;
        std::thread([&] { taken = std::unique_lock(mutex, std::try_to_lock).owns_lock(); }).join();
        return taken;
    };
    {
        const std::scoped_lock lock(mutex);
        EXPECT_FALSE(is_free());
    }
    EXPECT_TRUE(is_free());
}

TEST(LockMemory, UnderALimitNothingIsLockedAndMappingsSucceed) {
    // All that is mapped may be locked, and a little more, if we may have that.
    rlimit old{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &old), 0);
    const rlim_t wanted = mapped_bytes() + (16_MiB).count;
    EXPECT_EQ(in_a_child([&]() -> int {
                  const bool is_limited = limit_locked_memory(wanted) ||
                                          limit_locked_memory(std::min(wanted, old.rlim_max));
                  if (!is_limited || !drop_capabilities()) return kCannotTry;
                  if (lock_memory()) return kWrongAnswer;
                  const void* const vram =
                      ::mmap(nullptr, (64_MiB).count, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                  return vram == MAP_FAILED ? kCannotMap : kAsClaimed;
              }),
              kAsClaimed);
}

TEST(LockMemory, WithoutALimitItNeedsNoCapability) {
    const int ending = in_a_child([]() -> int {
        if (!limit_locked_memory(RLIM_INFINITY) || !drop_capabilities()) return kCannotTry;
        return lock_memory() ? kAsClaimed : kWrongAnswer;
    });
    if (ending == kCannotTry) GTEST_SKIP() << "the limit on locked memory cannot be lifted here";
    EXPECT_EQ(ending, kAsClaimed);
}

}  // namespace
}  // namespace vgpu::softgpu
