// SPDX-License-Identifier: MIT
//
// BusRegisters: registers of the bus interface and of the RLC (run list controller) that have a
// behaviour and belong to no other block:
//   PCIE_INDEX2/DATA2       window into the SMN (system management network): plain storage of up to
//                           State::kWords words
//   GPU_HDP_FLUSH_REQ/DONE  a flush is complete at once
//   RLC_SAFE_MODE           CMD is cleared after a write
// The device sees host writes at once, so the other registers that flush or invalidate the HDP
// (host data path) are plain storage. Registers of GPUVM, e.g. VM_INVALIDATE_ENGn_REQ, belong to
// mem. All calls are made with the VF's lock held.
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
        /// Drivers store about six words. If all words are in use, a new address replaces the
        /// oldest address.
        static constexpr std::size_t kWords = 64;
        std::array<Word, kWords> smn{};
        std::uint32_t used = 0;  ///< number of words in use
        std::uint32_t next = 0;  ///< index of the word that the next new address takes
    };

    explicit BusRegisters(RegisterFile& registers);
    BusRegisters(const BusRegisters&) = delete;
    BusRegisters& operator=(const BusRegisters&) = delete;

    void reset() { state_ = {}; }
    void drain() {}
    void save(Writer& out) const { out.value(state_); }
    /// EPROTO if the stream is short or `used` or `next` is too large.
    [[nodiscard]] Result<> load(Reader& in);

private:
    /// The value of the word at the address in PCIE_INDEX2; 0 if no write has stored this address.
    [[nodiscard]] std::uint32_t smn_read() const;
    void smn_write(std::uint32_t value);

    RegisterFile& registers_;
    State state_;
};

}  // namespace vgpu::softgpu::regs
