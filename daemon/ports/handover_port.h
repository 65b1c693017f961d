// SPDX-License-Identifier: MIT
//
// HandoverPort: decides which driver gets the function of a VF: in the kernel a host driver or
// vfio-pci, in user space the client that opens its vfio-user socket. HandoverRefused, with the
// possible choices, if the platform does not support a choice; WrongState if the function is in
// use. Implemented by adapters/home_handover. GPU thread only.
#pragma once

#include "daemon/ports/result.h"

#include <cstdint>
#include <string_view>

namespace vgpu::daemon {

enum class Handover {
#define HANDOVER(name, word, meaning) name,
#include "daemon/ports/handover.def"
#undef HANDOVER
};

/// "none", "vfio-user" …
[[nodiscard]] constexpr std::string_view name_of(Handover handover) {
    constexpr std::string_view kWords[] = {
#define HANDOVER(name, word, meaning) word,
#include "daemon/ports/handover.def"
#undef HANDOVER
    };
    return kWords[static_cast<std::size_t>(handover)];
}

class HandoverPort {
public:
    virtual ~HandoverPort() = default;

    /// The choice in force; never Default.
    virtual Result<Handover> get(std::uint32_t vf) = 0;
    /// No effect if `handover` is already in force.
    virtual Result<> set(std::uint32_t vf, Handover handover) = 0;
};

}  // namespace vgpu::daemon
