// SPDX-License-Identifier: MIT
#include "daemon/adapters/state_files.h"

#include "daemon/adapters/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace vgpu::daemon::adapters {

namespace {

constexpr mode_t kOwnerOnly = 0600, kOwnerOnlyDirectory = 0700;
constexpr std::string_view kGpus = "gpus";

tl::unexpected<Error> not_written(std::string_view action, const std::string& path) {
    return fail_errno(ErrorId::StateNotWritten, errno, fmt::format("cannot {} {}", action, path));
}

tl::unexpected<Error> not_read(std::string_view action, const std::string& path) {
    return fail_errno(ErrorId::StateCorrupt, errno, fmt::format("cannot {} {}", action, path));
}

std::string directory_of(const std::string& path) {
    return path.substr(0, path.rfind('/'));
}

/// Syncs a directory. A rename, a new file or a removal is on disk only after this sync.
Result<> sync_directory(const std::string& path) {
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open() || ::fsync(directory.get()) != 0) return not_written("sync", path);
    return {};
}

Result<> make_directory(const std::string& path) {
    if (::mkdir(path.c_str(), kOwnerOnlyDirectory) == 0) return sync_directory(directory_of(path));
    if (errno == EEXIST) return {};
    return not_written("create", path);
}

Result<> write_temporary(const std::string& path, std::string_view content) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnerOnly));
    if (!fd.is_open()) return not_written("create", path);
    while (!content.empty()) {
        const ssize_t done = ::write(fd.get(), content.data(), content.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return not_written("write", path);
        content.remove_prefix(static_cast<std::size_t>(done));
    }
    if (::fdatasync(fd.get()) != 0) return not_written("sync", path);
    return {};
}

/// Makes `backup` a hard link to the file at `path`, if that file exists. Replaces an earlier
/// backup. A rename would leave no file at `path` for a moment.
Result<> link_backup(const std::string& path, const std::string& backup) {
    const auto try_link = [&] { return ::link(path.c_str(), backup.c_str()) == 0; };
    if (try_link() || errno == ENOENT) return {};
    if (errno == EEXIST && ::unlink(backup.c_str()) == 0 && try_link()) return {};
    return not_written("keep", path);
}

/// Fails unless the file is regular, not longer than kMaxBytes, and owned by root or vgpud's user,
/// as the files that vgpud writes.
Result<> check_origin(const struct stat& facts, const std::string& path) {
    if (!S_ISREG(facts.st_mode))
        return fail(ErrorId::StateCorrupt, fmt::format("{} is not a regular file", path));
    if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
        return fail(ErrorId::StateCorrupt,
                    fmt::format("{} belongs to the user with the id {}", path, facts.st_uid));
    if (facts.st_size > StateFiles::kMaxBytes)
        return fail(ErrorId::StateCorrupt,
                    fmt::format("{} is longer than {} bytes", path, StateFiles::kMaxBytes));
    return {};
}

}  // namespace

std::string StateFiles::where(const std::string& name) const {
    return directory_ + "/" + name;
}

Result<std::vector<std::string>> StateFiles::list() {
    namespace fs = std::filesystem;
    const std::string path = where(std::string(kGpus));
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(path, error); !error && at != fs::directory_iterator();
         at.increment(error))
        names.push_back(fmt::format("{}/{}", kGpus, at->path().filename().string()));
    if (error && error != std::errc::no_such_file_or_directory)
        return fail_errno(ErrorId::StateCorrupt, error.value(), "cannot read " + path);
    return names;
}

Result<std::optional<std::string>> StateFiles::read(const std::string& name) {
    const std::string path = where(name);
    {
        // From the first read() on, check_mark() accepts the file only as it was then, or as vgpud
        // last wrote it.
        const std::scoped_lock lock(mutex_);
        marks_.try_emplace(name, mark_of(path));
    }
    // O_NONBLOCK, because opening a pipe without a writer would block vgpud.
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.is_open() && errno == ENOENT) return std::optional<std::string>{};
    struct stat facts {};
    if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0) return not_read("open", path);
    TRY_VOID(check_origin(facts, path));
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t got = ::read(fd.get(), text.data() + at, text.size() - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return not_read("read", path);
        if (got == 0) text.resize(at);
        at += static_cast<std::size_t>(got);
    }
    return std::optional<std::string>{std::move(text)};
}

Result<> StateFiles::replace(const std::string& name, std::string_view content,
                             const std::string& backup_name) {
    const std::string path = where(name), temporary = path + ".new";
    TRY_VOID(check_mark(name));
    TRY_VOID(make_directory(directory_of(path)));
    auto done = write_temporary(temporary, content);
    if (done && !backup_name.empty()) done = link_backup(path, where(backup_name));
    if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = not_written("replace", path);
    if (!done) {
        ::unlink(temporary.c_str());
        return done;
    }
    set_mark(name);
    return sync_directory(directory_of(path));
}

Result<> StateFiles::remove(const std::string& name, const std::string& backup_name) {
    const std::string path = where(name);
    TRY_VOID(check_mark(name));
    const int gone = backup_name.empty() ? ::unlink(path.c_str())
                                         : ::rename(path.c_str(), where(backup_name).c_str());
    if (gone != 0 && errno != ENOENT) return not_written("remove", path);
    set_mark(name);
    return sync_directory(directory_of(path));
}

StateFiles::Mark StateFiles::mark_of(const std::string& path) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) return {};
    return {.inode = facts.st_ino,
            .bytes = facts.st_size,
            .changed_s = facts.st_mtim.tv_sec,
            .changed_ns = facts.st_mtim.tv_nsec};
}

/// Without this check, vgpud would overwrite the changes of another program with the state that it
/// has in memory.
Result<> StateFiles::check_mark(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    const std::string path = where(name);
    if (marks_[name] == mark_of(path)) return {};
    return fail(ErrorId::StateNotWritten,
                fmt::format("{} was changed by another program; restart vgpud to read it", path));
}

void StateFiles::set_mark(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    marks_[name] = mark_of(where(name));
}

}  // namespace vgpu::daemon::adapters
