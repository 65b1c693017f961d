// SPDX-License-Identifier: MIT
//
// Places: where the active lanes of a memory instruction reach, as host code finds it out: in one
// page that the port knows, in one for each quarter of the wave, or in LDS. Code that gets past
// in_page() or in_lds() may access the bytes of active lanes and no others; whatever these checks
// do not cover jumps to the slow way, where the handler decides. So a guest reaches no byte that
// its handler would not reach, and each fault is the handler's.
//
// In the code that follows, base() of each quarter is a host address, and zmm24 to zmm27 hold the
// distance of each lane's place from it: 32 bits, below 2^31 for lanes that are on, arbitrary for
// others. If lanes may be off, all quarters have one base, edi is the distance of the first lane
// that is on, and rcx the number of that lane. Free: rax and zmm28 to zmm31.
//
// Internal to isa/translate.
#pragma once

#include "pf-driver/softgpu/isa/translate/emitter.h"
#include "pf-driver/softgpu/mem/port.h"

namespace vgpu::softgpu::isa {

class Places {
public:
    Places(Emitter& e, Emitter::Ways& ways) : e_(e), c(e.c), ways_(ways), other_(&ways.slow) {}

    /// Flat and global addresses: `bytes` at the place of each lane are in one page that allows
    /// the access; global addresses of all lanes may be in one page for each quarter.
    void in_page(const Instruction& i, u32 bytes, mem::Access access);
    /// The scalar address in rax, whose lower two bits do not count: r11 + rdx is the host address.
    void scalar_in_page(u32 bytes);
    /// The first `reach` bytes behind the address of each lane are in LDS; `row` has the addresses.
    void in_lds(u32 row, u32 reach);
    /// Checks that `bytes` more behind each place are in the page or in LDS, too. Ends the
    /// validity of all earlier checks for another call.
    void check_more(u32 bytes);

    /// Lanes follow each other, `step` bytes apart, within each quarter; if not, jumps to `other`.
    /// If lanes may be off, within the whole wave.
    void expect_run(u32 step, Xbyak::Label& other);
    /// All lanes of a quarter, or of the wave, have one place; if not, jumps to `other`.
    void expect_one(Xbyak::Label& other);
    /// Behind either of them: `offset` bytes behind the place of a quarter's first lane.
    [[nodiscard]] Xbyak::RegExp first_of(unsigned quarter, u32 offset) const;
    /// `offset` bytes behind the place of each lane of a quarter.
    [[nodiscard]] Xbyak::RegExp each_of(unsigned quarter, u32 offset) const {
        return base(quarter) + index(quarter) + offset;
    }
    [[nodiscard]] Reg64 base(unsigned quarter) const;
    [[nodiscard]] static Zmm index(unsigned quarter) {
        return Zmm(kFirstIndex + static_cast<int>(quarter));
    }

    static constexpr u32 kMaxStep = 16;

private:
    static constexpr int kFirstIndex = 24;

    void in_one_page(const Instruction& i, u32 bytes, mem::Access access);
    void in_pages(const Instruction& i, u32 bytes, mem::Access access);
    void load_address(const Instruction& i);
    void outside_windows();
    void copy_quarter(const Zmm& to, u32 row, unsigned quarter);
    void share_base();
    void check_indices(bool has_high, u32 high_row);
    void difference(unsigned quarter, const Zmm& from);
    void jump_if_different(Xbyak::Label& other);
    void load_firsts();

    Emitter& e_;
    Xbyak::CodeGenerator& c;
    Emitter::Ways& ways_;
    Xbyak::Label* other_;  ///< where code continues if a check fails
    u32 step_ = 0;         ///< between lanes; 0: all at one place
};

/// Writes the routine that finds a page for each quarter; Emitter gets its address.
void write_find_pages(Xbyak::CodeGenerator& c);

}  // namespace vgpu::softgpu::isa
