// SPDX-License-Identifier: MIT
//
// Facts: the values that a GPU's driver reports about the GPU and its VFs. A std::optional is
// absent, and not 0, if the driver does not know the value. On D-Bus the property Unknown names
// properties without a known value.
#pragma once

#include "daemon/backend/abilities.h"
#include "pf-driver/uapi/vgpu_pf.h"
#include "text/uuid.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

// These C structs have no padding, so operator== compares their bytes.
inline bool operator==(const vgpu_pf_info& a, const vgpu_pf_info& b) {
    static_assert(std::has_unique_object_representations_v<vgpu_pf_info>);
    return std::memcmp(&a, &b, sizeof a) == 0;
}
inline bool operator==(const vgpu_pf_vf& a, const vgpu_pf_vf& b) {
    static_assert(std::has_unique_object_representations_v<vgpu_pf_vf>);
    return std::memcmp(&a, &b, sizeof a) == 0;
}

namespace vgpu::daemon {

/// All in bytes.
struct VramFacts {
    std::uint64_t bytes = 0;         ///< all VRAM of the device, or the part for VFs (xe)
    std::uint64_t free_bytes = 0;    ///< VRAM that VFs could still get
    std::uint64_t largest_free = 0;  ///< the most VRAM that one VF could get
    std::uint64_t pf_bytes = 0;      ///< VRAM that the PF keeps, part of `bytes`; xe: 0

    bool operator==(const VramFacts&) const = default;
};

/// Quantum and preempt time-out of a VF, as a driver that serves its functions in turn reports
/// them. 0: unlimited.
struct DriverTiming {
    std::uint64_t quantum_us = 0;
    std::uint64_t preempt_timeout_us = 0;
    /// Longest time off the engine, if all other functions use up their quanta and time-outs.
    /// Absent if another function has an unlimited quantum or time-out, or could not be read.
    std::optional<std::uint64_t> worst_wait_us{};

    bool operator==(const DriverTiming&) const = default;
};

struct GpuFacts {
    Abilities abilities{};
    std::string address{};          ///< PCI address of the PF; empty: unknown
    std::uint32_t total_vfs = 0;    ///< VFs the device can have, at most kMaxVfsPerGpu
    std::uint32_t enabled_vfs = 0;  ///< VFs 1 to enabled_vfs exist now
    /// VFs in use that do not belong to vgpud: "vf3 (0000:03:00.3) is open through vfio-pci".
    std::vector<std::string> other_users{};
    bool is_device_lost = false;
    std::optional<VramFacts> vram{};
    std::optional<vgpu_pf_info> core{};  ///< further values of our PF core

    bool operator==(const GpuFacts&) const = default;
};

/// One VF. The state is ABSENT if the VF does not exist, has no resources, or does not belong to
/// vgpud. The uapi defines states and reasons. If the driver has no VF states, the backend reports
/// ABSENT, PROVISIONED, STOPPED or SCRUBBING.
struct VfFacts {
    std::uint32_t vf = 0;
    std::uint32_t state = VGPU_PF_VF_ABSENT;  ///< enum vgpu_pf_vf_state
    /// New each time the VF is provisioned. With a vendor's driver, 0 while the VF is ABSENT.
    std::uint32_t generation = 0;
    bool is_attached = false;  ///< true if a client or a driver uses, or may use, the function
    std::uint32_t last_error = VGPU_PF_REASON_NONE;  ///< enum vgpu_pf_reason
    std::string address{};                           ///< PCI address; empty: unknown
    std::string vgpu_type{};  ///< id of NVIDIA's vGPU type; "0": no type; empty: other driver
    std::optional<text::Uuid> uuid{};  ///< from provision(); absent if the driver keeps none
    std::optional<std::uint64_t> vram_bytes{};
    std::optional<std::uint64_t> cu_mask{};
    std::optional<std::uint32_t> doorbell_pages{};
    std::optional<std::uint64_t> service_ns{};  ///< engine time so far; xe: busy time
    std::optional<DriverTiming> driver_timing{};
    std::optional<vgpu_pf_vf> core{};  ///< further values of our PF core

    bool operator==(const VfFacts&) const = default;

    [[nodiscard]] bool has_work() const { return core && core->has_work != 0; }
    /// Part of service_ns that was served from the reservation or in gang slots; 0 without our PF
    /// core.
    [[nodiscard]] std::uint64_t reserved_ns() const { return core ? core->reserved_service_ns : 0; }
};

}  // namespace vgpu::daemon
