// SPDX-License-Identifier: MIT
#include "daemon/adapters/vm_sockets.h"

#include "daemon/adapters/migration_blocker.h"
#include "pf-driver/process/socket_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

namespace vgpu::daemon::adapters {

namespace {

namespace fs = std::filesystem;

/// The mode of an owner's directory and of its parent. All users may enter and list both, because
/// QEMU may run as any user. The owner's directory contains only links and the migration blocker.
constexpr auto kDirectoryMode = fs::perms::owner_all | fs::perms::group_read |
                                fs::perms::group_exec | fs::perms::others_read |
                                fs::perms::others_exec;

Result<> make_link(const std::string& target, const fs::path& at) {
    if (target.empty()) return {};
    if (at.string().size() > VGPU_SOCKET_PATH_MAX)
        return fail(ErrorId::OutOfRange,
                    fmt::format("the path {} has {} bytes, but the path of a socket may have at "
                                "most {}: use a shorter owner, or a shorter run_dir in vgpud's "
                                "configuration",
                                at.string(), at.string().size(), VGPU_SOCKET_PATH_MAX));
    std::error_code error;
    fs::create_symlink(target, at, error);
    if (error)
        return fail_errno(ErrorId::System, error.value(),
                          fmt::format("cannot link {} to {}", at.string(), target));
    return {};
}

/// Checks that the socket exists. A dangling link would look like success, but QEMU would fail.
Result<> check_exists(const std::string& socket) {
    std::error_code error;
    if (socket.empty() || fs::exists(socket, error)) return {};
    return fail(
        ErrorId::System,
        fmt::format("the socket {} is missing. softgpu recreates a removed socket by itself: try "
                    "again; if its directory was removed as well, restart softgpu",
                    socket));
}

Result<> set_owner(const std::string& socket, std::uint32_t uid, std::uint32_t gid) {
    if (socket.empty()) return {};
    // Does not follow a link, which may have replaced the socket.
    if (::fchownat(AT_FDCWD, socket.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) == 0) return {};
    return fail_errno(ErrorId::System, errno,
                      fmt::format("cannot give {} to uid {}, gid {}", socket, uid, gid));
}

/// The targets of the links in `directory`, by path of the link.
std::map<fs::path, std::string> links_in(const fs::path& directory) {
    std::map<fs::path, std::string> links;
    std::error_code ignored;
    for (auto at = fs::directory_iterator(directory, ignored); at != fs::directory_iterator();
         at.increment(ignored)) {
        std::error_code error;
        const fs::path target = fs::read_symlink(at->path(), error);
        if (!error) links[at->path()] = target.string();
    }
    return links;
}

/// The N of a link's name N.sock, such as 3 for "3.sock"; none for other names, such as
/// "3.agent.sock".
std::optional<std::size_t> n_of(const std::string& name) {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
    if (error != std::errc{} || std::string_view(end) != ".sock") return {};
    return n;
}

}  // namespace

std::string VmSockets::path_of(const std::string& owner_dir, std::size_t n) const {
    return fmt::format("{}/{}/{}.sock", run_dir_, owner_dir, n);
}

std::string VmSockets::migration_blocker_path(const std::string& owner_dir) const {
    return fmt::format("{}/{}/0.never-saved.vdi", run_dir_, owner_dir);
}

Result<> VmSockets::link(const std::string& owner_dir, const std::vector<VfSockets>& sockets) {
    unlink(owner_dir);
    const fs::path directory = fs::path(run_dir_) / owner_dir;
    std::error_code error;
    fs::create_directories(directory, error);
    if (!error) fs::permissions(directory.parent_path(), kDirectoryMode, error);
    if (!error) fs::permissions(directory, kDirectoryMode, error);
    if (error)
        return fail_errno(ErrorId::System, error.value(), "cannot create " + directory.string());
    for (std::size_t n = 0; n < sockets.size(); ++n) {
        TRY_VOID(check_exists(sockets[n].vfio_user));
        TRY_VOID(make_link(sockets[n].vfio_user, directory / fmt::format("{}.sock", n)));
        TRY_VOID(make_link(sockets[n].agent, directory / fmt::format("{}.agent.sock", n)));
    }
    return write_migration_blocker(migration_blocker_path(owner_dir));
}

void VmSockets::unlink(const std::string& owner_dir) {
    std::error_code ignored;
    fs::remove_all(fs::path(run_dir_) / owner_dir, ignored);
}

void VmSockets::unlink_vf(const std::string& owner_dir, const VfSockets& sockets) {
    std::error_code ignored;
    for (const auto& [path, target] : links_in(fs::path(run_dir_) / owner_dir))
        if (target == sockets.vfio_user || target == sockets.agent) fs::remove(path, ignored);
}

std::vector<std::string> VmSockets::linked(const std::string& owner_dir) const {
    std::map<std::size_t, std::string> by_n;
    for (const auto& [path, target] : links_in(fs::path(run_dir_) / owner_dir))
        if (const auto n = n_of(path.filename().string())) by_n[*n] = target;
    std::vector<std::string> targets;
    for (auto& [n, target] : by_n) targets.push_back(std::move(target));
    return targets;
}

Result<> VmSockets::grant(const VfSockets& sockets, std::uint32_t uid, std::uint32_t gid) {
    TRY_VOID(set_owner(sockets.vfio_user, uid, gid));
    return set_owner(sockets.agent, uid, gid);
}

void VmSockets::revoke(const VfSockets& sockets) {
    // Make both calls and ignore errors, because a socket may be missing.
    static_cast<void>(set_owner(sockets.vfio_user, ::geteuid(), ::getegid()));
    static_cast<void>(set_owner(sockets.agent, ::geteuid(), ::getegid()));
}

}  // namespace vgpu::daemon::adapters
