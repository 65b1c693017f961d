// SPDX-License-Identifier: MIT
//
// UniqueFd: owns one file descriptor. Mapping: owns one mmap. Both are moved, never copied.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <utility>

namespace vgpu::test {

class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

private:
    int fd_ = -1;
};

class Mapping {
public:
    Mapping() = default;
    Mapping(void* start, std::size_t size) : start_(static_cast<std::byte*>(start)), size_(size) {}
    Mapping(Mapping&& other) noexcept
        : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        if (this != &other) {
            reset();
            start_ = std::exchange(other.start_, nullptr);
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    ~Mapping() { reset(); }

    [[nodiscard]] std::span<std::byte> bytes() const { return {start_, size_}; }
    [[nodiscard]] explicit operator bool() const { return start_ != nullptr; }
    void reset() {
        if (start_ != nullptr) ::munmap(start_, size_);
        start_ = nullptr;
        size_ = 0;
    }

private:
    std::byte* start_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace vgpu::test
