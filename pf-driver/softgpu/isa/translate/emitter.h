// SPDX-License-Identifier: MIT
//
// Emitter: writes the host code of one block's instructions, one after the other. The host code
// keeps vector registers of the guest in host registers across instructions, writes results only to
// the lanes that EXEC enables, and reloads everything that a handler may have changed. For an
// operation with host code, a function in rows_*.cpp, called a row (EmitFunction), chooses the host
// instructions; the Emitter gives the row host registers as operands.
//
// A parameter `row` is something else: the number of a vector register of the guest. A cached
// vector register occupies a group of four zmm registers, one for each quarter of the wave (16
// lanes). zmm0 to zmm23 are six groups, which cache six guest registers; zmm24 to zmm31 hold
// sources and temporaries. Quarter q of EXEC is in k(q+1). Rows may use k5 and k6, the general
// registers that a call may change (rax, rcx, rdx, rsi, rdi, r8 to r11), and rbp. k0 and k7 collect
// a mask (collect_mask()).
//
// Internal to isa/translate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
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

/// The code to which a block jumps after the handler of one instruction has returned an outcome
/// other than Next.
struct Exit {
    Xbyak::Label label;
    bool is_used = false;
};

/// A comment such as "loads X" on a member of this class means that the member writes host code
/// that loads X.
class Emitter {
public:
    /// `mode`: the MODE for which the code is valid. `is_masked`: true if EXEC may disable lanes;
    /// else all lanes are on when the block begins. `find_pages`: Routines::find_pages
    /// (translator.h).
    Emitter(Xbyak::CodeGenerator& code, const Block& block, std::uint32_t mode, bool is_masked,
            const std::byte* find_pages)
        : c(code), block_(block), mode_(mode), is_masked_(is_masked), find_pages_(find_pages) {}
    Emitter(const Emitter&) = delete;
    Emitter& operator=(const Emitter&) = delete;

    Xbyak::CodeGenerator& c;  ///< receives the host code

    /// Begins the instruction block.code[index], whose exit is `exit`.
    void begin(std::size_t index, Exit& exit) {
        at_ = index;
        exit_ = &exit;
    }
    /// Writes a call of the instruction's handler. If the outcome is not Next, the code jumps to
    /// the instruction's exit.
    void call_handler(const Instruction& i);
    /// Writes changed vector registers back to Wave::vgprs; all registers stay cached.
    void flush();
    /// Writes the slow paths, which call handlers, and the constants. Call this after the last
    /// instruction. Calls `must_stop` before each slow path; false if `must_stop` returned true.
    [[nodiscard]] bool write_slow_paths(const std::function<bool()>& must_stop);

    /// True if the code is for waves with MODE.IEEE set.
    [[nodiscard]] bool is_ieee() const { return (mode_ & mode::kIeee) != 0; }

    // ---- vector operands

    /// Prepares sources of 32 bits and the result: source() and result() may then be called for
    /// each quarter in turn. False if rows have no host code for a modifier or an operand of the
    /// instruction.
    [[nodiscard]] bool start(const Instruction& i);
    /// Like start(), for an operation whose only result is a mask.
    [[nodiscard]] bool start_compare(const Instruction& i);
    /// Like start(), for operations with 64-bit sources or results; adds no register to the cache.
    [[nodiscard]] bool start_wide(const Instruction& i);
    /// The host register that holds source k of the quarter. The caller must not change the
    /// register.
    Zmm source(unsigned k, unsigned quarter);
    /// Loads source k as 64-bit values, eight into each of the two registers, in the order of the
    /// host's unpack instructions (VPUNPCKLDQ and VPUNPCKHDQ). A source of 32 bits is
    /// zero-extended. May change rax and temp(4).
    void wide_source(unsigned k, unsigned quarter, const Zmm& first, const Zmm& second);
    /// The host register of the quarter's result, with EXEC as its mask: lanes that are off keep
    /// their values.
    Zmm result(unsigned quarter);
    /// Stores the 64-bit values in `first` and `second`, which have the order of wide_source(), to
    /// the result register; for a 32-bit result, stores only their low words. Changes temp(4), and
    /// may change `first`.
    void wide_result(unsigned quarter, const Zmm& first, const Zmm& second);
    /// `k` with EXEC as its mask, so that a comparison gives 0 for lanes that are off.
    [[nodiscard]] Opmask under_exec(const Opmask& k, unsigned quarter) const {
        return is_masked_ ? k | Opmask(static_cast<int>(quarter) + 1) : k;
    }
    /// Loads into `k` one quarter of the 64-bit mask in the guest's scalar registers `reg` and
    /// `reg` + 1.
    void load_mask(const Opmask& k, std::uint32_t reg, unsigned quarter);
    /// Adds the mask of a quarter, in `k`, to the mask in k0 and k7. Call this for each quarter in
    /// ascending order.
    void collect_mask(const Opmask& k, unsigned quarter);
    /// Writes the collected mask to scalar registers `reg` and `reg` + 1.
    void write_mask(std::uint32_t reg);
    /// Writes the mask of write_mask() to a second pair, too. Call this directly after
    /// write_mask().
    void write_mask_again(std::uint32_t reg);
    /// k5 |= k6 & (EXEC of the quarter).
    void or_masks(unsigned quarter);
    /// k5 and k6 are masks of the eight values in each register of wide_source(). Sets k5 to the
    /// mask of the quarter's 16 lanes, ANDed with EXEC. Uses `first` and `second` as temporaries.
    void join_masks(unsigned quarter, const Zmm& first, const Zmm& second);

    /// Sets all lanes of `to` to the value.
    void broadcast(const Zmm& to, std::uint32_t value);
    /// A memory operand that broadcasts the 32-bit constant to all lanes.
    Address constant(std::uint32_t value) { return c.ptr_b[c.rip + label_of(value)]; }
    /// A memory operand for the 32-bit constant.
    Address word(std::uint32_t value) { return c.dword[c.rip + label_of(value)]; }

    /// Temporary registers of rows: temp(0) to temp(4), which are zmm27 to zmm31. zmm24 to zmm26
    /// hold sources.
    [[nodiscard]] static Zmm temp(int which) { return Zmm(kFirstScratch + which); }

    // ---- scalar operands

    /// True if load() supports the operand: a scalar register or a constant.
    [[nodiscard]] static bool is_scalar_readable(const Operand& operand);
    /// Loads a scalar operand; requires is_scalar_readable().
    void load(const Reg32& to, const Operand& operand);
    void load(const Reg64& to, const Operand& operand);
    /// Stores to the scalar register `reg`, 64 bits to `reg` and `reg` + 1.
    void store(std::uint32_t reg, const Reg32& from);
    void store(std::uint32_t reg, const Reg64& from);
    [[nodiscard]] Address scalar32(std::uint32_t reg) const {
        return c.dword[c.r12 + static_cast<std::size_t>(reg * 4)];
    }
    [[nodiscard]] Address scalar64(std::uint32_t reg) const {
        return c.qword[c.r12 + static_cast<std::size_t>(reg * 4)];
    }
    [[nodiscard]] Address scc() const {
        return c.byte[c.r12 + static_cast<std::size_t>(offsetof(WaveState, scc))];
    }
    /// Sets the host's carry flag to SCC. Changes dl.
    void carry_from_scc() {
        c.mov(c.dl, scc());
        c.add(c.dl, 0xff);
    }
    /// Loads the operand's value in the first lane that is on, or in lane 0 if all lanes are off.
    /// May change rcx.
    void load_first_lane(const Reg32& to, const Operand& operand);
    /// Loads the value of register `row` in the given lane, even if the lane is off.
    void load_lane(const Reg32& to, std::uint32_t row, std::uint32_t lane);
    /// Call this after code that may have changed EXEC.
    void exec_changed();
    /// Call this after code that has changed `count` scalar registers from `reg` on.
    void scalars_changed(std::uint32_t reg, std::uint32_t count);

    // ---- memory operations

    /// Labels of an instruction with a fast and a slow path: the slow path, which calls the
    /// handler, begins at `slow`; both paths end at `done`.
    struct Paths {
        Xbyak::Label slow, done;
    };
    /// Caches each vector register that both the instruction and a later instruction name. The
    /// instruction must name at most six vector registers; the result has `results` registers. If
    /// is_masked(), also writes the registers of source 0 back to Wave::vgprs, from which
    /// load_found_lane() reads them.
    void prepare_registers(const Instruction& i, unsigned results);
    /// Begins the fast path. The fast path must not jump to the slow path after it has changed a
    /// guest register or memory.
    [[nodiscard]] Paths& begin_fast(const Instruction& i);
    /// Ends the fast path. The slow path is written after the block's code.
    void end_fast(Paths& paths) { c.L(paths.done); }
    /// If is_masked(), loads the number of the first lane that is on into rcx, and jumps to `none`
    /// if all lanes are off. Otherwise writes no code, because lane 0 is the first.
    void find_first_lane(Xbyak::Label& none);
    /// Loads the value of register `row`, which must belong to source 0, in the lane that
    /// find_first_lane() found. Requires prepare_registers().
    void load_found_lane(const Reg32& to, std::uint32_t row);
    /// The host register that holds a quarter of register `row`, for reading. If `row` is not
    /// cached, loads the quarter into `otherwise` and returns `otherwise`.
    Zmm quarter(std::uint32_t row, unsigned quarter, const Zmm& otherwise);
    /// Writes a quarter of register `row`, in the lanes that are on.
    void put_quarter(std::uint32_t row, unsigned quarter, const Zmm& from);
    [[nodiscard]] const std::byte* find_pages() const { return find_pages_; }
    /// True if EXEC may disable lanes at the present instruction.
    [[nodiscard]] bool is_masked() const { return is_masked_; }
    /// The mask of the lanes of a quarter that are on; only if is_masked().
    [[nodiscard]] static Opmask lanes_on(unsigned quarter) {
        return Opmask(static_cast<int>(quarter) + 1);
    }
    /// `to` with a mask that zeroes the lanes that are off.
    [[nodiscard]] Zmm zero_masked(const Zmm& to, unsigned quarter) const {
        return is_masked_ ? to | lanes_on(quarter) | c.T_z : to;
    }
    /// `to` with a mask that leaves the lanes that are off unchanged.
    template <class To> [[nodiscard]] To merge_masked(const To& to, unsigned quarter) const {
        return is_masked_ ? to | lanes_on(quarter) : to;
    }

private:
    static constexpr int kGroups = 6, kFirstSource = 24, kFirstScratch = 27;

    /// Four host registers, which cache the guest's register `row` (-1: none). A pinned group keeps
    /// its register during the present instruction.
    struct Group {
        int row = -1;
        bool is_dirty = false;
        bool is_pinned = false;
    };
    /// Where source() finds a source. Nothing: the operation has no such source. Cache: in a group.
    /// Memory: in Wave::vgprs. Uniform: all lanes have the same value.
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
    void ensure_masks();
    void modify(const Zmm& to, const Zmm& from, const Source& source);
    void load_quarter(const Zmm& to, std::uint32_t row, unsigned quarter);
    void load_masks();
    void call(const Instruction& i, Exit& exit);
    void write_constants();
    void pin_row(std::uint32_t row, bool is_loaded);
    Xbyak::Label& label_of(std::uint32_t value);

    /// A slow path that write_slow_paths() still has to write. `groups` and `has_masks` are the
    /// state of the register cache at the beginning of the fast path; the slow path begins and ends
    /// with the cache in this state.
    struct SlowPath {
        Paths paths;
        const Instruction* instruction = nullptr;
        Exit* exit = nullptr;
        std::array<Group, kGroups> groups{};
        bool has_masks = false;
    };
    void write_slow_path(SlowPath& path);

    const Block& block_;
    const std::uint32_t mode_;
    bool is_masked_;
    bool has_masks_ = false;  ///< true if k1 to k4 hold EXEC
    const std::byte* const find_pages_;
    std::size_t at_ = 0;               ///< index of the present instruction in the block
    Exit* exit_ = nullptr;             ///< exit of the present instruction
    std::deque<SlowPath> slow_paths_;  ///< a deque, because labels must not move
    std::array<Group, kGroups> groups_{};
    std::array<Source, 3> sources_{};
    int result_group_ = 0;
    std::uint32_t result_row_ = 0;
    bool is_wide_result_ = false;
    std::vector<std::pair<std::uint32_t, Xbyak::Label>> constants_;  ///< written after the code
};

/// Writes the host code of one instruction. False if the row has written no code: the block then
/// calls the handler.
using EmitFunction = bool (*)(Emitter&, const Instruction&);
/// Indexed by Op; nullptr: the operation has no row.
using EmitTable = std::array<EmitFunction, kOpCount + 1>;

/// Each function enters the rows of one rows_*.cpp file.
void fill_vector_rows(EmitTable& table);
void fill_wide_rows(EmitTable& table);
void fill_compare_rows(EmitTable& table);
void fill_scalar_rows(EmitTable& table);
void fill_memory_rows(EmitTable& table);
/// The table with all rows; built once.
[[nodiscard]] const EmitTable& emit_rows();

}  // namespace vgpu::softgpu::isa
