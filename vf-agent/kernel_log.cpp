// SPDX-License-Identifier: MIT
#include "vf-agent/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace vgpu::agent {

namespace {

constexpr int kRecordsPerRead = 2000;
constexpr std::size_t kMaxText = 160;
constexpr int kSeverityMask = 7;
constexpr int kErrorSeverity = 3;

}  // namespace

KernelLog::KernelLog(const std::string& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}

KernelLog::~KernelLog() {
    if (fd_ >= 0) ::close(fd_);
}

void KernelLog::read() {
    std::array<char, 8192> record{};
    for (int i = 0; fd_ >= 0 && i < kRecordsPerRead; ++i) {
        const ssize_t got = ::read(fd_, record.data(), record.size());
        // EPIPE: the kernel has overwritten the record; the next read returns a later one
        if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
        if (got <= 0) return;
        count_record({record.data(), static_cast<std::size_t>(got)});
    }
}

void KernelLog::count_record(std::string_view record) {
    const std::size_t semicolon = record.find(';');
    if (semicolon == std::string_view::npos) return;
    // the lowest three bits of PRIORITY; the higher bits are the facility
    const int severity = std::atoi(std::string(record.substr(0, 4)).c_str()) & kSeverityMask;
    const std::string_view text = record.substr(semicolon + 1, record.find('\n') - semicolon - 1);
    if (text.find("amdgpu") == std::string_view::npos) return;
    const auto says = [text](std::string_view words) {
        return text.find(words) != std::string_view::npos;
    };
    if (says("GPU reset") && says("succeeded")) ++resets_;
    if (severity > kErrorSeverity && !says("*ERROR*")) return;
    ++errors_;
    last_error_ = text.substr(0, kMaxText);
}

}  // namespace vgpu::agent
