// SPDX-License-Identifier: MIT
//
// IoThread: what other threads may know about the server's io thread: whether they are it, and
// whether it has been inside one and the same device call for a while. A thread that waits for a
// client's answer holds nothing up unless the io thread waits for a lock of that thread; it finds
// out by watching the turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace vgpu::softgpu::vfio_user {

class IoThread {
public:
    void enter() { id_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
    void leave() { id_.store(std::thread::id{}, std::memory_order_relaxed); }
    [[nodiscard]] bool is_current() const {
        return id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    /// Odd while a device call is under way.
    [[nodiscard]] std::uint64_t turn() const { return turn_.load(std::memory_order_relaxed); }

    /// Marks a device call.
    class DeviceCall {
    public:
        explicit DeviceCall(IoThread& thread) : thread_(thread) { advance(); }
        ~DeviceCall() { advance(); }
        DeviceCall(const DeviceCall&) = delete;
        DeviceCall& operator=(const DeviceCall&) = delete;

    private:
        void advance() {  // one writer: no read-modify-write needed
            thread_.turn_.store(thread_.turn() + 1, std::memory_order_relaxed);
        }
        IoThread& thread_;
    };

private:
    std::atomic<std::thread::id> id_{};
    std::atomic<std::uint64_t> turn_{0};
};

}  // namespace vgpu::softgpu::vfio_user
