// SPDX-License-Identifier: MIT
//
// Priorities of threads. A thread that must act on time runs under SCHED_FIFO, before every normal
// thread of the host (docs/decisions/0004), and the host does not swap out the process's pages.
// Best effort: if the host refuses (no CAP_SYS_NICE, no CAP_IPC_LOCK), nothing changes, and a
// function that returns bool returns false.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>

namespace vgpu::softgpu {

/// Lowest real-time priority: before all normal threads, after other programs' real-time threads.
inline constexpr int kRealTime = 1;
/// For threads that end quanta and switch worlds: before the threads that answer guests.
inline constexpr int kRealTimeWatch = 2;

/// Any thread may call this for any thread. False if the host refuses; nothing has changed then.
inline bool make_real_time(pthread_t thread, int priority) {
    const sched_param parameters{.sched_priority = priority};
    return pthread_setschedparam(thread, SCHED_FIFO, &parameters) == 0;
}

/// Makes the thread a normal one again, with its former nice value.
inline void make_normal(pthread_t thread) {
    const sched_param parameters{.sched_priority = 0};
    (void)pthread_setschedparam(thread, SCHED_OTHER, &parameters);
}

/// Gives the calling thread nice 0. The thread then yields to this process's threads that answer
/// guests, and competes equally with the host's other threads.
inline void compute_in_the_background() {
    constexpr id_t kThisThread = 0;
    (void)::setpriority(PRIO_PROCESS, kThisThread, 0);
}

/// CPU time that the calling thread has used since its start.
inline std::chrono::nanoseconds thread_time() {
    timespec used{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// True if there is no limit (RLIMIT_MEMLOCK) or CAP_IPC_LOCK lifts the limit. The kernel checks
/// the capability in the initial user namespace, so a container's root may have the capability
/// without effect. Only a probe shows whether it has an effect.
inline bool may_lock_all_memory() {
    constexpr std::size_t kPage = 4096;
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    if (limit.rlim_cur == RLIM_INFINITY) return true;
    const std::size_t beyond = limit.rlim_cur + kPage;
    void* const probe =
        ::mmap(nullptr, beyond, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) return false;
    const bool is_locked = ::mlock2(probe, beyond, MLOCK_ONFAULT) == 0;
    (void)::munmap(probe, beyond);
    return is_locked;
}

/// Keeps pages in memory once this process has touched them; brings no page in early. Locks nothing
/// and returns false if there is a limit, because every later mapping, VRAM and guests' memory
/// included, would count and fail at the limit, and so would a stack that grows.
inline bool lock_memory() {
    return may_lock_all_memory() && ::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

}  // namespace vgpu::softgpu
