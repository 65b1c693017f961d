// SPDX-License-Identifier: MIT
#include "daemon/adapters/state_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace vgpu::daemon::adapters {

namespace {

constexpr mode_t kOwnerOnly = 0600;

tl::unexpected<Error> not_written(std::string_view act, const std::string& path) {
    return fail_errno(ErrorId::StateNotWritten, errno, fmt::format("cannot {} {}", act, path));
}

Result<> write_all(int fd, std::string_view bytes, off_t at, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return not_written("write", path);
        bytes.remove_prefix(static_cast<std::size_t>(done));
        at += done;
    }
    return {};
}

/// Writes zeroes up to `to`, or none if the disk is nearly full. Returns the file's length.
Result<std::uint64_t> reserve(int fd, std::size_t from, std::size_t to, const std::string& path) {
    if (from >= to) return from;
    const std::string zeroes(to - from, '\0');
    if (write_all(fd, zeroes, static_cast<off_t>(from), path)) return to;
    if (::ftruncate(fd, static_cast<off_t>(from)) != 0) return not_written("truncate", path);
    return from;
}

/// Returns the length of the file.
Result<std::uint64_t> write_temporary(const std::string& path, std::string_view content,
                                      std::size_t reserved) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnerOnly));
    if (!fd.is_open()) return not_written("create", path);
    TRY_VOID(write_all(fd.get(), content, 0, path));
    TRY(const std::uint64_t bytes, reserve(fd.get(), content.size(), reserved, path));
    if (::fsync(fd.get()) != 0) return not_written("sync", path);
    return bytes;
}

}  // namespace

std::string StateFiles::where(StateFile file) const {
    constexpr std::array kNames{kCheckpointName, kJournalName, kCopyName};
    return directory_ + "/" + kNames.at(static_cast<std::size_t>(file));
}

Result<> StateFiles::keep_damaged() {
    for (const StateFile file : {StateFile::Checkpoint, StateFile::Journal, StateFile::Copy}) {
        const std::string path = where(file), kept = path + ".damaged";
        ::unlink(kept.c_str());
        if (::link(path.c_str(), kept.c_str()) != 0 && errno != ENOENT)
            return not_written("keep", path);
    }
    return {};
}

Result<std::optional<std::string>> StateFiles::read(StateFile file) {
    const std::string path = where(file);
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.is_open() && errno == ENOENT) return std::optional<std::string>{};
    if (!fd.is_open())
        return fail_errno(ErrorId::StateCorrupt, errno, fmt::format("cannot open {}", path));
    std::string text;
    std::array<char, 65536> buffer{};
    for (;;) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail_errno(ErrorId::StateCorrupt, errno, fmt::format("cannot read {}", path));
        if (got == 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > kMaxBytes)
            return fail(ErrorId::StateCorrupt,
                        fmt::format("{} is longer than {} bytes", path, kMaxBytes));
    }
    // Cut the reserved zeroes; a record ends with a brace.
    if (file == StateFile::Journal) {
        journal_bytes_ = text.size();
        text.erase(text.find_last_not_of('\0') + 1);
    }
    return std::optional<std::string>{std::move(text)};
}

Result<> StateFiles::replace(StateFile file, std::string_view content) {
    const std::string path = where(file);
    const std::string temporary = path + ".new";
    // The open file becomes the old one, without a name; append() opens the new one.
    if (file == StateFile::Journal) journal_ = UniqueFd();
    const std::size_t reserved = file == StateFile::Journal ? kJournalBytes : 0;
    const auto written = write_temporary(temporary, content, reserved);
    if (!written) {
        ::unlink(temporary.c_str());
        return tl::make_unexpected(written.error());
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const auto refused = not_written("replace", path);
        ::unlink(temporary.c_str());
        return refused;
    }
    if (file == StateFile::Journal) journal_bytes_ = *written;
    // The rename is on disk only after the directory has been synced.
    const UniqueFd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open() || ::fsync(directory.get()) != 0)
        return not_written("sync", directory_);
    return {};
}

Result<> StateFiles::open_journal() {
    if (journal_.is_open()) return {};
    const std::string path = where(StateFile::Journal);
    UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat facts {};
    if (!opened.is_open() || ::fstat(opened.get(), &facts) != 0) return not_written("open", path);
    journal_ = std::move(opened);
    if (!journal_bytes_) journal_bytes_ = static_cast<std::uint64_t>(facts.st_size);
    return {};
}

/// The files may have been replaced or restored under a running vgpud: new records would be lost or
/// mixed with foreign ones.
Result<> StateFiles::check_end(std::uint64_t end) const {
    const std::string path = where(StateFile::Journal);
    struct stat facts {};
    if (::fstat(journal_.get(), &facts) != 0) return not_written("look at", path);
    // read the last byte, which is not 0, and after it more zeroes than a record has in a row
    std::array<char, 65> around{};
    const auto last = static_cast<off_t>(end) - 1;
    const ssize_t got = ::pread(journal_.get(), around.data(), around.size(), last);
    if (got < 0) return not_written("read", path);
    const std::string_view rest(around.data() + 1, around.size() - 1);
    const bool is_ours =
        facts.st_nlink > 0 && static_cast<std::uint64_t>(facts.st_size) == journal_bytes_ &&
        got > 0 && around[0] != '\0' && rest.find_first_not_of('\0') == std::string_view::npos;
    if (is_ours) return {};
    return fail(ErrorId::StateNotWritten,
                fmt::format("{} was changed by somebody else (it has {} bytes, {} expected, of "
                            "which {} are written)",
                            path, facts.st_nlink == 0 ? 0 : facts.st_size, *journal_bytes_, end));
}

Result<> StateFiles::append(std::uint64_t end, std::string_view bytes) {
    const std::string path = where(StateFile::Journal);
    TRY_VOID(open_journal());
    TRY_VOID(check_end(end));
    journal_bytes_ = std::max(*journal_bytes_, end + bytes.size());
    TRY_VOID(write_all(journal_.get(), bytes, static_cast<off_t>(end), path));
    // fdatasync also writes a grown length: without it the bytes could not be read back.
    if (::fdatasync(journal_.get()) != 0) return not_written("sync", path);
    return {};
}

Result<> StateFiles::cut(std::uint64_t end) {
    const std::string path = where(StateFile::Journal);
    TRY_VOID(open_journal());
    if (::ftruncate(journal_.get(), static_cast<off_t>(end)) != 0)
        return not_written("truncate", path);
    journal_bytes_ = end;
    if (::fsync(journal_.get()) != 0) return not_written("sync", path);
    return {};
}

}  // namespace vgpu::daemon::adapters
