// SPDX-License-Identifier: MIT
//
// RegisterFile: one function's bank of BAR5 registers. Most registers are plain storage; blocks
// claim the registers that have a behaviour. There are two ways of access:
//   mmio_read / mmio_write   the function's own BAR accesses, filtered by regs.def's access column
//   read / write             privileged paths: PM4 and SDMA packets, RLCG, PSP, other blocks
// Claims are made once while the GPU is built. All calls for a VF's bank are made with the VF's
// lock held, all calls for the PF's bank on the io thread (gpu.h).
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

/// The state of a gate of a VF. For example, the register write gate (VGPU_GATES.REGWR_EN) is open
/// while the VF has full access.
enum class Gate : std::uint8_t { Shut, Open };
/// Selects the access column of hw/regs.def. For a VF, the registers of the PF-only range do not
/// exist.
enum class Role : std::uint8_t { Pf, Vf };

class RegisterFile {
public:
    /// `index` is the register, `stored` the value in its storage. Returns the value that the
    /// reader gets.
    using Read = std::function<std::uint32_t(RegisterIndex index, std::uint32_t stored)>;
    /// Runs after `value` was stored in register `index`; may change storage through set().
    using Write = std::function<void(RegisterIndex index, std::uint32_t value)>;

    /// Sets all registers to their reset values.
    explicit RegisterFile(Role role);

    /// Gives the registers [first, first + count) a behaviour. An empty function keeps plain
    /// storage for reads or writes. A second claim of a register is a programming error (assert).
    /// The functions live as long as the register file and may use read(), write(), get() and set()
    /// of any register.
    void claim(RegisterIndex first, std::uint32_t count, Read read, Write write);

    /// read() and write() run the behaviour and ignore access rights. A register number beyond the
    /// bank reads all ones and ignores writes.
    [[nodiscard]] std::uint32_t read(RegisterIndex index);
    void write(RegisterIndex index, std::uint32_t value);

    /// get() and set() access storage and run no behaviour. Beyond the bank, get() returns all ones
    /// and set() does nothing.
    [[nodiscard]] std::uint32_t get(RegisterIndex index) const;
    void set(RegisterIndex index, std::uint32_t value);

    /// An MMIO read by the function, checked against the access column of regs.def. A register that
    /// regs.def does not list is RW, except that the PF-only range is NA for a VF. An NA (no
    /// access) register reads 0; a number beyond the bank reads all ones. Both reads count as
    /// refused.
    [[nodiscard]] std::uint32_t mmio_read(RegisterIndex index);
    /// Refuses and counts a write to an NA or RO register, or to an FA register (full access only)
    /// while the gate is shut. The guest sees no error, as on hardware.
    void mmio_write(RegisterIndex index, std::uint32_t value, Gate write_gate);
    /// MMIO of BAR5 bytes of any size and alignment, split into registers. Reads beyond the
    /// registers give all ones. A write of some bytes of a register, as drivers do to
    /// MAILBOX_CONTROL, keeps the other bytes and runs the behaviour once.
    void mmio_read(std::uint64_t byte_offset, std::span<std::byte> out);
    void mmio_write(std::uint64_t byte_offset, std::span<const std::byte> data, Gate write_gate);
    /// Number of refused MMIO accesses since the device started; reset() does not change it.
    [[nodiscard]] std::uint64_t refused() const { return refused_; }

    /// From now on, read() and write() assert that the calling thread holds `lock`, the lock of the
    /// VF that owns the bank. So a thread that serves one VF cannot use the bank of another VF.
    void set_lock(const PiMutex& lock) { lock_ = &lock; }
    /// The assertion of set_lock(), for blocks that a caller reaches without read() or write().
    void check_lock() const {
        assert((lock_ == nullptr || lock_->is_held()) && "this thread serves another VF");
    }

    void reset();  ///< every register to its reset value; claims are kept
    void drain() {}
    /// Saves storage only; claims belong to the blocks.
    void save(Writer& out) const;
    /// Restores storage and runs no behaviour: a block whose state depends on registers loads later
    /// and reads the registers. EPROTO if the stream is short or of another size.
    [[nodiscard]] Result<> load(Reader& in);

private:
    struct Claim {
        Read read;
        Write write;
    };
    std::vector<std::uint32_t> storage_;   // HW_REG_COUNT values
    std::vector<std::uint16_t> claim_of_;  // per register: index into claims_
    std::vector<std::uint8_t> access_;     // per register: enum hw_reg_access
    std::vector<Claim> claims_{1};         // claim 0 has no functions: plain storage
    std::uint64_t refused_ = 0;
    const PiMutex* lock_ = nullptr;
};

}  // namespace vgpu::softgpu::regs
