// SPDX-License-Identifier: MIT
//
// AddressChecks: writes host code that checks which memory the active lanes of an instruction
// access. The checks accept three cases: all lanes in one page, the lanes of each quarter in one
// page, or all lanes in LDS. The port must keep the translation of each page. Code after in_page()
// or in_lds() may access the bytes of active lanes and no others. If a check fails, the code jumps
// to the slow path, which calls the handler. So a guest reaches no byte that the handler would not
// reach, and only the handler finds faults.
//
// After the checks, base() of each quarter is a host address, and zmm24 to zmm27 hold the distance
// of each lane's bytes from the base: 32 bits, below 2^31 for lanes that are on, arbitrary for all
// other lanes. If lanes may be off, all quarters have one base, edi is the distance of the first
// lane that is on, and rcx the number of that lane. rax and zmm28 to zmm31 are free.
//
// Internal to isa/translate.
#pragma once

#include "pf-driver/softgpu/isa/translate/emitter.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::isa {

class AddressChecks {
public:
    AddressChecks(Emitter& e, Emitter::Paths& paths)
        : e_(e), c(e.c), paths_(paths), other_(&paths.slow) {}

    /// Checks flat and global addresses: `bytes` at the address of each lane are in one page that
    /// allows the access. If all lanes are on, global addresses may be in one such page for each
    /// quarter.
    void in_page(const Instruction& i, u32 bytes, mem::Access access);
    /// Checks that `bytes` at the scalar address in rax are in one readable page; ignores the lower
    /// two bits of the address. Afterwards r11 + rdx is the host address.
    void scalar_in_page(u32 bytes);
    /// Checks that the first `reach` bytes at the address of each lane are in LDS. The vector
    /// register `row` holds the addresses.
    void in_lds(u32 row, u32 reach);
    /// Checks that `bytes` more bytes of each lane, after the bytes already checked, are in the
    /// page or in LDS, too. Call this at most once.
    void check_more(u32 bytes);

    /// Checks that the addresses of the lanes of each quarter increase by `step` bytes (at most
    /// kMaxStep) from lane to lane; if not, jumps to `other`. If lanes may be off, checks the lanes
    /// of the whole wave.
    void expect_run(u32 step, Xbyak::Label& other);
    /// Checks that all lanes of each quarter, or of the whole wave, have one address; if not, jumps
    /// to `other`.
    void expect_one(Xbyak::Label& other);
    /// The host address `offset` bytes after the address of a quarter's first lane. Requires
    /// expect_run() or expect_one().
    [[nodiscard]] Xbyak::RegExp first_of(unsigned quarter, u32 offset) const;
    /// The host addresses `offset` bytes after the address of each lane of a quarter.
    [[nodiscard]] Xbyak::RegExp each_of(unsigned quarter, u32 offset) const {
        return base(quarter) + index(quarter) + offset;
    }
    [[nodiscard]] Reg64 base(unsigned quarter) const;
    /// The distances of a quarter's lanes from base().
    [[nodiscard]] static Zmm index(unsigned quarter) {
        return Zmm(kFirstIndex + static_cast<int>(quarter));
    }

    static constexpr u32 kMaxStep = 16;

private:
    static constexpr int kFirstIndex = 24;

    void in_one_page(const Instruction& i, u32 bytes, mem::Access access);
    void in_pages(const Instruction& i, u32 bytes, mem::Access access);
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
    u32 step_ = 0;         ///< bytes from lane to lane; 0: all lanes are at one address
};

/// Writes the routine that finds a page for each quarter (Routines::find_pages).
void write_find_pages(Xbyak::CodeGenerator& c);

}  // namespace vgpu::softgpu::isa
