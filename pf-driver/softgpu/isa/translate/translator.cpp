// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/isa/translate/translator.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <bit>

#include "pf-driver/softgpu/isa/translate/address_checks.h"
#include "pf-driver/softgpu/isa/translate/emitter.h"

namespace vgpu::softgpu::isa {

namespace {

using Xbyak::Label;
constexpr auto kNear = Xbyak::CodeGenerator::T_NEAR;

static_assert(offsetof(WaveState, scalar) == 0);

#define VGPU_FRAME(c, name) (c).qword[(c).rbx + static_cast<std::size_t>(offsetof(Frame, name))]

std::uint64_t address(const void* of) {
    return std::bit_cast<std::uintptr_t>(of);
}

/// Writes the code of one block: the head, which checks whether the block may run; the instructions
/// twice, for a full EXEC and for any other EXEC; and the exits.
class BlockWriter {
public:
    BlockWriter(Xbyak::CodeGenerator& code, Block& block, std::uint32_t mode,
                const Routines& routines, const StopCheck& must_stop)
        : c(code), block_(block), mode_(mode), routines_(routines), must_stop_(must_stop) {}

    /// False if the code is not complete, because of `must_stop` or for lack of room.
    [[nodiscard]] bool write();
    /// Offset, from the block's head, of the exit that is the initial target of link `which`.
    [[nodiscard]] std::size_t link_offset(std::size_t which) const { return link_at_[which]; }
    [[nodiscard]] bool is_stopped() const { return is_stopped_; }

private:
    void write_head();
    [[nodiscard]] bool write_body(bool is_masked);
    [[nodiscard]] bool is_over();
    bool write_branch(Emitter& emitter, const Instruction& i);
    void write_link(std::size_t which);
    void write_exits();
    void write_link_exit(std::size_t which, std::uint64_t pc);
    void write_jump_to_leave();

    Xbyak::CodeGenerator& c;
    Block& block_;
    const std::uint32_t mode_;
    const Routines& routines_;
    const StopCheck& must_stop_;
    bool is_stopped_ = false;
    Label leave_at_head_, masked_;
    std::array<Exit, DecodeCache::kBlockInstructions> handler_exits_;
    std::array<std::size_t, 2> link_at_{};
};

bool BlockWriter::write() {
    write_head();
    if (!write_body(false)) return false;
    c.L(masked_);
    if (!write_body(true)) return false;
    write_exits();
    return true;
}

/// True if the translation must stop or the code does not fit into the chunk. A whole translation
/// takes longer than a VF may take to stop. So write_body() calls is_over() before each
/// instruction, and write_slow_paths() calls is_over() before each slow path.
bool BlockWriter::is_over() {
    is_stopped_ = must_stop_();
    return is_stopped_ || Xbyak::GetError() != Xbyak::ERR_NONE;
}

/// Writes the checks that the run loop makes before a block, except the check for address watches:
/// the run loop makes that check before it enters translated code.
void BlockWriter::write_head() {
    c.cmp(VGPU_FRAME(c, instructions_left), 0);
    c.jle(leave_at_head_, kNear);
    c.mov(c.rax, VGPU_FRAME(c, stop));
    c.cmp(c.byte[c.rax], 0);
    c.jne(leave_at_head_, kNear);
    c.mov(c.rax, VGPU_FRAME(c, epoch));
    c.mov(c.rcx, VGPU_FRAME(c, valid_epoch));
    c.mov(c.rax, c.qword[c.rax]);
    c.cmp(c.rax, c.qword[c.rcx]);
    c.jne(leave_at_head_, kNear);
    c.cmp(VGPU_FRAME(c, vgpr_count), block_.vgprs_needed);
    c.jb(leave_at_head_, kNear);
    c.mov(c.eax, c.dword[c.r12 + static_cast<std::size_t>(offsetof(WaveState, mode))]);
    c.and_(c.eax, mode::kTranslated);
    c.cmp(c.eax, mode_ & mode::kTranslated);
    c.jne(leave_at_head_, kNear);
    constexpr std::size_t exec = static_cast<std::size_t>(ScalarReg::Exec) * 4;
    c.cmp(c.qword[c.r12 + exec], ~0u);  // the immediate is sign-extended
    c.jne(masked_, kNear);
}

bool BlockWriter::write_body(bool is_masked) {
    Emitter emitter(c, block_, mode_, is_masked, routines_.find_pages);
    const EmitTable& rows = emit_rows();
    bool has_branched = false;
    for (std::size_t at = 0; at < block_.code.size(); ++at) {
        if (is_over()) return false;
        const Instruction& i = block_.code[at];
        emitter.begin(at, handler_exits_[at]);
        has_branched = i.ends_block && write_branch(emitter, i);
        if (has_branched) break;
        const EmitFunction row = rows[static_cast<std::size_t>(i.op)];
        if (row != nullptr && row(emitter, i)) continue;
        emitter.call_handler(i);
    }
    if (!has_branched) {
        emitter.flush();
        write_link(0);
    }
    return emitter.write_slow_paths([this] { return is_over(); });
}

/// Writes the code of s_branch or of a conditional branch on SCC, VCC or EXEC: link 0 leads to the
/// instruction after the branch, link 1 to the target. False for any other instruction.
bool BlockWriter::write_branch(Emitter& emitter, const Instruction& i) {
    constexpr std::size_t scc = static_cast<std::size_t>(offsetof(WaveState, scc));
    constexpr std::size_t vcc = static_cast<std::size_t>(ScalarReg::Vcc) * 4;
    constexpr std::size_t exec = static_cast<std::size_t>(ScalarReg::Exec) * 4;
    const bool is_negative =
        i.op == Op::s_cbranch_scc0 || i.op == Op::s_cbranch_vccz || i.op == Op::s_cbranch_execz;
    const bool is_scc = i.op == Op::s_cbranch_scc0 || i.op == Op::s_cbranch_scc1;
    const bool is_vcc = i.op == Op::s_cbranch_vccz || i.op == Op::s_cbranch_vccnz;
    const bool is_exec = i.op == Op::s_cbranch_execz || i.op == Op::s_cbranch_execnz;
    if (i.op != Op::s_branch && !is_scc && !is_vcc && !is_exec) return false;
    emitter.flush();
    Label taken;
    if (i.op != Op::s_branch) {
        if (is_scc)
            c.cmp(c.byte[c.r12 + scc], 0);
        else
            c.cmp(c.qword[c.r12 + (is_vcc ? vcc : exec)], 0);
        if (is_negative)
            c.jz(taken, kNear);
        else
            c.jnz(taken, kNear);
        write_link(0);
    }
    c.L(taken);
    write_link(1);
    return true;
}

/// Writes code for the end of the block, which counts the block's instructions and jumps to where
/// link `which` points.
void BlockWriter::write_link(std::size_t which) {
    c.sub(VGPU_FRAME(c, instructions_left), static_cast<std::uint32_t>(block_.code.size()));
    c.mov(c.rax, address(&block_.links[which]));
    c.jmp(c.qword[c.rax]);
}

void BlockWriter::write_jump_to_leave() {
    c.mov(c.rcx, address(routines_.leave));
    c.jmp(c.rcx);
}

void BlockWriter::write_link_exit(std::size_t which, std::uint64_t pc) {
    link_at_[which] = c.getSize();
    c.mov(c.rax, pc);
    c.mov(c.qword[c.r12 + static_cast<std::size_t>(offsetof(WaveState, pc))], c.rax);
    c.mov(c.rax, address(&block_.links[which]));
    c.mov(VGPU_FRAME(c, link), c.rax);
    c.xor_(c.eax, c.eax);
    write_jump_to_leave();
}

/// After a branch, taken or not, the pc is limited to 48 bits and to a multiple of 4, as jump() in
/// unit_scalar.cpp does. The exit of a handler expects the handler's Outcome in al.
void BlockWriter::write_exits() {
    const Instruction& last = block_.code.back();
    constexpr std::uint64_t address_bits = 0xfffffffffffc;
    const std::uint64_t next_pc = last.pc + last.size;
    const std::uint64_t target = next_pc + static_cast<std::uint64_t>(std::int64_t{last.imm} * 4);
    write_link_exit(0, last.ends_block ? next_pc & address_bits : next_pc);
    write_link_exit(1, target & address_bits);
    c.L(leave_at_head_);
    c.mov(c.rax, block_.pc);
    c.mov(c.qword[c.r12 + static_cast<std::size_t>(offsetof(WaveState, pc))], c.rax);
    c.xor_(c.eax, c.eax);
    write_jump_to_leave();
    Label common;
    for (std::size_t at = 0; at < block_.code.size(); ++at) {
        if (!handler_exits_[at].is_used) continue;
        c.L(handler_exits_[at].label);
        c.mov(c.rcx, address(&block_.code[at]));
        c.jmp(common, kNear);
    }
    c.L(common);
    c.mov(VGPU_FRAME(c, last), c.rcx);
    c.mov(c.rcx, address(block_.code.data()));
    c.mov(VGPU_FRAME(c, first), c.rcx);
    c.movzx(c.eax, c.al);
    write_jump_to_leave();
}

/// Executes a serializing instruction. Otherwise the processor might execute old code after new
/// code was written through another mapping (Intel SDM, "Handling Self- and Cross-Modifying Code").
void serialize() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __cpuid(0, a, b, c, d);
}

}  // namespace

bool can_translate() {
    static const bool can =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vbmi2") &&
        __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2");
    return can;
}

Translator::Translator(CodeShare& share) : share_(share) {}

Translator::~Translator() {
    reset();
}

/// Lets `write` emit code into the last chunk, through the writable mapping. The code must not
/// depend on its address, because it runs in the executable mapping. Returns the address of the
/// code in the executable mapping; nullptr if the chunk has no room, or if `write` returns false.
template <class Write> const std::byte* Translator::append_code(Write write) {
    constexpr std::size_t line = 64;
    const CodeChunk& chunk = chunks_.back();
    const std::size_t room = CodeMemory::kChunk.count - used_;
    if (room < line) return nullptr;
    Xbyak::ClearError();
    Xbyak::CodeGenerator code(room, chunk.write + used_);
    if (!write(code) || Xbyak::GetError() != Xbyak::ERR_NONE) return nullptr;
    serialize();
    const std::byte* const run = chunk.run + used_;
    used_ += (code.getSize() + line - 1) / line * line;
    return run;
}

/// Allocates a chunk. In the first chunk, also writes the code that enters translated code, and the
/// two Routines. False if the VF's share has no chunk left.
bool Translator::add_chunk() {
    const CodeChunk chunk = share_.take();
    if (chunk.write == nullptr) return false;
    chunks_.push_back(chunk);
    used_ = 0;
    if (chunks_.size() == 1) write_entry();
    return true;
}

/// Writes the code that enters translated code, then the two Routines. The five pushes also align
/// the stack to 16 bytes for calls.
void Translator::write_entry() {
    std::size_t leave = 0, find_pages = 0;
    const std::byte* const run = append_code([&](Xbyak::CodeGenerator& c) {
        const std::array saved{c.rbx, c.rbp, c.r12, c.r13, c.r14};
        for (const Reg64& reg : saved) c.push(reg);
        c.mov(c.rbx, c.rdi);
        c.mov(c.r12, VGPU_FRAME(c, wave));
        c.mov(c.r13, VGPU_FRAME(c, vgprs));
        c.mov(c.r14, VGPU_FRAME(c, env));
        c.jmp(c.rsi);
        leave = c.getSize();
        c.vzeroupper();
        for (std::size_t k = saved.size(); k-- > 0;) c.pop(saved[k]);
        c.ret();
        find_pages = c.getSize();
        write_find_pages(c);
        return true;
    });
    enter_ = std::bit_cast<Enter>(run);
    routines_ = {run + leave, run + find_pages};
}

Translation Translator::write_block(Block& block, std::uint32_t mode, const StopCheck& must_stop) {
    std::array<std::size_t, 2> links{};
    bool is_stopped = false;
    const std::byte* const run = append_code([&](Xbyak::CodeGenerator& code) {
        BlockWriter writer(code, block, mode, routines_, must_stop);
        const bool is_complete = writer.write();
        is_stopped = writer.is_stopped();
        for (std::size_t which = 0; which < links.size(); ++which)
            links[which] = writer.link_offset(which);
        return is_complete;
    });
    if (is_stopped) return Translation::Stopped;
    if (run == nullptr) return Translation::Full;
    block.head = run;
    for (std::size_t which = 0; which < links.size(); ++which)
        block.links[which] = run + links[which];
    return Translation::Done;
}

/// If the last chunk has no room, tries again in a new chunk.
Translation Translator::translate(Block& block, std::uint32_t mode, const StopCheck& must_stop) {
    if (chunks_.empty() && !add_chunk()) return Translation::Full;
    const Translation first = write_block(block, mode, must_stop);
    if (first != Translation::Full || !add_chunk()) return first;
    return write_block(block, mode, must_stop);
}

bool Translator::is_own(const void* head) const {
    return std::ranges::any_of(chunks_, [head](const CodeChunk& chunk) {
        return address(head) - address(chunk.run) < CodeMemory::kChunk.count;
    });
}

void Translator::reset() {
    for (const CodeChunk& chunk : chunks_) share_.release(chunk);
    chunks_.clear();
}

bool has_host_code(Op op) {
    return emit_rows()[static_cast<std::size_t>(op)] != nullptr;
}

const EmitTable& emit_rows() {
    static const EmitTable table = [] {
        EmitTable rows{};
        fill_vector_rows(rows);
        fill_wide_rows(rows);
        fill_compare_rows(rows);
        fill_scalar_rows(rows);
        fill_memory_rows(rows);
        return rows;
    }();
    return table;
}

}  // namespace vgpu::softgpu::isa
