// SPDX-License-Identifier: MIT
//
// Loads and stores in translated code against the interpreter: edges of pages and of LDS, lanes
// that are off, lanes elsewhere, faults, pages that change while a wave runs.
#include <array>
#include <vector>

#include "tests/unit/isa/translate_rig.h"

namespace vgpu::test {
namespace {

using softgpu::isa::Encoding;
using softgpu::isa::kLanes;
using softgpu::mem::Access;

// registers of the programs
constexpr u32 kAddress = 36, kOffset = 38, kBasePair = 80, kData = 4, kResult = 12, kOther = 20;
// pages of WaveMachine's area; all others allow everything
constexpr u64 kReadOnly = 4, kIndirect = 6, kAbsent = 7;

Words move(u32 to, u32 from) {
    return {enc::kVop1 | put(enc::kVop1Op, softgpu::isa::info(Op::v_mov_b32).code) |
            put(enc::kVdst, to) | (enc::kFirstVgpr + from)};
}

u32 bytes_of(Op op) {
    const auto& row = softgpu::isa::info(op);
    const std::string_view name = row.name;
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (has("byte") || has("_u8") || has("_i8") || has("_b8")) return 1;
    if (has("short") || has("_u16") || has("_i16") || has("_b16")) return 2;
    return 4u * (row.result_regs + row.data_regs);
}

/// Every kind of load or store that translated code knows.
std::vector<Op> operations(Encoding encoding) {
    std::vector<Op> out;
    for (std::size_t k = 0; k < softgpu::isa::kOpCount; ++k) {
        const Op op = static_cast<Op>(k);
        if (softgpu::isa::info(op).encoding == encoding && softgpu::isa::has_host_code(op))
            out.push_back(op);
    }
    return out;
}

/// Registers that the operation reads and writes have been written before it, and are read behind.
Words around(const Words& operation) {
    Words words;
    const auto add = [&](const Words& more) {
        words.insert(words.end(), more.begin(), more.end());
    };
    for (const u32 row : {kAddress, kAddress + 1, kOffset, kData, kData + 1, kResult})
        add(move(row, row));
    add(operation);
    for (const u32 row : {kAddress, kAddress + 1, kOffset, kData, kResult, kResult + 1})
        add(move(kOther, row));
    words.push_back(kEndpgm);
    return words;
}

Words vector_memory(Op op, bool has_base, int offset) {
    constexpr u32 segment_of_global = 2, offset_bits = 0x1fff;
    const bool is_global = softgpu::isa::info(op).encoding == Encoding::Global;
    return {enc::kFlat | put(enc::kFlatOp, softgpu::isa::info(op).code) |
                put(enc::kFlatSegment, is_global ? segment_of_global : 0) |
                (static_cast<u32>(offset) & (is_global ? offset_bits : enc::kFlatUnsignedMask)),
            (has_base ? kOffset : kAddress) | put(enc::kFlatData, kData) |
                put(enc::kFlatSaddr, has_base ? kBasePair : enc::kNoSaddr) |
                put(enc::kFlatVdst, kResult)};
}

constexpr std::array<u64, 8> kExecs{
    ~u64{0},     ~u64{1}, ~(u64{1} << 17), ~(u64{1} << 63), u64{1} << 63, 0xaaaa'aaaa'aaaa'aaaa,
    0xffff'ffff, 0};

/// The place of a lane, for accesses of `size` bytes; `page` is where the area begins.
using Pattern = u64 (*)(u64 area, u64 lane, u64 size);
constexpr u64 kPage = WaveMachine::kPage;

constexpr Pattern kPatterns[] = {
    // lanes follow each other: to the end of a page, over it, beyond it by one byte
    [](u64 area, u64 lane, u64 size) { return area + 2 * kPage - (kLanes - lane) * size; },
    [](u64 area, u64 lane, u64 size) { return area + 2 * kPage - (kLanes / 2 - lane) * size; },
    [](u64 area, u64 lane, u64 size) { return area + 2 * kPage - (kLanes - lane) * size + 1; },
    [](u64 area, u64 lane, u64 size) { return area + kPage + lane * size; },
    [](u64 area, u64 lane, u64 size) { return area + kPage + lane * size + 3; },
    // one place: the last one of a page, and one that crosses its end
    [](u64 area, u64, u64 size) { return area + 2 * kPage - size; },
    [](u64 area, u64, u64 size) { return area + 2 * kPage - size + 1; },
    [](u64 area, u64, u64) { return area + 2 * kPage - 1; },
    // pages that fault, at once or behind some lanes
    [](u64 area, u64 lane, u64 size) { return area + kReadOnly * kPage + lane * size; },
    [](u64 area, u64 lane, u64 size) { return area + kIndirect * kPage + lane * size; },
    [](u64 area, u64 lane, u64 size) { return area + kAbsent * kPage + lane * size; },
    [](u64 area, u64 lane, u64 size) { return area + kReadOnly * kPage + (lane - 40) * size; },
    [](u64 area, u64 lane, u64 size) { return area + kAbsent * kPage + (lane - 50) * size; },
    // any places, some of which overlap
    [](u64 area, u64 lane, u64) { return area + kPage + lane * 2654435761u % 4080; },
    [](u64 area, u64 lane, u64) { return area + kPage + lane / 2 * 4; },
    [](u64 area, u64 lane, u64) { return area + kPage + lane * 4; },
    [](u64 area, u64 lane, u64 size) { return area + kPage + (kLanes - lane) * size; },
    [](u64 area, u64 lane, u64 size) { return area + kPage + lane % 16 * size + lane / 16 * 600; },
    [](u64 area, u64 lane, u64) { return area + kPage + lane / 16 * 64; },
    [](u64 area, u64 lane, u64) { return area + lane * 256; },
    // each quarter in a page of its own: beginning, end, over the end, with other permissions
    [](u64 area, u64 lane, u64 size) { return area + lane / 16 * kPage + lane % 16 * size; },
    [](u64 area, u64 lane, u64 size) { return area + (lane / 16 + 1) * kPage + lane % 16 * size; },
    [](u64 area, u64 lane, u64 size) { return area + (lane / 16 + 4) * kPage + lane % 16 * size; },
    [](u64 area, u64 lane, u64 size) {
        return area + (lane / 16 + 1) * kPage - (16 - lane % 16) * size;
    },
    [](u64 area, u64 lane, u64 size) {
        return area + (lane / 16 + 1) * kPage - (16 - lane % 16) * size + 1;
    },
    [](u64 area, u64 lane, u64 size) { return area + 3000 + lane / 16 * 1032 + lane % 16 * size; },
    [](u64 area, u64 lane, u64) { return area + lane / 16 * kPage + lane * 2654435761u % 4080; },
    [](u64 area, u64 lane, u64) { return area + lane / 16 * kPage + 4092; },
    [](u64 area, u64 lane, u64 size) {
        return area + lane / 16 * kPage + lane * size + (lane == 37 ? u64{1} << 32 : 0);
    },
    [](u64, u64 lane, u64 size) {
        return FlatPort::kBase + lane / 16 * kPage + lane % 16 * size - (lane < 16 ? 8 : 0);
    },
    // one lane elsewhere
    [](u64 area, u64 lane, u64 size) { return area + (lane == 17 ? 2 : 1) * kPage + lane * size; },
    [](u64 area, u64 lane, u64 size) {
        return area + (lane == 17 ? kAbsent : 1) * kPage + lane * size;
    },
    [](u64 area, u64 lane, u64 size) {
        return area + kPage + lane * size + (lane == 63 ? u64{1} << 32 : 0);
    },
    // around an address whose low word is 0, and 4 GiB further
    [](u64, u64 lane, u64 size) { return FlatPort::kBase + lane * size; },
    [](u64, u64 lane, u64 size) { return FlatPort::kBase + (lane - 16) * size; },
    [](u64, u64 lane, u64 size) { return FlatPort::kBase + (lane - 4) * size; },
    [](u64, u64 lane, u64 size) {
        return FlatPort::kBase + (lane == 9 ? (u64{1} << 32) - 4 : lane * size);
    },
};

class TranslateMemory : public Translate {
protected:
    void SetUp() override {
        Translate::SetUp();
        if (!translated) return;
        for (WaveMachine* const machine : {&*plain, &*translated}) {
            FlatPort& port = machine->gpu.port;
            port.set_access(machine->area + kReadOnly * kPage,
                            static_cast<std::uint8_t>(Access::Read));
            port.set_access(machine->area + kAbsent * kPage, 0);
            port.make_indirect(machine->area + kIndirect * kPage);
        }
    }
    static void set_up(WaveMachine& machine, u64 exec) {
        auto& wave = machine.group.waves[0].state;
        wave.mode = 0xf0;
        wave.set_pair(softgpu::isa::ScalarReg::Exec, exec);
    }
    /// All lanes on, and one other EXEC.
    void compare_execs(const Words& words, u64 number,
                       const std::function<void(WaveMachine&)>& set_addresses) {
        for (const u64 exec : {kExecs[0], kExecs[1 + number % (kExecs.size() - 1)]}) {
            adjust = [&](WaveMachine& machine) {
                set_up(machine, exec);
                set_addresses(machine);
            };
            compare(words, number, 1u << 20);
            if (HasFatalFailure()) return;
            auto& gpu = translated->gpu;
            const auto* const block = gpu.cache.find(translated->program, gpu.port);
            ASSERT_TRUE(block != nullptr && block->head != nullptr) << text_of(words);
        }
    }
};

TEST_F(TranslateMemory, AddressesAtEdgesReachWhatTheHandlerReaches) {
    u64 number = 0;
    for (const Encoding encoding : {Encoding::Global, Encoding::Flat})
        for (const Op op : operations(encoding))
            for (const Pattern& pattern : kPatterns) {
                const int offset = std::array{0, 16, 4095, -16}[++number % 4];
                const bool is_flat = encoding == Encoding::Flat;
                const int used = is_flat && offset < 0 ? 16 : offset;
                const auto set_addresses = [&](WaveMachine& machine) {
                    for (u32 lane = 0; lane < kLanes; ++lane) {
                        const u64 at = pattern(machine.area, lane, bytes_of(op)) -
                                       static_cast<u64>(std::int64_t{used});
                        auto& rows = machine.group.waves[0].vgprs;
                        rows[kAddress].lane[lane] = softgpu::low32(at);
                        rows[kAddress + 1].lane[lane] = softgpu::high32(at);
                    }
                };
                compare_execs(around(vector_memory(op, false, used)), number, set_addresses);
                if (HasFatalFailure()) return;
            }
}

/// Offsets of lanes, some of which are just below 4 GiB, from a base inside a page.
TEST_F(TranslateMemory, OffsetsFromAScalarBaseDoNotWrap) {
    u64 number = 0;
    for (const Op op : operations(Encoding::Global))
        for (const Pattern& pattern : kPatterns)
            for (const u64 begin : {u64{100}, 2 * kPage}) {
                const int offset = std::array{0, 16, -128}[++number % 3];
                const auto set_addresses = [&](WaveMachine& machine) {
                    auto& wave = machine.group.waves[0];
                    wave.state.scalar[kBasePair] = softgpu::low32(machine.area + begin);
                    wave.state.scalar[kBasePair + 1] = softgpu::high32(machine.area + begin);
                    for (u32 lane = 0; lane < kLanes; ++lane)
                        wave.vgprs[kOffset].lane[lane] = softgpu::low32(
                            pattern(machine.area, lane, bytes_of(op)) - machine.area - begin);
                };
                compare_execs(around(vector_memory(op, true, offset)), number, set_addresses);
                if (HasFatalFailure()) return;
            }
}

/// Places in LDS of 4608 bytes, before the offset is added.
constexpr Pattern kLdsPatterns[] = {
    [](u64 end, u64 lane, u64 size) { return end - (kLanes - lane) * size; },
    [](u64 end, u64 lane, u64 size) { return end - (kLanes - lane) * size + 1; },
    [](u64 end, u64 lane, u64 size) { return end - (kLanes / 2 - lane) * size; },
    [](u64 end, u64, u64 size) { return end - size; },
    [](u64 end, u64, u64 size) { return end - size + 1; },
    [](u64, u64 lane, u64 size) { return lane * size; },
    [](u64, u64 lane, u64 size) { return (lane - 4) * size; },
    [](u64, u64 lane, u64 size) { return lane % 16 * size + lane / 16 * 100; },
    [](u64, u64 lane, u64) { return lane / 16 * 68; },
    [](u64 end, u64 lane, u64) { return lane * 2654435761u % (end - 16); },
    [](u64, u64 lane, u64) { return lane * 4; },
    [](u64, u64 lane, u64 size) { return lane == 40 ? 0xffff'fffc : lane * size; },
};

TEST_F(TranslateMemory, PlacesAtTheEdgesOfLdsReachWhatTheHandlerReaches) {
    u64 number = 0;
    for (const Op op : operations(Encoding::Ds))
        for (const Pattern& pattern : kLdsPatterns) {
            const u32 offset = std::array{0u, 16u, 0x0101u, 0x0a00u}[++number % 4];
            const Words words{enc::kDs | put(enc::kDsOp, softgpu::isa::info(op).code) | offset,
                              kOffset | put(enc::kDsData0, kData) | put(enc::kDsVdst, kResult)};
            const auto set_addresses = [&](WaveMachine& machine) {
                for (u32 lane = 0; lane < kLanes; ++lane)
                    machine.group.waves[0].vgprs[kOffset].lane[lane] = softgpu::low32(
                        pattern(machine.group.lds.size(), lane, bytes_of(op)) - offset);
            };
            compare_execs(around(words), number, set_addresses);
            if (HasFatalFailure()) return;
        }
}

/// Registers that a scalar load may write include VCC and EXEC.
TEST_F(TranslateMemory, ScalarLoadsAtEdgesReachWhatTheHandlerReaches) {
    u64 number = 0;
    for (const Op op : operations(Encoding::Smem))
        for (const u64 end : {2 * kPage, kReadOnly * kPage, kAbsent * kPage, kIndirect * kPage})
            for (const u64 distance : {u64{64}, u64{63}, u64{60}, u64{32}, u64{4}, u64{1}, u64{0}})
                for (const u32 to : {0u, enc::kVcc, 124u, 126u}) {
                    const auto set_addresses = [&](WaveMachine& machine) {
                        auto& wave = machine.group.waves[0].state;
                        const u64 at = machine.area + end - distance + 20;
                        wave.scalar[kBasePair] = softgpu::low32(at);
                        wave.scalar[kBasePair + 1] = softgpu::high32(at);
                    };
                    const Words words{enc::kSmem | put(enc::kSmemOp, softgpu::isa::info(op).code) |
                                          put(enc::kSmemImm, 1) | put(enc::kSmemData, to) |
                                          (kBasePair / 2),
                                      static_cast<u32>(-20) & 0x1fffff};
                    if (softgpu::isa::decode(words).op != op) continue;
                    compare_execs(around(words), ++number, set_addresses);
                    if (HasFatalFailure()) return;
                }
}

/// An endless loop that loads from one page and stores to another.
Words copying() {
    constexpr u32 send_interrupt = 0xbf900001, branch = 0xbf820000;
    Words words{send_interrupt};
    const auto add = [&](const Words& more) {
        words.insert(words.end(), more.begin(), more.end());
    };
    add(vector_memory(Op::global_load_dword, false, 0));
    add({enc::kSmem | put(enc::kSmemImm, 1) | (kBasePair / 2), 0});  // s_load_dword s0
    add({enc::kFlat | put(enc::kFlatOp, softgpu::isa::info(Op::global_store_dword).code) |
             put(enc::kFlatSegment, 2),
         kOffset | put(enc::kFlatData, kResult) | put(enc::kFlatSaddr, kBasePair)});
    words.push_back(branch | ((0u - static_cast<u32>(words.size() + 1)) & 0xffff));
    return words;
}

/// What happens to a page in one round of the loop, and when translations end.
struct Change {
    u64 page;
    std::uint8_t access;
    u32 invalidated_at;
};

TEST_F(TranslateMemory, PagesThatChangeFaultAfterTheInvalidationAsInTheInterpreter) {
    constexpr auto read = static_cast<std::uint8_t>(Access::Read);
    constexpr u32 changed_at = 20;
    for (const Change& change : {Change{1, 0, 20}, Change{1, 0, 40}, Change{2, read, 20},
                                 Change{2, read, 40}, Change{2, 0, 30}}) {
        SetUp();
        adjust = [&](WaveMachine& machine) {
            set_up(machine, ~u64{0});
            auto& wave = machine.group.waves[0];
            wave.state.scalar[kBasePair] = softgpu::low32(machine.area + 2 * kPage);
            wave.state.scalar[kBasePair + 1] = softgpu::high32(machine.area + 2 * kPage);
            for (u32 lane = 0; lane < kLanes; ++lane) {
                wave.vgprs[kOffset].lane[lane] = lane * 4;
                wave.vgprs[kAddress].lane[lane] = softgpu::low32(machine.area + kPage + lane * 4);
                wave.vgprs[kAddress + 1].lane[lane] = softgpu::high32(machine.area);
            }
            machine.gpu.messages.payloads.clear();
            machine.gpu.messages.on_interrupt = [&machine, &change](u32) {
                const std::size_t round = machine.gpu.messages.payloads.size();
                if (round == changed_at)
                    machine.gpu.port.set_access(machine.area + change.page * kPage, change.access);
                if (round == change.invalidated_at) machine.gpu.epoch.fetch_add(1);
            };
        };
        compare(copying(), 1, 1000);
        if (HasFatalFailure()) return;
        EXPECT_EQ(translated->gpu.messages.payloads.size(), change.invalidated_at);
        EXPECT_EQ(plain->gpu.messages.payloads.size(), change.invalidated_at);
    }
}

}  // namespace
}  // namespace vgpu::test
