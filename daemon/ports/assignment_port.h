// SPDX-License-Identifier: MIT
//
// AssignmentPort: sets which driver gets the function of a VF: in the kernel a host driver or
// vfio-pci, in user space the client that opens its vfio-user socket. AssignmentRefused, with the
// possible choices, if the platform does not support a choice; WrongState if the function is in
// use. Implemented by adapters/platform_assignment and backend/sriov/assignment. Used in the GPU's
// thread only.
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

/// Whether a VF may be taken from the driver of this host that has it (mode Host).
enum class TakeFromHost { No, Yes };

class AssignmentPort {
public:
    virtual ~AssignmentPort() = default;

    /// The choice in force; never Default.
    virtual Result<AssignmentMode> get(std::uint32_t vf) = 0;
    /// No effect if `assignment_mode` is already in force.
    virtual Result<> set(std::uint32_t vf, AssignmentMode assignment_mode, TakeFromHost take) = 0;
};

}  // namespace vgpu::daemon
