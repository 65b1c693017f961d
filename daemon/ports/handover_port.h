// SPDX-License-Identifier: MIT
//
// HandoverPort: who gets the PCI function of a VF, as the home of the PF core does it: in the
// kernel a driver of the host or vfio-pci, in user space whoever opens the VF's vfio-user socket.
// What a home cannot do is HandoverRefused, with what it can; a function that is in use is
// WrongState. Implemented by adapters/home_handover, faked in tests; one thread, that of the GPU.
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

    /// Who gets it now; never Default.
    virtual Result<Handover> get(std::uint32_t vf) = 0;
    /// Without effect if it is so already.
    virtual Result<> set(std::uint32_t vf, Handover handover) = 0;
};

}  // namespace vgpu::daemon
