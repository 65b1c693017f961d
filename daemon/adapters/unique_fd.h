// SPDX-License-Identifier: MIT
//
// UniqueFd: owns a file descriptor and closes it. Movable.
#pragma once

#include <unistd.h>
#include <utility>

namespace vgpu::daemon::adapters {

class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    /// Swaps, so that the destructor of `other` closes the old descriptor.
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    void reset() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    /// The descriptor; -1 if there is none.
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    /// Returns the descriptor, which the caller must then close.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

private:
    int fd_ = -1;
};

}  // namespace vgpu::daemon::adapters
