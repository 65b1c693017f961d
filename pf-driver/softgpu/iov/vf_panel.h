// SPDX-License-Identifier: MIT
//
// VfPanel: what the PF can do to a VF and learn about it, as the PF's registers and bulk operations
// need it. The composition root implements it over the VF's blocks; tests fake it. Every call names
// a VF that exists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/result.h"
#include "pf-driver/softgpu/base/units.h"

namespace vgpu::softgpu::iov {

/// Since the device started; an FLR changes nothing here.
struct VfStatistics {
    std::uint64_t run_ns = 0;
    std::uint64_t switches = 0;
    std::uint64_t wave_instructions = 0;
    std::uint64_t doorbells_latched = 0;
    std::uint64_t faults = 0;
    std::uint64_t bad_packets = 0;
    std::uint64_t bad_accesses = 0;
    std::uint64_t illegal_instructions = 0;
};

enum class SwitchMode : std::uint8_t { Pointer, TrueCopy };

class VfPanel {
public:
    virtual ~VfPanel() = default;

    // VRAM; io thread
    [[nodiscard]] virtual Result<> commit_vram(VfId vf, DeviceOffset root, Bytes size) = 0;
    virtual void release_vram(VfId vf) = 0;

    // registers of the VF's bank; io thread
    virtual void set_doorbell_pages(VfId vf, std::uint32_t first, std::uint32_t count) = 0;
    virtual void set_cu_mask(VfId vf, std::uint64_t mask) = 0;
    /// Length of a stay on the engine, from the next RUN on; 0: no end.
    virtual void set_quantum(VfId vf, std::uint32_t quantum_us) = 0;
    virtual void set_gates(VfId vf, std::uint32_t gates) = 0;
    [[nodiscard]] virtual std::uint32_t gates(VfId vf) const = 0;
    virtual void request_flr(VfId vf) = 0;
    virtual void acknowledge_flr(VfId vf) = 0;
    [[nodiscard]] virtual std::uint32_t reset_flags(VfId vf) const = 0;  ///< VGPU_RESET
    [[nodiscard]] virtual std::uint32_t status(VfId vf) const = 0;       ///< VGPU_STATUS
    [[nodiscard]] virtual VfStatistics statistics(VfId vf) const = 0;
    virtual void set_switch_mode(SwitchMode mode) = 0;

    // bulk operations; op thread
    [[nodiscard]] virtual bool read_vram(VfId vf, VfOffset offset, std::span<std::byte> out) = 0;
    [[nodiscard]] virtual bool write_vram(VfId vf, VfOffset offset,
                                          std::span<const std::byte> data) = 0;
    virtual Result<> scrub_state(VfId vf) = 0;
    [[nodiscard]] virtual Result<std::vector<std::byte>> save_state(VfId vf) = 0;
    [[nodiscard]] virtual Result<> load_state(VfId vf, std::span<const std::byte> stream) = 0;
};

}  // namespace vgpu::softgpu::iov
