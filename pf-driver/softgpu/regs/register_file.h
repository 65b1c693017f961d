// SPDX-License-Identifier: MIT
//
// Register file: one function's bank of BAR5 registers. Most are plain storage; blocks claim the
// registers that have a behaviour. There are two ways of access:
//   mmio_read / mmio_write   the function's own BAR accesses, filtered by regs.def's access column
//   read / write             privileged paths: PM4 and SDMA packets, RLCG, PSP, other blocks
// Claims are made once while the GPU is built. All calls are made with the VF's lock held, or for
// the PF's bank on the io thread.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/block.h"
#include "pf-driver/softgpu/base/ids.h"
#include "pf-driver/softgpu/base/pi_mutex.h"

namespace vgpu::softgpu::regs {

/// The state of a gate of a VF, for example of the register write gate, which is open while the VF
/// has full access (VGPU_GATES.REGWR_EN).
enum class Gate : std::uint8_t { Shut, Open };
/// Selects the access column of hw/regs.def; a VF does not have the PF-only range at all.
enum class Role : std::uint8_t { Pf, Vf };

class RegisterFile {
public:
    /// `index` is the register, `stored` the value in its storage. Returns the value to read.
    using Read = std::function<std::uint32_t(RegisterIndex index, std::uint32_t stored)>;
    /// Runs after `value` was stored in register `index`; may change storage through set().
    using Write = std::function<void(RegisterIndex index, std::uint32_t value)>;

    /// Sets all registers to their reset values.
    explicit RegisterFile(Role role);

    /// Gives [first, first + count) a behaviour; an empty function keeps plain storage for that
    /// direction. A register claimed twice is a programming error (assert). The functions live as
    /// long as the register file and may use read(), write(), get() and set() of any register.
    void claim(RegisterIndex first, std::uint32_t count, Read read, Write write);

    /// read() and write() run the behaviour and ignore access rights. A register that does not
    /// exist reads all ones, and writes to it vanish.
    [[nodiscard]] std::uint32_t read(RegisterIndex index);
    void write(RegisterIndex index, std::uint32_t value);

    /// get() and set() access storage and run no behaviour.
    [[nodiscard]] std::uint32_t get(RegisterIndex index) const;
    void set(RegisterIndex index, std::uint32_t value);

    /// MMIO of the function, by the access column of regs.def. A register that regs.def does not
    /// list is RW, but NA for a VF if it is in the PF-only range. An NA (no access) register reads
    /// 0; a number beyond the bank reads all ones. Both reads count as refused.
    [[nodiscard]] std::uint32_t mmio_read(RegisterIndex index);
    /// Refuses and counts a write to an NA or RO register, or to an FA register (full access only)
    /// while the gate is shut. The guest sees no error, as on hardware.
    void mmio_write(RegisterIndex index, std::uint32_t value, Gate write_gate);
    /// MMIO of bytes of BAR5, of any size and alignment, split into registers. Reads beyond the
    /// registers give all ones. A partial write, as drivers do to MAILBOX_CONTROL, triggers its
    /// register once.
    void mmio_read(std::uint64_t byte_offset, std::span<std::byte> out);
    void mmio_write(std::uint64_t byte_offset, std::span<const std::byte> data, Gate write_gate);
    /// Number of refused MMIO accesses since the device started; reset() does not change it.
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    /// From now on, accesses that run behaviour require that the calling thread holds `lock`, the
    /// VF lock of the bank's owner (assert). So a thread that serves one VF cannot use the bank of
    /// another.
    void set_lock(const PiMutex& lock) { lock_ = &lock; }
    void check_lock() const {
        assert((lock_ == nullptr || lock_->is_held()) && "this thread serves another VF");
    }

    void reset();  ///< every register to its reset value; claims are kept
    void drain() {}
    /// Saves storage only; claims belong to the blocks.
    void save(Writer& out) const;
    /// Runs no behaviour. Blocks whose state follows registers load later and read the registers.
    [[nodiscard]] Result<> load(Reader& in);

private:
    struct Claim {
        Read read;
        Write write;
    };
    std::vector<std::uint32_t> storage_;   // HW_REG_COUNT values
    std::vector<std::uint16_t> claim_of_;  // per register: index into claims_, 0: none
    std::vector<std::uint8_t> access_;     // per register: enum hw_reg_access
    std::vector<Claim> claims_{1};
    std::uint64_t refused_ = 0;
    const PiMutex* lock_ = nullptr;
};

}  // namespace vgpu::softgpu::regs
