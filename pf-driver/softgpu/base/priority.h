// SPDX-License-Identifier: MIT
//
// Priorities of threads, and locked memory. A thread that must act on time runs under SCHED_FIFO,
// ahead of all normal threads of the host (docs/decisions/0004). The host must not swap out the
// thread's memory either. All functions are best effort: if the host refuses (no CAP_SYS_NICE, no
// CAP_IPC_LOCK), nothing changes, and functions that return bool return false.
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

/// SCHED_FIFO priority of the io thread and of the engine's workers while they run in real time:
/// the lowest priority, so that real-time threads of other programs run first.
inline constexpr int kRealTime = 1;
/// SCHED_FIFO priority of threads that end quanta and switch worlds: ahead of kRealTime.
inline constexpr int kRealTimeWatch = 2;

/// Puts `thread` under SCHED_FIFO with `priority`. Any thread may call this for any thread.
inline bool make_real_time(pthread_t thread, int priority) {
    const sched_param parameters{.sched_priority = priority};
    return pthread_setschedparam(thread, SCHED_FIFO, &parameters) == 0;
}

/// Returns `thread` to SCHED_OTHER; the thread keeps its nice value.
inline void make_normal(pthread_t thread) {
    const sched_param parameters{.sched_priority = 0};
    (void)pthread_setschedparam(thread, SCHED_OTHER, &parameters);
}

/// Sets the calling thread's nice value to 0. Threads that do not call this keep the -10 of the
/// process (main.cpp), if the host permits -10, and get more CPU time. The calling thread competes
/// as an equal with threads of other programs at nice 0. On Linux, PRIO_PROCESS with id 0 changes
/// only the calling thread.
inline void reset_nice() {
    constexpr id_t kThisThread = 0;
    (void)::setpriority(PRIO_PROCESS, kThisThread, 0);
}

/// CPU time that the calling thread has used since its start.
inline std::chrono::nanoseconds thread_time() {
    timespec used{};
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// True if RLIMIT_MEMLOCK is unlimited, or if a probe shows that CAP_IPC_LOCK lifts the limit. The
/// kernel checks the capability in the initial user namespace, so root in a container may have
/// CAP_IPC_LOCK without effect. Therefore this function does not read the capability, but tries to
/// lock one page more than the limit. The probe uses no memory (PROT_NONE, MLOCK_ONFAULT).
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

/// Keeps pages in memory once this process has touched them; brings no page in early. If there is a
/// limit (may_lock_all_memory()), locks nothing and returns false, because MCL_FUTURE counts every
/// later mapping against the limit, including VRAM and guests' memory: mmap() and stack growth
/// would fail at the limit.
inline bool lock_memory() {
    return may_lock_all_memory() && ::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

}  // namespace vgpu::softgpu
