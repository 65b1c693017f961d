// SPDX-License-Identifier: MIT
//
// AssignmentPort: sets the assignment mode of a VF: which driver gets the VF's function. In the
// kernel this is a host driver or vfio-pci, in user space the client that opens the VF's vfio-user
// socket. set() fails with AssignmentRefused if the platform does not support the mode; the error
// names the possible modes. If the function is in use, set() fails with WrongState (our PF core) or
// with VfsInUse (a vendor's driver). Implemented by adapters/platform_assignment and
// backend/sriov/assignment. Used in the GPU's thread only.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

enum class AssignmentMode {
#define ASSIGNMENT_MODE(name, word, meaning) name,
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
};

/// "none", "vfio-user" …
[[nodiscard]] constexpr std::string_view name_of(AssignmentMode assignment_mode) {
    constexpr std::string_view kWords[] = {
#define ASSIGNMENT_MODE(name, word, meaning) word,
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
    };
    return kWords[static_cast<std::size_t>(assignment_mode)];
}

/// Whether set() may unbind the host's driver of a VF in mode Host.
enum class TakeFromHost { No, Yes };

class AssignmentPort {
public:
    virtual ~AssignmentPort() = default;

    /// The mode in force. Default only if set() chose Default and the VF does not exist yet.
    virtual Result<AssignmentMode> get(std::uint32_t vf) = 0;
    /// No effect if `assignment_mode` is already in force.
    virtual Result<> set(std::uint32_t vf, AssignmentMode assignment_mode, TakeFromHost take) = 0;
};

}  // namespace vgpu::daemon
