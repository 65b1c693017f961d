// SPDX-License-Identifier: MIT
#include "daemon/adapters/platform_assignment.h"

#include "daemon/adapters/unique_fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>

namespace vgpu::daemon::adapters {

namespace {

namespace fs = std::filesystem;

constexpr std::array kKernelModes{AssignmentMode::None, AssignmentMode::VfioPci,
                                  AssignmentMode::Host};
constexpr std::array kProcessModes{AssignmentMode::VfioUser, AssignmentMode::None};

struct Platform {
    std::string_view name;
    std::span<const AssignmentMode> modes;  ///< the default first
};
constexpr Platform kKernelPlatform{"the PF core in the kernel (vgpu_pf.ko)", kKernelModes};
constexpr Platform kProcessPlatform{"the PF core in a process (vgpu-pf)", kProcessModes};

Result<AssignmentMode> mode_of(const Platform& platform, AssignmentMode requested) {
    if (requested == AssignmentMode::Default) return platform.modes.front();
    std::string known;
    for (const AssignmentMode mode : platform.modes) {
        if (mode == requested) return mode;
        known += fmt::format("{}'{}'", known.empty() ? "" : ", ", name_of(mode));
    }
    return fail(ErrorId::AssignmentRefused,
                fmt::format("{} does not support that assignment mode; it supports {}",
                            platform.name, known));
}

// --- kernel

/// The mode in brackets, such as None in "[none] vfio-pci host". Fails with System if no known mode
/// is in brackets.
Result<AssignmentMode> chosen_in(std::string_view text) {
    for (const AssignmentMode mode : kKernelModes)
        if (text.find(fmt::format("[{}]", name_of(mode))) != std::string_view::npos) return mode;
    return fail(ErrorId::System, "vgpu_pf.ko names no known assignment mode");
}

Result<AssignmentMode> read_attribute(const std::string& path) {
    constexpr std::size_t kMax = 256;
    std::array<char, kMax> text{};
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t got = file.is_open() ? ::read(file.get(), text.data(), text.size()) : -1;
    if (got < 0) return fail_errno(ErrorId::System, errno, "cannot read " + path);
    return chosen_in({text.data(), static_cast<std::size_t>(got)});
}

/// The error for the errno with which vgpu_pf.ko refused the mode (docs/pf-driver.md).
tl::unexpected<Error> refused(int code, const std::string& path) {
    if (code == EBUSY)
        return fail(ErrorId::WrongState,
                    "the function of the VF is in use; end the VM that has the function, or unbind "
                    "the function's driver");
    if (code == EOPNOTSUPP)
        return fail(ErrorId::AssignmentRefused,
                    "there is no IOMMU in front of the GPU, so a guest's DMA would reach all of "
                    "the host; without one only 'none' and 'host' are possible");
    return fail_errno(ErrorId::System, code, "cannot write " + path);
}

Result<> write_attribute(const std::string& path, AssignmentMode mode) {
    const std::string_view word = name_of(mode);
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!file.is_open()) return refused(errno, path);
    if (::write(file.get(), word.data(), word.size()) < 0) return refused(errno, path);
    return {};
}

// --- process

bool exists(const std::string& path) {
    struct stat file {};
    return ::lstat(path.c_str(), &file) == 0;
}

Result<> move_socket(const std::string& from, const std::string& to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return fail_errno(ErrorId::System, errno, fmt::format("cannot move {} to {}", from, to));
}

}  // namespace

std::optional<std::string> PlatformAssignment::attribute_of(std::uint32_t vf) const {
    struct stat file {};
    if (::stat(uapi_path_.c_str(), &file) != 0 || !S_ISCHR(file.st_mode)) return {};
    return fmt::format("{}/dev/char/{}:{}/device/sriov_admin/vf{}/assignment_mode", sysfs_,
                       major(file.st_rdev), minor(file.st_rdev), vf);
}

std::string PlatformAssignment::socket_of(std::uint32_t vf) const {
    return fmt::format("{}/vf{}.sock", vf_socket_dir_, vf);
}

std::string PlatformAssignment::withheld_of(std::uint32_t vf) const {
    return fmt::format("{}/vf{}.sock", withheld_directory(), vf);
}

Result<AssignmentMode> PlatformAssignment::get(std::uint32_t vf) {
    if (const auto attribute = attribute_of(vf)) return read_attribute(*attribute);
    const bool is_withheld =
        !vf_socket_dir_.empty() && exists(withheld_of(vf)) && !exists(socket_of(vf));
    return is_withheld ? AssignmentMode::None : AssignmentMode::VfioUser;
}

Result<> PlatformAssignment::set(std::uint32_t vf, AssignmentMode assignment_mode, TakeFromHost) {
    const auto attribute = attribute_of(vf);
    TRY(const AssignmentMode mode,
        mode_of(attribute ? kKernelPlatform : kProcessPlatform, assignment_mode));
    // Do not write the mode that is in force, because vgpu_pf.ko refuses every write while the
    // function is in use.
    if (const auto now = get(vf); now && *now == mode) return {};
    if (attribute) return write_attribute(*attribute, mode);
    return mode == AssignmentMode::None ? withhold(vf)
                                        : move_socket(withheld_of(vf), socket_of(vf));
}

Result<> PlatformAssignment::withhold(std::uint32_t vf) const {
    if (vf_socket_dir_.empty())
        return fail(ErrorId::AssignmentRefused,
                    "vgpud does not know where the sockets of the VFs are, so it cannot withhold "
                    "them; name the directory as 'vf_socket_dir' in its configuration");
    std::error_code error;
    fs::create_directory(withheld_directory(), error);
    if (!error) fs::permissions(withheld_directory(), fs::perms::owner_all, error);
    if (error)
        return fail_errno(ErrorId::System, error.value(), "cannot create " + withheld_directory());
    return move_socket(socket_of(vf), withheld_of(vf));
}

}  // namespace vgpu::daemon::adapters
