// SPDX-License-Identifier: MIT
//
// Emitter: writes the host code of one block, instruction by instruction. It keeps vector registers
// of the guest in host registers across instructions, writes under EXEC, and knows what a handler
// may change. The rows (rows_*.cpp) say which host instructions an operation is; they see operands
// as host registers.
//
// A vector register of the guest is four zmm ("quarters" of 16 lanes). Six groups of four hold
// cached registers, eight zmm are free for rows. Quarter q of EXEC is in k(q+1); k5 to k7 are free
// for rows, and so are all general registers but those named below.
//
// Internal to isa/translate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#define XBYAK_NO_EXCEPTION
#include <xbyak/xbyak.h>

#include "pf-driver/softgpu/isa/decode.h"
#include "pf-driver/softgpu/isa/env.h"
#include "pf-driver/softgpu/isa/translate/frame.h"

namespace vgpu::softgpu::isa {

using Xbyak::Address;
using Xbyak::Opmask;
using Xbyak::Reg32;
using Xbyak::Reg64;
using Xbyak::Zmm;

inline constexpr unsigned kQuarters = 4, kQuarterLanes = 16;

class Emitter {
public:
    /// `is_masked`: some lanes of EXEC may be off; else all are on when the block begins.
    Emitter(Xbyak::CodeGenerator& code, const Block& block, std::uint32_t mode, bool is_masked)
        : c(code), block_(block), mode_(mode), is_masked_(is_masked) {}
    Emitter(const Emitter&) = delete;
    Emitter& operator=(const Emitter&) = delete;

    Xbyak::CodeGenerator& c;

    /// The next instruction to be written is block.code[index].
    void begin(std::size_t index) { at_ = index; }
    /// Calls the instruction's handler; on an outcome other than Next the code jumps to the
    /// instruction's exit.
    void call_handler(const Instruction& i, Xbyak::Label& exit);
    /// Writes changed vector registers back; they stay cached.
    void flush();
    /// The constants that were used; behind the code.
    void write_constants();

    [[nodiscard]] bool is_ieee() const { return (mode_ & mode::kIeee) != 0; }

    // ---- vector operands

    /// Prepares sources of 32 bits and the result; false if the instruction has a form for which
    /// rows have no host code. Then source() and result() are valid for each quarter in turn.
    [[nodiscard]] bool start(const Instruction& i);
    /// The same for an operation whose only result is a mask.
    [[nodiscard]] bool start_compare(const Instruction& i);
    /// The same for operations with 64-bit sources or results, which are not newly cached.
    [[nodiscard]] bool start_wide(const Instruction& i);
    /// Source k of the present quarter; not to be changed. `scratch`: where it goes if it is not in
    /// a host register.
    Zmm source(unsigned k, unsigned quarter);
    /// Source k as 64-bit values: eight in each, in the order of unpack. A source of 32 bits is
    /// zero-extended. Uses the given registers.
    void wide_source(unsigned k, unsigned quarter, const Zmm& first, const Zmm& second);
    /// The quarter of the result with EXEC as its mask: lanes that are off keep their values.
    Zmm result(unsigned quarter);
    /// Stores 64-bit values as wide_source() gives them. Changes both registers.
    void wide_result(unsigned quarter, const Zmm& first, const Zmm& second);
    /// `k` with EXEC as its mask, so that a comparison gives 0 for lanes that are off.
    [[nodiscard]] Opmask under_exec(const Opmask& k, unsigned quarter) const {
        return is_masked_ ? k | Opmask(static_cast<int>(quarter) + 1) : k;
    }
    /// A mask that the guest has in a pair of scalar registers.
    void load_mask(const Opmask& k, std::uint32_t place, unsigned quarter);
    /// Collects one quarter of a mask; the last one writes the pair.
    void keep_mask(const Opmask& k, unsigned quarter);
    void write_mask(std::uint32_t place);
    /// Writes the same mask to another pair; directly behind write_mask().
    void write_mask_again(std::uint32_t place);
    /// k5 |= k6, the latter under EXEC.
    void or_masks(unsigned quarter);
    /// k5: the 16 lanes of a quarter, from those of its two halves of 64-bit values in k5 and k6,
    /// under EXEC. Changes the registers.
    void join_masks(unsigned quarter, const Zmm& first, const Zmm& second);

    /// All lanes of `to`.
    void broadcast(const Zmm& to, std::uint32_t value);
    /// The constant as a broadcast memory operand of 32-bit elements.
    Address constant(std::uint32_t value) { return c.ptr_b[c.rip + label_of(value)]; }
    /// The constant as memory of 32 bits.
    Address word(std::uint32_t value) { return c.dword[c.rip + label_of(value)]; }

    /// Registers that rows may change: s(0) to s(4). start() uses three more for sources.
    [[nodiscard]] static Zmm s(int which) { return Zmm(kFirstScratch + which); }

    // ---- scalar operands

    [[nodiscard]] static bool is_scalar_readable(const Operand& operand);
    void load(const Reg32& to, const Operand& operand);
    void load(const Reg64& to, const Operand& operand);
    void store(std::uint32_t place, const Reg32& from);
    void store(std::uint32_t place, const Reg64& from);
    [[nodiscard]] Address scalar32(std::uint32_t place) const {
        return c.dword[c.r12 + static_cast<std::size_t>(place * 4)];
    }
    [[nodiscard]] Address scalar64(std::uint32_t place) const {
        return c.qword[c.r12 + static_cast<std::size_t>(place * 4)];
    }
    [[nodiscard]] Address scc() const {
        return c.byte[c.r12 + static_cast<std::size_t>(offsetof(WaveState, scc))];
    }
    /// The host's carry flag becomes SCC. Changes dl.
    void carry_from_scc() {
        c.mov(c.dl, scc());
        c.add(c.dl, 0xff);
    }
    /// Lane 0 if all lanes are on, else the first one that is; into `to`.
    void load_first_lane(const Reg32& to, const Operand& operand);
    void load_lane(const Reg32& to, std::uint32_t row, std::uint32_t lane);
    /// EXEC may have a new value.
    void exec_changed();

private:
    static constexpr int kGroups = 6, kFirstSource = 24, kFirstScratch = 27;

    struct Group {
        int row = -1;
        bool is_dirty = false;
        bool is_pinned = false;
    };
    enum class From : std::uint8_t { Nothing, Cache, Memory, Uniform };
    struct Source {
        From from = From::Nothing;
        int group = 0;
        std::uint32_t row = 0;
        bool is_wide = false;
        bool negate = false;
        bool absolute = false;
    };

    [[nodiscard]] static Zmm zmm_of(int group, unsigned quarter) {
        return Zmm(group * 4 + static_cast<int>(quarter));
    }
    [[nodiscard]] Address memory_of(std::uint32_t row, unsigned quarter) const {
        return c.zword[c.r13 + static_cast<std::size_t>(row * sizeof(VgprRow) + quarter * 64)];
    }
    [[nodiscard]] int find_group(std::uint32_t row) const;
    [[nodiscard]] std::size_t next_use(std::uint32_t row, std::size_t from) const;
    int take_group();
    void load_group(int group, std::uint32_t row);
    void write_back(Group& group, int index);
    void forget();
    [[nodiscard]] bool is_plain(const Instruction& i) const;
    [[nodiscard]] bool prepare_source(const Instruction& i, unsigned k);
    void prepare_result(std::uint32_t row, bool is_read);
    [[nodiscard]] bool may_change_exec(const Instruction& i) const;
    void need_masks();
    void modify(const Zmm& to, const Zmm& from, const Source& source);
    void quarter_of(const Zmm& to, std::uint32_t row, unsigned quarter);
    void put_quarter(std::uint32_t row, unsigned quarter, const Zmm& from);
    Xbyak::Label& label_of(std::uint32_t value);

    const Block& block_;
    const std::uint32_t mode_;
    bool is_masked_;
    bool has_masks_ = false;  ///< k1 to k4 hold EXEC
    std::size_t at_ = 0;
    std::array<Group, kGroups> groups_{};
    std::array<Source, 3> sources_{};
    int result_group_ = 0;
    std::uint32_t result_row_ = 0;
    bool is_wide_result_ = false;
    std::vector<std::pair<std::uint32_t, Xbyak::Label>> constants_;
};

/// Writes one operation; false: its handler is called instead.
using EmitRow = bool (*)(Emitter&, const Instruction&);
using EmitTable = std::array<EmitRow, kOpCount + 1>;

void fill_vector_rows(EmitTable& table);
void fill_wide_rows(EmitTable& table);
void fill_compare_rows(EmitTable& table);
void fill_scalar_rows(EmitTable& table);
[[nodiscard]] const EmitTable& emit_rows();

}  // namespace vgpu::softgpu::isa
