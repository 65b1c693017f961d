// SPDX-License-Identifier: MIT
//
// Address watches: which accesses of which waves hit, what TRAPSTS says then, and the way into the
// trap handler.
#include <gtest/gtest.h>

#include "pf-driver/softgpu/isa/encoding.h"
#include "tests/unit/isa/flat_gpu.h"

namespace vgpu::test {
namespace {

namespace enc = softgpu::isa::enc;
using softgpu::Vmid;
using softgpu::isa::AddressWatches;
using softgpu::isa::Encoding;
using softgpu::isa::info;
using softgpu::isa::Op;
using softgpu::isa::OpInfo;
using softgpu::isa::RunResult;
using softgpu::isa::ScalarReg;
using softgpu::isa::StopReason;
using softgpu::isa::WatchedAccess;
using softgpu::isa::WatchMode;
using softgpu::isa::Workgroup;
using Words = std::vector<std::uint32_t>;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kEndpgm = 0xbf810000;
// vector and scalar registers of the instructions
constexpr u32 kAddress = 2, kData = 4, kResult = 12, kBufferSgpr = 8;
constexpr std::array<u32, 4> kBits = {1u << 7, 1u << 12, 1u << 13, 1u << 14};
constexpr u32 kAllBits = 0x7080, kModeAddressWatch = 1u << 19;
/// Bytes that a watch with all of MASK is for.
constexpr u64 kUnit = 64;

u32 put(enc::Field field, u32 value) {
    return value << field.first;
}

/// Buffers are addressed by a register that holds an offset, the others by two that hold an
/// address; scratch by one.
Words words_of(Op op) {
    const OpInfo& row = info(op);
    constexpr u32 linear_float = 0x7 << 4 | 4;  // one dword
    switch (row.encoding) {
        case Encoding::Mubuf:
            return {enc::kMubuf | put(enc::kMubufOp, row.code) | put(enc::kMubufOffen, 1),
                    put(enc::kMubufVaddr, kAddress) | put(enc::kMubufVdata, kData) |
                        put(enc::kMubufSrsrc, kBufferSgpr / 4) |
                        put(enc::kMubufSoffset, enc::kZero)};
        case Encoding::Mtbuf:
            return {enc::kMtbuf | put(enc::kMtbufOp, row.code) | put(enc::kMubufOffen, 1) |
                        put(enc::kMtbufFormat, linear_float),
                    put(enc::kMubufVaddr, kAddress) | put(enc::kMubufVdata, kData) |
                        put(enc::kMubufSrsrc, kBufferSgpr / 4) |
                        put(enc::kMubufSoffset, enc::kZero)};
        default:
            break;
    }
    const u32 segment = row.encoding == Encoding::Global    ? 2u
                        : row.encoding == Encoding::Scratch ? 1u
                                                            : 0u;
    return {enc::kFlat | put(enc::kFlatSegment, segment) | put(enc::kFlatOp, row.code),
            put(enc::kFlatAddress, kAddress) | put(enc::kFlatData, kData) |
                put(enc::kFlatVdst, kResult) |
                (segment != 0 ? put(enc::kFlatSaddr, enc::kNoSaddr) : 0)};
}

bool is_buffer(Op op) {
    return info(op).encoding == Encoding::Mubuf || info(op).encoding == Encoding::Mtbuf;
}

class WatchPoint : public testing::Test {
protected:
    WatchPoint() : place(gpu.allocate(1u << 14) + 4096) {}

    /// A wave about to do one access of lane 0 at `va`.
    void load(Op op, u64 va) {
        Words words = words_of(op);
        words.push_back(kEndpgm);
        gpu.load_words(words, 32);
        gpu.set_grid({});
        gpu.spec.lds_bytes = 4096;
        gpu.start(group, {0, 0, 0});
        wave().set_pair(ScalarReg::Exec, 1);
        set_address(op, va);
    }
    void set_address(Op op, u64 va) {
        constexpr u64 before = 64;  // so far before, the buffer begins
        wave().set_pair(ScalarReg::FlatScratch, va);
        if (is_buffer(op)) {
            wave().scalar[kBufferSgpr] = static_cast<u32>(va - before);
            wave().scalar[kBufferSgpr + 1] = static_cast<u32>((va - before) >> 32);
            wave().scalar[kBufferSgpr + 2] = ~0u;
            wave().scalar[kBufferSgpr + 3] = 0x00027fac;  // floats, DST_SEL x y z w
            va = before;
        } else if (info(op).encoding == Encoding::Scratch) {
            va = 0;
        }
        row(kAddress).lane[0] = static_cast<u32>(va);
        row(kAddress + 1).lane[0] = static_cast<u32>(va >> 32);
    }
    RunResult run() { return softgpu::isa::run(group, gpu.context()); }
    /// The watches that one access hits.
    u32 hits(Op op, u64 va) {
        load(op, va);
        EXPECT_EQ(run().reason, StopReason::AllWavesEnded) << info(op).name;
        return wave().trapsts;
    }
    void watch(u64 va, WatchMode mode = WatchMode::All, unsigned which = 0, u64 mask = ~u64{0}) {
        gpu.watches.set(which, {true, gpu.vmid, mode, va / kUnit, mask});
    }
    softgpu::isa::WaveState& wave() { return group.waves[0].state; }
    softgpu::isa::VgprRow& row(u32 i) { return group.waves[0].vgprs[i]; }

    FlatGpu gpu{1u << 20};
    Workgroup group;
    u64 place;
};

struct Case {
    Op op;
    WatchedAccess access;
};
constexpr std::array kCases{
    Case{Op::flat_load_dword, WatchedAccess::Load},
    Case{Op::flat_store_byte, WatchedAccess::Store},
    Case{Op::flat_atomic_add, WatchedAccess::Atomic},
    Case{Op::global_load_dwordx4, WatchedAccess::Load},
    Case{Op::global_load_ubyte, WatchedAccess::Load},
    Case{Op::global_store_dwordx2, WatchedAccess::Store},
    Case{Op::global_atomic_cmpswap_x2, WatchedAccess::Atomic},
    Case{Op::scratch_load_dword, WatchedAccess::Load},
    Case{Op::scratch_store_dword, WatchedAccess::Store},
    Case{Op::buffer_load_dwordx2, WatchedAccess::Load},
    Case{Op::buffer_store_short, WatchedAccess::Store},
    Case{Op::buffer_atomic_swap, WatchedAccess::Atomic},
    Case{Op::buffer_load_format_x, WatchedAccess::Load},
    Case{Op::tbuffer_load_format_x, WatchedAccess::Load},
    Case{Op::tbuffer_store_format_x, WatchedAccess::Store},
};

TEST_F(WatchPoint, EveryKindOfVectorAccessHits) {
    watch(place);
    for (const Case& each : kCases) {
        EXPECT_EQ(hits(each.op, place), kBits[0]) << info(each.op).name;
        EXPECT_EQ(hits(each.op, place + kUnit), 0u) << info(each.op).name;
    }
}

TEST_F(WatchPoint, ModeChoosesTheAccesses) {
    struct Row {
        WatchMode mode;
        bool loads, stores, atomics;
    };
    constexpr std::array rows{
        Row{WatchMode::Loads, true, false, false}, Row{WatchMode::NonLoads, false, true, true},
        Row{WatchMode::Atomics, false, false, true}, Row{WatchMode::All, true, true, true}};
    for (const Row& row : rows) {
        watch(place, row.mode);
        for (const Case& each : kCases) {
            const bool is_hit = each.access == WatchedAccess::Load    ? row.loads
                                : each.access == WatchedAccess::Store ? row.stores
                                                                      : row.atomics;
            EXPECT_EQ(hits(each.op, place) != 0, is_hit)
                << info(each.op).name << " mode " << static_cast<int>(row.mode);
        }
    }
}

TEST_F(WatchPoint, EachHasABitOfItsOwn) {
    for (unsigned i = 0; i < AddressWatches::kCount; ++i) {
        gpu.watches.clear();
        watch(place, WatchMode::All, i);
        EXPECT_EQ(hits(Op::global_load_dword, place), kBits[i]);
    }
    for (unsigned i = 0; i < AddressWatches::kCount; ++i) watch(place, WatchMode::All, i);
    EXPECT_EQ(hits(Op::global_load_dword, place), kAllBits);
}

TEST_F(WatchPoint, MaskSaysHowFarItReaches) {
    constexpr u64 size = 256;
    const u64 first = place / size * size;
    watch(first, WatchMode::All, 0, ~(size / kUnit - 1));
    EXPECT_EQ(hits(Op::global_load_dword, first - 4), 0u);
    EXPECT_EQ(hits(Op::global_load_dword, first), kBits[0]);
    EXPECT_EQ(hits(Op::global_load_ubyte, first + size - 1), kBits[0]);
    EXPECT_EQ(hits(Op::global_load_ubyte, first + size), 0u);
    EXPECT_EQ(hits(Op::global_load_dwordx4, first - 8), kBits[0]) << "half of it is inside";
    EXPECT_EQ(hits(Op::global_load_dwordx4, first + size - 8), kBits[0]) << "half of it is inside";
}

TEST_F(WatchPoint, AllLanesThatAreOnCount) {
    watch(place);
    load(Op::global_load_dword, place - kUnit);
    for (u32 l = 0; l < softgpu::isa::kLanes; ++l) {
        row(kAddress).lane[l] = static_cast<u32>(place - kUnit + (l == 17 ? kUnit : 0));
        row(kAddress + 1).lane[l] = static_cast<u32>(place >> 32);
    }
    const Workgroup fresh = group;
    wave().set_pair(ScalarReg::Exec, ~(u64{1} << 17));
    (void)run();
    EXPECT_EQ(wave().trapsts, 0u);
    group = fresh;
    wave().set_pair(ScalarReg::Exec, ~u64{0});
    (void)run();
    EXPECT_EQ(wave().trapsts, kBits[0]);
}

TEST_F(WatchPoint, IsForOneVmid) {
    gpu.watches.set(2, {true, Vmid{9}, WatchMode::All, place / kUnit, ~u64{0}});
    EXPECT_EQ(hits(Op::global_load_dword, place), 0u);
    gpu.vmid = Vmid{9};
    EXPECT_EQ(hits(Op::global_load_dword, place), kBits[2]);
}

TEST_F(WatchPoint, LocalMemoryIsNotWatched) {
    watch(0);
    EXPECT_EQ(hits(Op::flat_load_dword, gpu.context().apertures.shared_base), 0u);
}

TEST_F(WatchPoint, AccessThatFaultsIsNoHit) {
    constexpr u64 nowhere = 0x1000;
    watch(nowhere);
    load(Op::global_store_dword, nowhere);
    EXPECT_EQ(run().reason, StopReason::Fault);
    EXPECT_EQ(wave().trapsts & kAllBits, 0u);
}

TEST_F(WatchPoint, OneThatIsNotValidWatchesNothing) {
    watch(place);
    gpu.watches.set(0, {false, gpu.vmid, WatchMode::All, place / kUnit, ~u64{0}});
    EXPECT_EQ(hits(Op::global_load_dword, place), 0u);
    EXPECT_FALSE(gpu.watches.is_watched(gpu.vmid));
}

TEST_F(WatchPoint, SignExtensionOfAnAddressDoesNotMatter) {
    constexpr u64 high = 0xffff'9000'0000'0000;
    AddressWatches watches;
    watches.set(0, {true, Vmid{8}, WatchMode::All, 0x9000'0000'0000 / kUnit, ~u64{0}});
    EXPECT_EQ(watches.hits(Vmid{8}, WatchedAccess::Load, high, 4), kBits[0]);
}

TEST_F(WatchPoint, ExceptionThatIsOffLeavesTheBitAndTheWaveGoesOn) {
    gpu.set_trap_handler("trap_handler");
    watch(place);
    EXPECT_EQ(hits(Op::global_load_dword, place), kBits[0]);
    EXPECT_EQ(gpu.download<u32>(gpu.trap.memory + 8, 1)[0], 0u) << "entries of the handler";
}

TEST_F(WatchPoint, EnabledExceptionEntersTheHandlerBehindTheAccess) {
    gpu.set_trap_handler("trap_handler");
    for (unsigned which = 0; which < AddressWatches::kCount; ++which) {
        gpu.watches.clear();
        watch(place, WatchMode::All, which);
        load(Op::global_store_dword, place);
        wave().mode |= kModeAddressWatch;
        row(kData).lane[0] = 40 + which;
        const u64 entry = wave().pc;
        EXPECT_EQ(run().reason, StopReason::Halted) << "the handler halts the wave";
        const auto seen = gpu.download<u32>(gpu.trap.memory, 6);
        EXPECT_EQ(seen[0], 0u) << "trap id";
        EXPECT_EQ(seen[3], kBits[which]) << "TRAPSTS";
        EXPECT_EQ(seen[4], static_cast<u32>(entry + 8));
        EXPECT_EQ(seen[5], static_cast<u32>(entry >> 32));
        EXPECT_EQ(gpu.download<u32>(place, 1)[0], 40 + which) << "the store has been done";
    }
}

TEST_F(WatchPoint, WaveWithoutAHandlerGoesOn) {
    watch(place);
    load(Op::global_load_dword, place);
    wave().mode |= kModeAddressWatch;
    EXPECT_EQ(run().reason, StopReason::AllWavesEnded);
    EXPECT_EQ(wave().trapsts, kBits[0]);
}

TEST_F(WatchPoint, WaveThatWaitsForItsWatchEndsWhenItIsSet) {
    gpu.load_kernel("watched", 3);
    const u64 out = gpu.allocate(256);
    gpu.set_arguments(place, out, u32{1});
    gpu.set_grid({{64, 1, 1}, {64, 1, 1}});
    gpu.start(group, {0, 0, 0});
    constexpr u64 budget = 1000;
    EXPECT_EQ(softgpu::isa::run(group, gpu.context(budget)).reason, StopReason::Budget);
    watch(place, WatchMode::Loads, 3);
    EXPECT_EQ(softgpu::isa::run(group, gpu.context(budget)).reason, StopReason::AllWavesEnded);
    EXPECT_EQ(gpu.download<u32>(out, 1)[0], kBits[3]);
}

TEST(WatchLaunch, ExceptionsOfTheKernelAndOfTheDebuggerAreEnabled) {
    constexpr u32 rsrc2_address_watch = 1u << 13, rsrc2_overflow = 1u << 27;
    constexpr u32 overflow = 1u << 3, address_watch = 1u << 7, shift = 12, all = 0x1ff;
    FlatGpu gpu{1u << 20};
    gpu.load_words({kEndpgm});
    gpu.set_grid({});
    Workgroup group;
    const auto enabled = [&](u32 rsrc2, const softgpu::isa::LaunchExceptions& debug) {
        softgpu::isa::DispatchSpec spec = gpu.spec;
        spec.pgm_rsrc2 |= rsrc2;
        start_workgroup(group, spec, {.debug = debug});
        return group.waves[0].state.mode >> shift & all;
    };
    EXPECT_EQ(enabled(rsrc2_address_watch | rsrc2_overflow, {}), address_watch | overflow);
    EXPECT_EQ(enabled(rsrc2_overflow, {.enabled = address_watch}), address_watch | overflow);
    EXPECT_EQ(enabled(rsrc2_overflow, {.enabled = address_watch, .replace = true}), address_watch);
}

}  // namespace
}  // namespace vgpu::test
