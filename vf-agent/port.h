// SPDX-License-Identifier: MIT
//
// Port: the virtio-serial port org.vgpu.agent.0 as a Channel. Never blocks. A port whose host side
// is closed reads as ended and polls as hung up; it comes back by itself. A stream socket may stand
// in for the device (--port), for tests. Used by main.cpp, one thread.
#pragma once

#include "vf-agent/session.h"

#include <filesystem>
#include <string>

namespace vgpu::agent {

inline constexpr const char* kPortName = "org.vgpu.agent.0";

/// Device file of the port with that name: udev's link, else the one that sysfs names; empty if
/// there is none.
std::string find_port(const std::filesystem::path& root = "/");

/// Owns the descriptor.
class Port final : public Channel {
public:
    Port() = default;
    ~Port() override { close(); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// False, with errno, if it cannot be opened.
    /// Closes what was open before. Only one process can have the port: EBUSY for the second.
    bool open(const std::string& path);
    void close();
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    /// HungUp: the device is there and nobody has its other end open; keep it and look again.
    enum class Seen { Bytes, Nothing, HungUp, Lost };
    /// What there is to read, appended to `to`; Lost: the device is gone, close it.
    Seen read(std::string& to);
    /// 0 also on errors: a port that is lost is noticed by read().
    std::size_t write(std::string_view bytes) override;

private:
    int fd_ = -1;
    bool is_socket_ = false;
};

}  // namespace vgpu::agent
