// SPDX-License-Identifier: MIT
//
// AddressChecks: writes host code that checks which memory the active lanes (those that are on) of
// an instruction access, so that a guest reaches no byte that the handler would not reach. The
// checks accept three cases: all active lanes in one page, the lanes of each quarter (16 lanes) in
// one page, or all active lanes in LDS. The mem::Port must have a cached translation of each page.
// Code after write_page_check() or write_lds_check() may access the bytes of active lanes and no
// others. If a check fails, the code jumps to the slow path (Emitter::Paths), which calls the
// handler; only the handler finds faults.
//
// After the checks, the register base(q) holds a host address, and zmm(24 + q) holds the distance
// of each lane of quarter q from this base. A distance counts bytes in 32 bits; it is below 2^31
// for a lane that is on, and arbitrary for a lane that is off. If lanes may be off, all quarters
// have one base, edi is the distance of the first lane that is on, and rcx is the number of that
// lane. rax and zmm28 to zmm31 are free.
//
// Internal to isa/translate.
#pragma once

#include "pf-driver/softgpu/isa/translate/emitter.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::isa {

/// A comment such as "checks X" on a member of this class means that the member writes host code
/// that checks X.
class AddressChecks {
public:
    AddressChecks(Emitter& e, Emitter::Paths& paths)
        : e_(e), c(e.c), paths_(paths), other_(&paths.slow) {}

    /// Checks, for flat and global addresses, that the first `bytes` bytes of all active lanes are
    /// in one page that permits the access. If all lanes are on, each quarter of a global access
    /// may have its own page.
    void write_page_check(const Instruction& i, u32 bytes, mem::Access access);
    /// Checks that the first `bytes` bytes at the scalar address in rax are in one readable page;
    /// ignores the lower two bits of the address. Afterwards r11 + rdx is the host address.
    void write_scalar_page_check(u32 bytes);
    /// Checks that the first `reach` bytes at the address of each active lane are in LDS. The
    /// vector register `row` holds the addresses.
    void write_lds_check(u32 row, u32 reach);
    /// Checks that the next `bytes` bytes of each active lane, after the bytes already checked, are
    /// also in the lane's page or in LDS. Call this at most once.
    void write_tail_check(u32 bytes);

    /// Checks that the addresses of the lanes of each quarter increase by `step` bytes (at most
    /// kMaxStep) from lane to lane; if not, jumps to `other`. If lanes may be off, all lanes that
    /// are on must fit one such sequence over the whole wave.
    void write_run_check(u32 step, Xbyak::Label& other);
    /// Checks that all lanes of each quarter have one address; if not, jumps to `other`. If lanes
    /// may be off, all lanes that are on must have the same address.
    void write_same_check(Xbyak::Label& other);
    /// Memory operand: `offset` bytes after the address of a quarter's first lane. Uses the pattern
    /// of the last write_run_check() or write_same_check(), one of which must precede.
    [[nodiscard]] Xbyak::RegExp first_lane_operand(unsigned quarter, u32 offset) const;
    /// Vector memory operand (VSIB): `offset` bytes after the address of each lane of a quarter.
    [[nodiscard]] Xbyak::RegExp vsib_operand(unsigned quarter, u32 offset) const {
        return base(quarter) + index(quarter) + offset;
    }
    /// The register with the host address from which the distances of a quarter count.
    [[nodiscard]] Reg64 base(unsigned quarter) const;
    /// The register with the distances of a quarter's lanes from base().
    [[nodiscard]] static Zmm index(unsigned quarter) {
        return Zmm(kFirstIndex + static_cast<int>(quarter));
    }

    /// The largest `step` of write_run_check(), in bytes.
    static constexpr u32 kMaxStep = 16;

private:
    static constexpr int kFirstIndex = 24;

    void in_one_page(const Instruction& i, u32 bytes, mem::Access access);
    void write_pages_check(const Instruction& i, u32 bytes, mem::Access access);
    void load_address(const Instruction& i);
    void check_outside_windows();
    void copy_quarter(const Zmm& to, u32 row, unsigned quarter);
    void share_base();
    void check_indices(bool has_high, u32 high_row);
    void collect_differences(unsigned quarter, const Zmm& from);
    void jump_if_different(Xbyak::Label& other);
    void load_firsts();

    Emitter& e_;
    Xbyak::CodeGenerator& c;
    Emitter::Paths& paths_;
    Xbyak::Label* other_;  ///< where code continues if a check fails
    u32 step_ = 0;         ///< `step` of the last write_run_check(); 0 after write_same_check()
};

/// Writes the routine that finds a page for each quarter (Routines::find_pages).
void write_find_pages(Xbyak::CodeGenerator& c);

}  // namespace vgpu::softgpu::isa
