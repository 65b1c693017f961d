// SPDX-License-Identifier: MIT
#include "daemon/adapters/file_state.h"

#include "daemon/adapters/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <array>
#include <cerrno>
#include <cstdio>

namespace vgpu::daemon::adapters {

namespace {

Result<> write_all(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t done = ::write(fd, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
            return fail_errno(ErrorId::StateNotWritten, errno,
                              fmt::format("cannot write {}", path));
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
    return {};
}

}  // namespace

Result<std::optional<std::string>> FileState::load() {
    const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.is_open() && errno == ENOENT) return std::optional<std::string>{};
    if (!fd.is_open())
        return fail_errno(ErrorId::StateCorrupt, errno, fmt::format("cannot open {}", path_));
    std::string text;
    std::array<char, 65536> buffer{};
    for (;;) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail_errno(ErrorId::StateCorrupt, errno, fmt::format("cannot read {}", path_));
        if (got == 0) return std::optional<std::string>{std::move(text)};
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > kMaxBytes)
            return fail(ErrorId::StateCorrupt,
                        fmt::format("{} is longer than {} bytes", path_, kMaxBytes));
    }
}

Result<> FileState::write_temporary(const std::string& path, std::string_view document) const {
    constexpr mode_t kOwnerOnly = 0600;
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnerOnly));
    if (!fd.is_open())
        return fail_errno(ErrorId::StateNotWritten, errno, fmt::format("cannot create {}", path));
    TRY_VOID(write_all(fd.get(), document, path));
    if (::fsync(fd.get()) != 0)
        return fail_errno(ErrorId::StateNotWritten, errno, fmt::format("cannot sync {}", path));
    return {};
}

Result<> FileState::store(std::string_view document) {
    const std::string temporary = path_ + ".new";
    if (auto written = write_temporary(temporary, document); !written) {
        ::unlink(temporary.c_str());
        return written;
    }
    if (::rename(temporary.c_str(), path_.c_str()) != 0)
        return fail_errno(ErrorId::StateNotWritten, errno, fmt::format("cannot replace {}", path_));
    const UniqueFd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open() || ::fsync(directory.get()) != 0)
        return fail_errno(ErrorId::StateNotWritten, errno,
                          fmt::format("cannot sync {}", directory_));
    return {};
}

}  // namespace vgpu::daemon::adapters
