// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/translate/emitter.h"

#include <algorithm>
#include <bit>

namespace vgpu::softgpu::isa {

namespace {

constexpr std::uint32_t kExec = static_cast<std::uint32_t>(ScalarReg::Exec);
constexpr std::uint32_t kSign = 0x80000000, kMagnitude = 0x7fffffff;
/// The zmm register that wide_source() and wide_result() use as a temporary.
constexpr int kWideTemporary = 31;
/// Operands of VSHUFPS that select the low words or the high words of unpacked 64-bit values.
constexpr std::uint8_t kLowWords = 0x88, kHighWords = 0xdd;

bool names_row(const Instruction& i, std::uint32_t row) {
    if (row >= i.dst && row < u32{i.dst} + i.dst_regs) return true;
    return std::ranges::any_of(i.src, [&](const Operand& source) {
        return source.kind == OperandKind::Vgpr && row >= source.value &&
               row < source.value + source.regs;
    });
}

bool is_float(Type type) {
    return type == Type::f32 || type == Type::f64;
}

bool is_wide(Type type) {
    return type == Type::u64 || type == Type::i64 || type == Type::f64;
}

}  // namespace

// ---- cached registers

int Emitter::find_group(std::uint32_t row) const {
    for (int g = 0; g < kGroups; ++g)
        if (groups_[static_cast<std::size_t>(g)].row == static_cast<int>(row)) return g;
    return -1;
}

/// Index of the first instruction from `from` on that names the row; the block's size if none.
std::size_t Emitter::next_use(std::uint32_t row, std::size_t from) const {
    while (from < block_.code.size() && !names_row(block_.code[from], row)) ++from;
    return from;
}

/// Frees and returns a group that is not pinned: an empty group if there is one, else the group
/// whose register has the latest next use.
int Emitter::take_group() {
    int best = -1;
    std::size_t latest = 0;
    for (int g = 0; g < kGroups; ++g) {
        const Group& group = groups_[static_cast<std::size_t>(g)];
        if (group.is_pinned) continue;
        const std::size_t use = group.row < 0
                                    ? block_.code.size() + 1
                                    : next_use(static_cast<std::uint32_t>(group.row), at_ + 1);
        if (best >= 0 && use <= latest) continue;
        best = g;
        latest = use;
    }
    Group& group = groups_[static_cast<std::size_t>(best)];
    write_back(group, best);
    group = {};
    return best;
}

void Emitter::load_group(int group, std::uint32_t row) {
    for (unsigned q = 0; q < kQuarters; ++q) c.vmovdqa32(zmm_of(group, q), memory_of(row, q));
}

void Emitter::write_back(Group& group, int index) {
    if (!group.is_dirty) return;
    const auto row = static_cast<std::uint32_t>(group.row);
    for (unsigned q = 0; q < kQuarters; ++q) c.vmovdqa32(memory_of(row, q), zmm_of(index, q));
    group.is_dirty = false;
}

void Emitter::flush() {
    for (int g = 0; g < kGroups; ++g) write_back(groups_[static_cast<std::size_t>(g)], g);
}

/// Marks all groups as empty and the masks as not loaded. Call this after writing code that may
/// change any vector register of the guest.
void Emitter::forget() {
    groups_.fill({});
    has_masks_ = false;
}

// ---- handlers

/// True if the handler may write EXEC; for SOPP and SOP1 always true, to be safe. Handlers of LDS
/// and vector memory operations never write EXEC. The comparisons of encodings use the order of
/// enum Encoding.
bool Emitter::may_change_exec(const Instruction& i) const {
    const OpInfo& row = info(i.op);
    constexpr std::uint32_t widest_result = 16;
    if (row.encoding <= Encoding::Smem)
        return row.encoding == Encoding::Sopp || row.trait == Trait::WritesExec ||
               i.dst + widest_result > kExec || row.encoding == Encoding::Sop1;
    if (row.encoding > Encoding::Vop3p) return false;
    return row.trait == Trait::WritesExec || i.sdst + 2u > kExec ||
           (row.dst == Type::sgpr && i.dst >= kExec);
}

void Emitter::call_handler(const Instruction& i) {
    flush();
    call(i, *exit_);
    forget();
    if (may_change_exec(i)) exec_changed();
}

/// Writes the call of a handler. After the call, no vector or mask register holds a value of the
/// guest.
void Emitter::call(const Instruction& i, Exit& exit) {
    exit.is_used = true;
    c.vzeroupper();
    c.mov(c.rdi, c.r14);
    c.mov(c.rsi, std::bit_cast<std::uintptr_t>(&i));
    c.mov(c.rax, std::bit_cast<std::uintptr_t>(i.handler));
    c.call(c.rax);
    c.test(c.al, c.al);
    c.jnz(exit.label, Xbyak::CodeGenerator::T_NEAR);
}

void Emitter::write_slow_path(SlowPath& path) {
    c.L(path.paths.slow);
    for (int g = 0; g < kGroups; ++g) write_back(path.groups[static_cast<std::size_t>(g)], g);
    call(*path.instruction, *path.exit);
    for (int g = 0; g < kGroups; ++g) {
        const int row = path.groups[static_cast<std::size_t>(g)].row;
        if (row >= 0) load_group(g, static_cast<std::uint32_t>(row));
    }
    if (path.has_masks) load_masks();
    c.jmp(path.paths.done, Xbyak::CodeGenerator::T_NEAR);
}

bool Emitter::write_slow_paths(const std::function<bool()>& must_stop) {
    for (SlowPath& path : slow_paths_) {
        if (must_stop()) return false;
        write_slow_path(path);
    }
    write_constants();
    return true;
}

void Emitter::exec_changed() {
    is_masked_ = true;
    has_masks_ = false;
}

void Emitter::ensure_masks() {
    if (!is_masked_ || has_masks_) return;
    load_masks();
    has_masks_ = true;
}

void Emitter::load_masks() {
    for (int q = 0; q < static_cast<int>(kQuarters); ++q)
        c.kmovw(Opmask(q + 1), c.word[c.r12 + kExec * 4 + static_cast<std::size_t>(q) * 2]);
}

// ---- vector operands

/// True if the instruction has no SDWA, no DPP, no output modifier (clamp, OMOD), and no 16-bit
/// result that keeps the other half of the register.
bool Emitter::is_plain(const Instruction& i) const {
    return i.modifier == Modifier::None && !i.clamp && i.omod == 0 && !i.keep_high;
}

bool Emitter::prepare_source(const Instruction& i, unsigned k) {
    const Operand& operand = i.src[k];
    const Type type = info(i.op).src[k];
    Source& source = sources_[k];
    source = {};
    if (type == Type::none || type == Type::mask) return true;
    source.is_wide = is_wide(type);
    source.negate = is_float(type) && operand.negate;
    source.absolute = is_float(type) && operand.absolute;
    if (operand.kind == OperandKind::None || operand.kind == OperandKind::Special) return false;
    source.from = operand.kind == OperandKind::Vgpr ? From::Memory : From::Uniform;
    source.row = operand.value;
    return true;
}

bool Emitter::start_compare(const Instruction& i) {
    if (!is_plain(i)) return false;
    for (Group& group : groups_) group.is_pinned = false;
    for (unsigned k = 0; k < sources_.size(); ++k)
        if (!prepare_source(i, k)) return false;
    for (unsigned k = 0; k < sources_.size(); ++k) {
        Source& source = sources_[k];
        const Zmm own(kFirstSource + static_cast<int>(k));
        if (source.from == From::Uniform) {
            if (i.src[k].kind == OperandKind::Scalar)
                c.vpbroadcastd(own, scalar32(i.src[k].value));
            else
                broadcast(own, i.src[k].value);
            modify(own, own, source);
        }
        if (source.from != From::Memory) continue;
        int group = find_group(source.row);
        if (group < 0 && next_use(source.row, at_ + 1) == block_.code.size()) continue;
        if (group < 0) {
            group = take_group();
            groups_[static_cast<std::size_t>(group)].row = static_cast<int>(source.row);
            load_group(group, source.row);
        }
        groups_[static_cast<std::size_t>(group)].is_pinned = true;
        source.from = From::Cache;
        source.group = group;
    }
    ensure_masks();
    return true;
}

bool Emitter::start(const Instruction& i) {
    if (!start_compare(i)) return false;
    int group = find_group(i.dst);
    if (group < 0) {
        group = take_group();
        if (is_masked_) load_group(group, i.dst);
    }
    groups_[static_cast<std::size_t>(group)] = {i.dst, true, true};
    result_group_ = group;
    return true;
}

bool Emitter::start_wide(const Instruction& i) {
    if (!is_plain(i)) return false;
    for (unsigned k = 0; k < sources_.size(); ++k)
        if (!prepare_source(i, k) || sources_[k].absolute) return false;
    result_row_ = i.dst;
    is_wide_result_ = is_wide(info(i.op).dst);
    ensure_masks();
    return true;
}

/// Applies ABS, then NEG; writes no code if the source has neither. `to` and `from` may be the same
/// register.
void Emitter::modify(const Zmm& to, const Zmm& from, const Source& source) {
    if (source.absolute) c.vpandd(to, from, constant(kMagnitude));
    if (source.negate) c.vpxord(to, source.absolute ? to : from, constant(kSign));
}

Zmm Emitter::source(unsigned k, unsigned quarter) {
    const Source& source = sources_[k];
    const Zmm own(kFirstSource + static_cast<int>(k));
    const bool is_modified = source.negate || source.absolute;
    if (source.from == From::Memory) c.vmovdqa32(own, memory_of(source.row, quarter));
    if (source.from == From::Cache && !is_modified) return zmm_of(source.group, quarter);
    if (source.from == From::Cache) modify(own, zmm_of(source.group, quarter), source);
    if (source.from == From::Memory) modify(own, own, source);
    return own;
}

Zmm Emitter::result(unsigned quarter) {
    const Zmm to = zmm_of(result_group_, quarter);
    return is_masked_ ? to | Opmask(static_cast<int>(quarter) + 1) : to;
}

// ---- 64-bit operands

void Emitter::load_quarter(const Zmm& to, std::uint32_t row, unsigned quarter) {
    const int group = find_group(row);
    if (group >= 0)
        c.vmovdqa32(to, zmm_of(group, quarter));
    else
        c.vmovdqa32(to, memory_of(row, quarter));
}

void Emitter::put_quarter(std::uint32_t row, unsigned quarter, const Zmm& from) {
    const int group = find_group(row);
    const Opmask lanes(static_cast<int>(quarter) + 1);
    if (group < 0) {
        const Address to = memory_of(row, quarter);
        c.vmovdqa32(is_masked_ ? to | lanes : to, from);
        return;
    }
    groups_[static_cast<std::size_t>(group)].is_dirty = true;
    const Zmm to = zmm_of(group, quarter);
    c.vmovdqa32(is_masked_ ? to | lanes : to, from);
}

void Emitter::wide_source(unsigned k, unsigned quarter, const Zmm& first, const Zmm& second) {
    const Source& source = sources_[k];
    const Zmm temporary(kWideTemporary);
    if (source.from == From::Uniform) {
        const Operand& operand = block_.code[at_].src[k];
        if (source.is_wide)
            load(c.rax, operand);
        else
            load(c.eax, operand);
        c.vpbroadcastq(first, c.rax);
        c.vmovdqa32(second, first);
    } else {
        load_quarter(temporary, source.row, quarter);
        if (source.is_wide)
            load_quarter(second, source.row + 1, quarter);
        else
            c.vpxord(second, second, second);
        c.vpunpckldq(first, temporary, second);
        c.vpunpckhdq(second, temporary, second);
    }
    if (source.negate) {
        c.mov(c.rax, u64{kSign} << 32);
        c.vpbroadcastq(temporary, c.rax);
        c.vpxorq(first, first, temporary);
        c.vpxorq(second, second, temporary);
    }
}

void Emitter::wide_result(unsigned quarter, const Zmm& first, const Zmm& second) {
    const Zmm temporary(kWideTemporary);
    c.vshufps(temporary, first, second, kLowWords);
    if (is_wide_result_) c.vshufps(first, first, second, kHighWords);
    put_quarter(result_row_, quarter, temporary);
    if (is_wide_result_) put_quarter(result_row_ + 1, quarter, first);
}

// ---- memory operations

/// Caches a row if a later instruction names it, and keeps a cached row in the cache during the
/// present instruction. Without `is_loaded`, the old contents of the row are not needed.
void Emitter::pin_row(std::uint32_t row, bool is_loaded) {
    int group = find_group(row);
    if (group < 0) {
        if (next_use(row, at_ + 1) == block_.code.size()) return;
        group = take_group();
        groups_[static_cast<std::size_t>(group)].row = static_cast<int>(row);
        if (is_loaded) load_group(group, row);
    }
    groups_[static_cast<std::size_t>(group)].is_pinned = true;
}

void Emitter::prepare_registers(const Instruction& i, unsigned results) {
    for (Group& group : groups_) group.is_pinned = false;
    ensure_masks();
    for (const Operand& source : i.src)
        for (u32 k = 0; source.kind == OperandKind::Vgpr && k < source.regs; ++k)
            pin_row(source.value + k, true);
    for (u32 k = 0; k < results; ++k) pin_row(i.dst + k, is_masked_);
    for (u32 k = 0; is_masked_ && k < i.src[0].regs; ++k) {  // load_found_lane() reads memory
        const int group = find_group(i.src[0].value + k);
        if (group >= 0) write_back(groups_[static_cast<std::size_t>(group)], group);
    }
}

Emitter::Paths& Emitter::begin_fast(const Instruction& i) {
    SlowPath& path = slow_paths_.emplace_back();
    path.instruction = &i;
    path.exit = exit_;
    path.groups = groups_;
    path.has_masks = has_masks_;
    return path.paths;
}

void Emitter::find_first_lane(Xbyak::Label& none) {
    if (!is_masked_) return;
    c.tzcnt(c.rcx, scalar64(kExec));  // sets the carry flag if no lane is on
    c.jc(none, Xbyak::CodeGenerator::T_NEAR);
}

/// If no lane can be off, the first lane is lane 0. Does not write a cached register back: the jump
/// in find_first_lane() may skip this code, but the Emitter would take the register for clean.
void Emitter::load_found_lane(const Reg32& to, std::uint32_t row) {
    const int group = find_group(row);
    if (!is_masked_ && group >= 0) {
        c.vmovd(to, Xbyak::Xmm(group * 4));
        return;
    }
    const auto row_offset = static_cast<std::size_t>(row * sizeof(VgprRow));
    if (!is_masked_)
        c.mov(to, c.dword[c.r13 + row_offset]);
    else
        c.mov(to, c.dword[c.r13 + c.rcx * 4 + row_offset]);
}

Zmm Emitter::quarter(std::uint32_t row, unsigned quarter, const Zmm& otherwise) {
    const int group = find_group(row);
    if (group >= 0) return zmm_of(group, quarter);
    c.vmovdqa32(otherwise, memory_of(row, quarter));
    return otherwise;
}

// ---- masks

void Emitter::load_mask(const Opmask& k, std::uint32_t reg, unsigned quarter) {
    c.kmovw(k, c.word[c.r12 + static_cast<std::size_t>(reg * 4 + quarter * 2)]);
}

/// k0 collects quarters 0 and 1, k7 quarters 2 and 3.
void Emitter::collect_mask(const Opmask& k, unsigned quarter) {
    const Opmask half(quarter < 2 ? 0 : 7);
    if (quarter % 2 == 0)
        c.kmovw(half, k);
    else
        c.kunpckwd(half, k, half);
}

void Emitter::write_mask(std::uint32_t reg) {
    c.kunpckdq(c.k0, c.k7, c.k0);
    c.kmovq(scalar64(reg), c.k0);
    if (reg + 2 > kExec) exec_changed();
}

void Emitter::write_mask_again(std::uint32_t reg) {
    c.kmovq(scalar64(reg), c.k0);
    if (reg + 2 > kExec) exec_changed();
}

void Emitter::or_masks(unsigned quarter) {
    if (is_masked_) c.kandw(c.k6, c.k6, Opmask(static_cast<int>(quarter) + 1));
    c.korw(c.k5, c.k5, c.k6);
}

void Emitter::join_masks(unsigned quarter, const Zmm& first, const Zmm& second) {
    c.vpmovm2q(first, c.k5);
    c.vpmovm2q(second, c.k6);
    c.vshufps(first, first, second, kLowWords);
    c.vpmovd2m(c.k5, first);
    if (is_masked_) c.kandw(c.k5, c.k5, Opmask(static_cast<int>(quarter) + 1));
}

// ---- constants

Xbyak::Label& Emitter::label_of(std::uint32_t value) {
    const auto at =
        std::ranges::find(constants_, value, [](const auto& known) { return known.first; });
    if (at != constants_.end()) return at->second;
    return constants_.emplace_back(value, Xbyak::Label()).second;
}

void Emitter::broadcast(const Zmm& to, std::uint32_t value) {
    if (value == 0)
        c.vpxord(to, to, to);
    else
        c.vpbroadcastd(to, word(value));
}

void Emitter::write_constants() {
    c.align(4);
    for (auto& [value, label] : constants_) {
        c.L(label);
        c.dd(value);
    }
}

// ---- scalar operands

bool Emitter::is_scalar_readable(const Operand& operand) {
    return operand.kind != OperandKind::None && operand.kind != OperandKind::Special &&
           operand.kind != OperandKind::Vgpr;
}

void Emitter::load(const Reg32& to, const Operand& operand) {
    if (operand.kind == OperandKind::Scalar)
        c.mov(to, scalar32(operand.value));
    else
        c.mov(to, operand.value);
}

void Emitter::load(const Reg64& to, const Operand& operand) {
    if (operand.kind == OperandKind::Scalar) {
        c.mov(to, scalar64(operand.value));
        return;
    }
    u64 value = operand.value;
    if (operand.kind == OperandKind::ConstantSigned)
        value = static_cast<u64>(i64{static_cast<i32>(operand.value)});
    if (operand.kind == OperandKind::ConstantHigh) value = u64{operand.value} << 32;
    if (operand.kind == OperandKind::InverseTwoPi) value = enc::kInverseTwoPiDouble;
    c.mov(to, value);
}

void Emitter::scalars_changed(std::uint32_t reg, std::uint32_t count) {
    if (reg + count > kExec) exec_changed();
}

void Emitter::store(std::uint32_t reg, const Reg32& from) {
    c.mov(scalar32(reg), from);
    scalars_changed(reg, 1);
}

void Emitter::store(std::uint32_t reg, const Reg64& from) {
    c.mov(scalar64(reg), from);
    scalars_changed(reg, 2);
}

void Emitter::load_lane(const Reg32& to, std::uint32_t row, std::uint32_t lane) {
    const int group = find_group(row);
    if (group >= 0) write_back(groups_[static_cast<std::size_t>(group)], group);
    c.mov(to, c.dword[c.r13 + static_cast<std::size_t>(row * sizeof(VgprRow) + lane * 4)]);
}

void Emitter::load_first_lane(const Reg32& to, const Operand& operand) {
    if (operand.kind != OperandKind::Vgpr) return load(to, operand);
    if (!is_masked_) return load_lane(to, operand.value, 0);
    const int group = find_group(operand.value);
    if (group >= 0) write_back(groups_[static_cast<std::size_t>(group)], group);
    c.tzcnt(c.rcx, scalar64(kExec));
    c.and_(c.ecx, static_cast<int>(kLanes) - 1);  // TZCNT gives 64 if no lane is on
    c.mov(to,
          c.dword[c.r13 + c.rcx * 4 + static_cast<std::size_t>(operand.value * sizeof(VgprRow))]);
}

}  // namespace vgpu::softgpu::isa
