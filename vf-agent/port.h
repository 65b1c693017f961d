// SPDX-License-Identifier: MIT
//
// Port: the virtio-serial port org.vgpu.agent.0 as a Channel. Never blocks. While the host side is
// closed, it reads as ended and polls as hung up. --port: a stream socket, for tests. One thread.
#pragma once

#include "vf-agent/session.h"

#include <filesystem>
#include <string>

namespace vgpu::agent {

inline constexpr const char* kPortName = "org.vgpu.agent.0";

/// udev's link, else the file in sysfs; empty if none.
std::string find_port(const std::filesystem::path& root = "/");

class Port final : public Channel {
public:
    Port() = default;
    ~Port() override { close(); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// Closes the previous port; false with errno. EBUSY: another process has the port.
    bool open(const std::string& path);
    void close();
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    /// HungUp: keep it open, the host side is closed.
    enum class Seen { Bytes, Nothing, HungUp, Lost };
    /// Lost: the device is gone, close it.
    Seen read(std::string& to);
    /// 0 on errors, too: read() notices a lost port.
    std::size_t write(std::string_view bytes) override;

private:
    int fd_ = -1;
    bool is_socket_ = false;
};

}  // namespace vgpu::agent
