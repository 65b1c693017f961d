// SPDX-License-Identifier: MIT
//
// Port: the virtio-serial port org.vgpu.agent.0 as a Channel. Never blocks. While the host has not
// opened its side of the port, read(2) on the port returns 0 bytes and poll(2) reports a hang-up.
// In tests, --port names a stream socket instead. Runs in one thread.
#pragma once

#include "vf-agent/session.h"

#include <filesystem>
#include <string>

namespace vgpu::agent {

inline constexpr const char* kPortName = "org.vgpu.agent.0";

/// The path of the port: udev's link, else the device that sysfs names; empty if there is no port.
std::string find_port(const std::filesystem::path& root = "/");

class Port final : public Channel {
public:
    Port() = default;
    ~Port() override { close(); }
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    /// Closes the previous port and opens the port at `path`. If this fails, returns false and sets
    /// errno. EBUSY means that another process has the port open.
    bool open(const std::string& path);
    void close();
    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }

    /// What read() found.
    enum class ReadResult {
        Bytes,    ///< read() has appended bytes
        Nothing,  ///< the host is connected, but there are no bytes
        HungUp,   ///< the host has closed its side; keep the port open
        Lost,     ///< the device or connection is gone; close the port
    };
    /// Appends available bytes, at most 16 KiB.
    ReadResult read(std::string& to);
    /// Returns the number of written bytes; 0 also after an error, because read() will report a
    /// lost port.
    std::size_t write(std::string_view bytes) override;

private:
    int fd_ = -1;
    bool is_socket_ = false;
};

}  // namespace vgpu::agent
