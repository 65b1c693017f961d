// SPDX-License-Identifier: MIT
//
// PiMutex, PiCondition: like std::mutex and std::condition_variable, for data that a real-time
// thread shares with normal threads. While a thread of higher priority waits for the mutex, the
// holder runs at that priority (PTHREAD_PRIO_INHERIT). Otherwise other work of the host could
// preempt the holder, and the real-time thread would wait for milliseconds. Timeouts use
// CLOCK_MONOTONIC.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <ctime>
#include <mutex>

namespace vgpu::softgpu {

/// Works with std::unique_lock and std::scoped_lock. Not recursive.
class PiMutex {
public:
    PiMutex() {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
        [[maybe_unused]] const int error = pthread_mutex_init(&mutex_, &attributes);
        assert(error == 0);
        pthread_mutexattr_destroy(&attributes);
    }
    ~PiMutex() { pthread_mutex_destroy(&mutex_); }
    PiMutex(const PiMutex&) = delete;
    PiMutex& operator=(const PiMutex&) = delete;

    void lock() { pthread_mutex_lock(&mutex_); }
    [[nodiscard]] bool try_lock() { return pthread_mutex_trylock(&mutex_) == 0; }
    void unlock() { pthread_mutex_unlock(&mutex_); }
    [[nodiscard]] pthread_mutex_t* native_handle() { return &mutex_; }
    /// True if the calling thread holds the mutex. For assertions; reads the owner's thread id from
    /// a private field of glibc.
    [[nodiscard]] bool is_held() const { return mutex_.__data.__owner == ::gettid(); }

private:
    pthread_mutex_t mutex_;
};

/// A condition variable for PiMutex. Wakeups may be spurious: wait in a loop or with a predicate.
/// The waits do not report whether they timed out.
class PiCondition {
public:
    PiCondition() {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&condition_, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    ~PiCondition() { pthread_cond_destroy(&condition_); }
    PiCondition(const PiCondition&) = delete;
    PiCondition& operator=(const PiCondition&) = delete;

    void notify_all() { pthread_cond_broadcast(&condition_); }

    void wait(std::unique_lock<PiMutex>& lock) {
        pthread_cond_wait(&condition_, lock.mutex()->native_handle());
    }
    template <typename Predicate> void wait(std::unique_lock<PiMutex>& lock, Predicate is_over) {
        while (!is_over()) wait(lock);
    }
    /// Converts `end` without a change of clock: on Linux, steady_clock is CLOCK_MONOTONIC.
    void wait_until(std::unique_lock<PiMutex>& lock, std::chrono::steady_clock::time_point end) {
        constexpr long kSecond = 1'000'000'000;
        const long ns =
            std::chrono::duration_cast<std::chrono::nanoseconds>(end.time_since_epoch()).count();
        const timespec until{.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
        pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &until);
    }
    void wait_for(std::unique_lock<PiMutex>& lock, std::chrono::nanoseconds time) {
        wait_until(lock, std::chrono::steady_clock::now() + time);
    }
    template <typename Predicate>
    void wait_for(std::unique_lock<PiMutex>& lock, std::chrono::nanoseconds time,
                  Predicate is_over) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (!is_over() && std::chrono::steady_clock::now() < end) wait_until(lock, end);
    }

private:
    pthread_cond_t condition_;
};

}  // namespace vgpu::softgpu
