// SPDX-License-Identifier: MIT
#include "cli/service.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

namespace vgpu::cli {

namespace {

struct ExitRow {
    std::string_view name;
    ExitCode code;
    std::string_view meaning{};  ///< appended to the bus's message
};

constexpr std::string_view kGone =
    " The object no longer exists: the VF was destroyed, or the job is over and forgotten. "
    "'vgpuctl list' and 'vgpuctl jobs' show what exists.";
constexpr std::string_view kOlder =
    " This vgpud is older than vgpuctl and does not support this; 'vgpuctl version' shows both. "
    "Install the same release of both, then restart vgpud.";

/// The error names that have a meaning or an exit code other than Failed. A row whose name ends
/// with a dot applies to all names that begin with the row's name.
constexpr std::array kExitCodes{
    ExitRow{"vgpuctl.WrongUsage", ExitCode::Usage},
    ExitRow{"vgpuctl.Interrupted", ExitCode::Interrupted},
    ExitRow{"org.vgpu1.Error.NoSuchGpu", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.NoSuchVf", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.UnknownOption", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.WrongType", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.OutOfRange", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.InvalidName", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.InvalidOwner", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.BadConfiguration", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.NoSuchLabel", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.AmbiguousName", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.NoFreeVf", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoMatchingVf", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoVram", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoSchedule", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoDoorbells", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoComputeUnits", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NotOffered", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NotAuthorized", ExitCode::NotAuthorized},
    ExitRow{"org.vgpu1.Error.StateReadOnly", ExitCode::ReadOnly},
    ExitRow{"org.vgpu1.Error.StateNotWritten", ExitCode::ReadOnly},
    ExitRow{"org.vgpu1.Error.PfLost", ExitCode::Lost},
    ExitRow{"org.vgpu1.Error.DeviceLost", ExitCode::Lost},
    ExitRow{"org.vgpu1.Error.Stopping", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.UnknownObject", ExitCode::NotFound, kGone},
    ExitRow{"org.freedesktop.DBus.Error.UnknownMethod", ExitCode::Failed, kOlder},
    ExitRow{"org.freedesktop.DBus.Error.UnknownInterface", ExitCode::Failed, kOlder},
    ExitRow{"org.freedesktop.DBus.Error.UnknownProperty", ExitCode::Failed, kOlder},
    ExitRow{"org.freedesktop.DBus.Error.InvalidArgs", ExitCode::Failed, kOlder},
    ExitRow{"org.freedesktop.DBus.Error.AccessDenied", ExitCode::NotAuthorized},
    ExitRow{"org.freedesktop.DBus.Error.ServiceUnknown", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.NameHasNoOwner", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.NoReply", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.Timeout", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.TimedOut", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.Disconnected", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.FileNotFound", ExitCode::Unreachable},
    // the bus cannot start vgpud: unit missing, masked or failing
    ExitRow{"org.freedesktop.DBus.Error.Spawn.", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.systemd1.", ExitCode::Unreachable},
};

/// The row of an error name; null if there is none.
const ExitRow* row_of(std::string_view name) {
    const auto at = std::find_if(kExitCodes.begin(), kExitCodes.end(), [name](const ExitRow& row) {
        return row.name.ends_with('.') ? name.starts_with(row.name) : name == row.name;
    });
    return at == kExitCodes.end() ? nullptr : &*at;
}

std::string with_meaning(std::string_view name, const std::string& message) {
    const ExitRow* row = row_of(name);
    return row == nullptr ? message : message + std::string(row->meaning);
}

}  // namespace

/// Decodes the path: "_2d" means "-", because D-Bus paths allow only letters, digits and '_', and
/// other characters become '_' and two hexadecimal digits.
std::string target_of_path(const std::string& path) {
    constexpr std::string_view kGpu = "/gpu/", kVf = "/vf/";
    constexpr int kHexadecimal = 16;
    const std::size_t begin = path.find(kGpu);
    if (begin == std::string::npos) return path;
    std::string target;
    for (std::size_t i = begin + kGpu.size(); i < path.size(); ++i) {
        unsigned code = 0;
        const char* const digits = path.data() + i + 1;
        if (path[i] == '_' && i + 2 < path.size() &&
            std::from_chars(digits, digits + 2, code, kHexadecimal).ec == std::errc{}) {
            target += static_cast<char>(code);
            i += 2;
        } else if (path.compare(i, kVf.size(), kVf) == 0) {
            target += "/vf";
            i += kVf.size() - 1;
        } else {
            target += path[i];
        }
    }
    return target;
}

ServiceError::ServiceError(std::string name, const std::string& message)
    : std::runtime_error(with_meaning(name, message)), name_(std::move(name)) {}

ExitCode ServiceError::exit_code() const {
    const ExitRow* row = row_of(name_);
    return row == nullptr ? ExitCode::Failed : row->code;
}

}  // namespace vgpu::cli
