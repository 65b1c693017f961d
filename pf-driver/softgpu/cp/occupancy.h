// SPDX-License-Identifier: MIT
//
// Occupancy: tracks which compute units (CUs) have room for another work-group (group). A CU of
// gfx900 holds 40 waves, 64 KiB of LDS and 256 KiB of vector registers. Only CUs in the VF's mask
// take new groups. CUs are distributed to the shader engines round robin, as ShaderArrays
// (regs/shader_arrays.h) reports them to the driver. A queue may limit itself to some CUs of each
// shader engine (COMPUTE_STATIC_THREAD_MGMT_SE0..3).
//
// The limits of the CUs also bound the host memory of resident groups (groups that have started but
// not ended). Only two functions can exceed these limits: force(), by one group of each kernel, and
// restore(), which the caller bounds by is_overfull().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "pf-driver/softgpu/isa/dispatch.h"
#include "pf-driver/softgpu/regs/shader_arrays.h"

namespace vgpu::softgpu::cp {

/// Vega ISA manual and LLVM AMDGPUUsage, gfx900: 4 SIMDs, each with 10 waves and 256 VGPRs of 64
/// lanes.
inline constexpr std::uint32_t kWavesPerCu = 40;
inline constexpr std::uint32_t kVgprBytesPerCu = 256u << 10;
inline constexpr std::uint32_t kLdsBytesPerCu = 64u << 10;
inline constexpr std::uint32_t kBytesPerVgpr = 256;  // 64 lanes of 4 bytes

/// The part of a CU that one group takes; equal for all groups of a kernel.
struct Footprint {
    std::uint32_t waves = 0;
    std::uint32_t lds_bytes = 0;
    std::uint32_t vgpr_bytes = 0;

    [[nodiscard]] static Footprint of(const isa::DispatchSpec& spec);
    /// True if an empty CU can hold the group.
    [[nodiscard]] bool fits_a_cu() const;
};

/// The place of a CU in the shader engines.
struct CuPlace {
    std::uint32_t engine = 0;  ///< index of the shader engine
    std::uint32_t cu = 0;      ///< index of the CU in its shader engine
};
/// The CUs that a queue may use: a bit per CU, by shader engine.
using CuMask = std::array<std::uint32_t, regs::ShaderArrays::kEngines>;
inline constexpr CuMask kAllCus{~0u, ~0u, ~0u, ~0u};

/// The CUs of one VF. VFs that share a CU of the device do not count each other's groups, because
/// only one VF at a time is on the engine.
class Occupancy {
public:
    explicit Occupancy(std::uint32_t compute_units);

    /// Sets the CUs of the VF: a bit per CU; a mask that selects no CU counts as CU 0. Groups on a
    /// CU that leaves the mask stay until they end.
    void set_mask(std::uint64_t mask);
    /// True if a CU that the queue may use has room. Here and below, a queue mask without any CU of
    /// the VF counts as all CUs, because otherwise the queue could never finish a kernel.
    [[nodiscard]] bool can_take(const Footprint& need, const CuMask& queue) const;
    /// Takes room on a CU and returns the CU's index; nullopt if no CU that the queue may use has
    /// room.
    [[nodiscard]] std::optional<std::uint32_t> take(const Footprint& need, const CuMask& queue);
    /// Takes room on a CU that the queue may use, even if all such CUs are full, and returns the
    /// CU's index. Every kernel may have one such group resident, so that an endless kernel that
    /// fills the CUs cannot keep other kernels from running.
    [[nodiscard]] std::uint32_t force(const Footprint& need, const CuMask& queue);
    /// The place of a CU. A CU that has left the mask keeps its former place.
    [[nodiscard]] CuPlace place(std::uint32_t cu) const { return units_[cu].place; }
    /// Takes room on CU `cu` for a group that a load restores, even if the CU is full.
    void restore(std::uint32_t cu, const Footprint& need);
    /// True if the groups take more than twice the room of all CUs.
    [[nodiscard]] bool is_overfull() const;
    /// Returns the room of a group.
    void release(std::uint32_t cu, const Footprint& need);
    /// Frees all room; the mask stays.
    void clear();
    [[nodiscard]] std::uint32_t compute_units() const {
        return static_cast<std::uint32_t>(units_.size());
    }

private:
    struct Unit {
        Footprint used;
        bool is_allowed = true;
        CuPlace place;
    };
    [[nodiscard]] static bool has_room(const Unit& unit, const Footprint& need);
    [[nodiscard]] static bool is_open(const Unit& unit, const CuMask& queue);
    [[nodiscard]] const CuMask& usable_mask(const CuMask& queue) const;
    void assign_places();
    static void occupy(Unit& unit, const Footprint& need);

    std::vector<Unit> units_;
    /// The CU where take() begins to look, so that groups are spread over the CUs.
    std::uint32_t next_ = 0;
};

}  // namespace vgpu::softgpu::cp
