// SPDX-License-Identifier: MIT
#include "text/whole_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>

namespace vgpu::text {

namespace {

/// Appends the rest of a file. Returns 0 or an errno. `text` never exceeds `max_bytes`.
int read_rest(int fd, std::size_t max_bytes, std::string& text) {
    std::array<char, 65536> piece{};
    for (;;) {
        const ssize_t got = ::read(fd, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? errno : 0;
        const auto count = static_cast<std::size_t>(got);
        if (count > max_bytes - text.size()) return EFBIG;
        text.append(piece.data(), count);
    }
}

}  // namespace

tl::expected<std::string, int> whole_file(const std::string& path, std::size_t max_bytes) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tl::make_unexpected(errno);
    std::string text;
    const int error = read_rest(fd, max_bytes, text);
    ::close(fd);
    if (error != 0) return tl::make_unexpected(error);
    return text;
}

}  // namespace vgpu::text
