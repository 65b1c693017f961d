// SPDX-License-Identifier: MIT
#include "cli/service.h"

#include <array>
#include <string_view>

namespace vgpu::cli {

namespace {

struct ExitRow {
    std::string_view name;
    ExitCode code;
};

/// One row for each name that a script may want to tell apart; all others are Failed.
constexpr std::array kExitCodes{
    ExitRow{"org.vgpu1.Error.NoSuchGpu", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.NoSuchVf", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.UnknownOption", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.WrongType", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.OutOfRange", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.InvalidName", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.InvalidOwner", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.BadConfiguration", ExitCode::Usage},
    ExitRow{"org.vgpu1.Error.NoSuchLabel", ExitCode::NotFound},
    ExitRow{"org.vgpu1.Error.NoFreeVf", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoMatchingVf", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoVram", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoSchedule", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoDoorbells", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NoComputeUnits", ExitCode::NoCapacity},
    ExitRow{"org.vgpu1.Error.NotAuthorized", ExitCode::NotAuthorized},
    ExitRow{"org.vgpu1.Error.StateReadOnly", ExitCode::ReadOnly},
    ExitRow{"org.vgpu1.Error.StateNotWritten", ExitCode::ReadOnly},
    ExitRow{"org.vgpu1.Error.PfLost", ExitCode::Lost},
    ExitRow{"org.vgpu1.Error.DeviceLost", ExitCode::Lost},
    ExitRow{"org.vgpu1.Error.Stopping", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.AccessDenied", ExitCode::NotAuthorized},
    ExitRow{"org.freedesktop.DBus.Error.ServiceUnknown", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.NameHasNoOwner", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.NoReply", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.Timeout", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.Disconnected", ExitCode::Unreachable},
    ExitRow{"org.freedesktop.DBus.Error.FileNotFound", ExitCode::Unreachable},
};

}  // namespace

ExitCode ServiceError::exit_code() const {
    for (const ExitRow& row : kExitCodes)
        if (row.name == name_) return row.code;
    return ExitCode::Failed;
}

}  // namespace vgpu::cli
