// SPDX-License-Identifier: MIT
//
// Port is the virtio-serial port org.vgpu.agent.0 as a Channel. It never blocks. While the host
// side is closed, the port reads as ended and polls as hung up; it recovers once the host opens its
// side. For tests, a stream socket may replace the device (--port). Used by main.cpp; one thread.
#pragma once

#include "vf-agent/session.h"

#include <filesystem>
#include <string>

namespace vgpu::agent {

inline constexpr const char* kPortName = "org.vgpu.agent.0";

/// Device file of the port kPortName: udev's link, else the file that sysfs names; empty if none.
std::string find_port(const std::filesystem::path& root = "/");

/// Owns the descriptor.
class Port final : public Channel {
public:
    Port() = default;
    ~Port() override { close(); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// Opens `path` after closing the previous one; false with errno on failure.
    /// Only one process can have the port: EBUSY for the second.
    bool open(const std::string& path);
    void close();
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    /// HungUp: the device exists, but its host side is closed; keep it open and look again.
    enum class Seen { Bytes, Nothing, HungUp, Lost };
    /// Appends available bytes to `to`. Lost: the device is gone, close it.
    Seen read(std::string& to);
    /// Returns 0 on errors as well: read() notices a lost port.
    std::size_t write(std::string_view bytes) override;

private:
    int fd_ = -1;
    bool is_socket_ = false;
};

}  // namespace vgpu::agent
