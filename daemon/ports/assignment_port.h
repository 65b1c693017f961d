// SPDX-License-Identifier: MIT
//
// AssignmentPort: reads and sets the assignment mode of a VF, which decides who gets the VF's
// function: nobody, a driver of the host, vfio-pci, or, if the PF core is a process, the client
// that opens the VF's vfio-user socket. Implemented by adapters/platform_assignment and
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

    /// The mode in force. Default is returned only if the VF does not exist and the last set() was
    /// with Default.
    virtual Result<AssignmentMode> get(std::uint32_t vf) = 0;
    /// Sets the mode. Does nothing if `assignment_mode` is already in force. Fails with
    /// AssignmentRefused, and names the reason, if the platform or the driver cannot set the mode;
    /// with WrongState (vgpu_pf.ko) or VfsInUse (a vendor's driver) if the function is in use.
    virtual Result<> set(std::uint32_t vf, AssignmentMode assignment_mode, TakeFromHost take) = 0;
};

}  // namespace vgpu::daemon
