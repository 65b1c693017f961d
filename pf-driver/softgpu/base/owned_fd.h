// SPDX-License-Identifier: MIT
//
// OwnedFd: owns one file descriptor and closes it. It can be moved, but not copied. Code that
// receives a descriptor from another process puts it into an OwnedFd first, so that no error path
// can leak the descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace vgpu::softgpu {

class OwnedFd {
public:
    OwnedFd() = default;
    explicit OwnedFd(int fd) : fd_(fd) {}
    OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    OwnedFd& operator=(OwnedFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~OwnedFd() { reset(); }

    /// The descriptor, still owned by this object; -1 if none.
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
    /// Gives the descriptor to the caller, who must close it; -1 if none.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    /// Closes the present descriptor, if any, and takes ownership of `fd` (-1: none).
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

private:
    int fd_ = -1;
};

}  // namespace vgpu::softgpu
