// SPDX-License-Identifier: MIT
//
// Port: the virtio-serial port org.vgpu.agent.0 as a Channel. Never blocks. While the host's side
// is closed, a read returns 0 bytes, and a poll reports a hang-up. With --port it is a stream
// socket, for tests. Runs in one thread.
#pragma once

#include "vf-agent/session.h"

#include <filesystem>
#include <string>

namespace vgpu::agent {

inline constexpr const char* kPortName = "org.vgpu.agent.0";

/// The path of the port: udev's link, else the file that sysfs names; empty if there is none.
std::string find_port(const std::filesystem::path& root = "/");

class Port final : public Channel {
public:
    Port() = default;
    ~Port() override { close(); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// Opens a port and closes the previous one. False with errno. EBUSY: another process has the
    /// port.
    bool open(const std::string& path);
    void close();
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    /// HungUp: the host's side is closed; keep the port open.
    enum class Seen { Bytes, Nothing, HungUp, Lost };
    /// Reads bytes that are available, at most 16 KiB. Lost: the device is gone; close the port.
    Seen read(std::string& to);
    /// Returns the number of bytes written. 0 also on errors, because read() notices a lost port.
    std::size_t write(std::string_view bytes) override;

private:
    int fd_ = -1;
    bool is_socket_ = false;
};

}  // namespace vgpu::agent
