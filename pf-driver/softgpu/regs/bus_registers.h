// SPDX-License-Identifier: MIT
//
// Registers of the bus interface and of the RLC that have a behaviour but no other block:
//   PCIE_INDEX2/DATA2       window into SMN space: plain storage of the last few words written
//   GPU_HDP_FLUSH_REQ/DONE  a flush is done at once (host writes are coherent here)
//   HDP_MEM_COHERENCY_FLUSH_CNTL, HDP_READ_CACHE_INVALIDATE   write-only triggers, likewise
//   RLC_SAFE_MODE           CMD is cleared after a write
// Registers of GPUVM, e.g. the semaphores of VM_INVALIDATE, belong to mem.
// A flat State and the block verbs; called with the VF's lock held.
#pragma once

#include <array>
#include <cstdint>

#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace vgpu::softgpu::regs {

/// Source: Linux 6.12, amdgpu/nbio_v6_1.c, hdp_v4_0.c, gfx_v9_0.c (RLC_SAFE_MODE).
class BusRegisters {
public:
    struct State {
        struct Word {
            std::uint32_t address = 0;
            std::uint32_t value = 0;
        };
        /// Drivers store about six words; the oldest is forgotten beyond this.
        static constexpr std::size_t kWords = 64;
        std::array<Word, kWords> smn{};
        std::uint32_t used = 0;
        std::uint32_t next = 0;
    };

    explicit BusRegisters(RegisterFile& registers);
    BusRegisters(const BusRegisters&) = delete;
    BusRegisters& operator=(const BusRegisters&) = delete;

    void reset() { state_ = {}; }
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// 0 for an address that was never written.
    [[nodiscard]] std::uint32_t smn_read() const;
    void smn_write(std::uint32_t value);

    RegisterFile& registers_;
    State state_;
};

}  // namespace vgpu::softgpu::regs
