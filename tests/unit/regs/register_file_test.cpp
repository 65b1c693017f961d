// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/regs/register_file.h"

#include <gtest/gtest.h>

#include "pf-driver/softgpu/regs/gpu_clock.h"
#include "tests/support/virtual_clock.h"

namespace vgpu::softgpu::regs {
namespace {

constexpr RegisterIndex kRw{REG_GC_SCRATCH_REG0};
constexpr RegisterIndex kReadOnly{REG_GC_GB_ADDR_CONFIG};
constexpr RegisterIndex kGated{REG_GC_RLC_CP_SCHEDULERS};
constexpr RegisterIndex kPfOnly{REG_VGPU_ID};
constexpr RegisterIndex kUnlisted{0x3};

TEST(RegisterFile, StartsWithTheResetValuesOfTheTable) {
    const RegisterFile file(Role::Vf);
    EXPECT_EQ(file.get(kReadOnly), 0x2a114042u);
    EXPECT_EQ(file.get(RegisterIndex{REG_NBIO_RCC_IOV_FUNC_IDENTIFIER}), 0x80000001u);
}

TEST(RegisterFile, ArraysHaveTheirStride) {
    const RegisterFile file(Role::Vf);
    for (std::uint32_t n = 0; n < REG_COUNT_GC_VM_INVALIDATE_ENG0_SEM; ++n)
        EXPECT_EQ(file.get(RegisterIndex{REG_GC_VM_INVALIDATE_ENG0_SEM + n}), 1u) << n;
}

TEST(RegisterFile, MmioWriteOfAReadOnlyRegisterIsIgnoredAndCounted) {
    RegisterFile file(Role::Vf);
    file.mmio_write(kReadOnly, 1, Gate::Open);
    EXPECT_EQ(file.mmio_read(kReadOnly), 0x2a114042u);
    EXPECT_EQ(file.refused(), 1u);
}

TEST(RegisterFile, FullAccessRegistersFollowTheGate) {
    RegisterFile file(Role::Vf);
    file.mmio_write(kGated, 0x5, Gate::Shut);
    EXPECT_EQ(file.mmio_read(kGated), 0u);
    file.mmio_write(kGated, 0x5, Gate::Open);
    EXPECT_EQ(file.mmio_read(kGated), 0x5u);
}

TEST(RegisterFile, PrivilegedWritesPassTheGate) {
    RegisterFile file(Role::Vf);
    file.write(kGated, 0x7);
    EXPECT_EQ(file.read(kGated), 0x7u);
}

TEST(RegisterFile, ThePfRangeDoesNotExistForAVf) {
    RegisterFile file(Role::Vf);
    EXPECT_EQ(file.mmio_read(kPfOnly), 0u);
    file.mmio_write(RegisterIndex{REG_VGPU_ID + 0xfff}, 1, Gate::Open);  // a hole of the range
    EXPECT_EQ(file.get(RegisterIndex{REG_VGPU_ID + 0xfff}), 0u);
    EXPECT_EQ(file.refused(), 2u);
}

TEST(RegisterFile, ThePfReadsItsRange) {
    RegisterFile file(Role::Pf);
    EXPECT_EQ(file.mmio_read(kPfOnly), 0x55504756u);
}

TEST(RegisterFile, UnlistedRegistersStore) {
    RegisterFile file(Role::Vf);
    file.mmio_write(kUnlisted, 0x1234, Gate::Shut);
    EXPECT_EQ(file.mmio_read(kUnlisted), 0x1234u);
}

TEST(RegisterFile, BeyondTheBarReadsAllOnes) {
    RegisterFile file(Role::Vf);
    const RegisterIndex outside{HW_REG_COUNT};
    file.mmio_write(outside, 0, Gate::Open);
    file.write(outside, 0);
    file.set(outside, 0);
    EXPECT_EQ(file.mmio_read(outside), ~0u);
    EXPECT_EQ(file.read(outside), ~0u);
    EXPECT_EQ(file.get(outside), ~0u);
}

TEST(RegisterFile, AClaimedRegisterBehavesAndStillStores) {
    RegisterFile file(Role::Vf);
    std::uint32_t written = 0;
    file.claim(
        kRw, 1, [](RegisterIndex, std::uint32_t stored) { return stored + 1; },
        [&](RegisterIndex, std::uint32_t value) { written = value; });
    file.mmio_write(kRw, 41, Gate::Shut);
    EXPECT_EQ(written, 41u);
    EXPECT_EQ(file.mmio_read(kRw), 42u);
    EXPECT_EQ(file.get(kRw), 41u);
}

TEST(RegisterFile, AClaimOfOneDirectionLeavesTheOtherPlain) {
    RegisterFile file(Role::Vf);
    file.claim(kRw, 1, {}, [&](RegisterIndex index, std::uint32_t) { file.set(index, 9); });
    file.write(kRw, 1);
    EXPECT_EQ(file.read(kRw), 9u);
}

TEST(RegisterFileDeathTest, ClaimingTwiceIsAProgrammingError) {
#ifdef NDEBUG
    GTEST_SKIP() << "assertions are off in this build";
#else
    RegisterFile file(Role::Vf);
    file.claim(kRw, 1, {}, {});
    EXPECT_DEATH(file.claim(kRw, 1, {}, {}), "claimed twice");
#endif
}

TEST(RegisterFileDeathTest, AThreadThatServesAnotherVfIsAProgrammingError) {
#ifdef NDEBUG
    GTEST_SKIP() << "assertions are off in this build";
#else
    PiMutex own, of_another_vf;
    RegisterFile file(Role::Vf);
    file.set_lock(own);
    {
        const std::scoped_lock lock(own);
        file.write(kRw, 7);
        EXPECT_EQ(file.read(kRw), 7u);
    }
    const std::scoped_lock lock(of_another_vf);
    EXPECT_DEATH((void)file.read(kRw), "this thread serves another VF");
    EXPECT_DEATH(file.write(kRw, 1), "this thread serves another VF");
    EXPECT_DEATH((void)file.mmio_read(kRw), "this thread serves another VF");
#endif
}

TEST(RegisterFile, LoadOfATruncatedStreamIsAnErrorAndResets) {
    RegisterFile file(Role::Vf);
    std::vector<std::byte> stream;
    Writer out(stream);
    file.save(out);
    stream.resize(stream.size() / 2);
    file.write(kRw, 5);
    Reader in(stream);
    EXPECT_FALSE(file.load(in));
    EXPECT_EQ(file.read(kRw), 0u);
}

TEST(RegisterFile, LoadRefusesAFileOfAnotherSize) {
    RegisterFile file(Role::Vf);
    std::vector<std::byte> stream;
    Writer out(stream);
    out.vector(std::vector<std::uint32_t>(8));
    Reader in(stream);
    EXPECT_FALSE(file.load(in));
}

TEST(GpuClock, CapturesBothHalvesOfOneInstant) {
    RegisterFile file(Role::Vf);
    VirtualClock clock;
    claim_gpu_clock(file, clock);
    clock.advance(std::chrono::hours(1));
    file.mmio_write(RegisterIndex{REG_GC_RLC_CAPTURE_GPU_CLOCK_COUNT}, 1, Gate::Shut);
    clock.advance(std::chrono::hours(1));
    const std::uint64_t ticks = join(file.mmio_read(RegisterIndex{REG_GC_RLC_GPU_CLOCK_COUNT_LSB}),
                                     file.mmio_read(RegisterIndex{REG_GC_RLC_GPU_CLOCK_COUNT_MSB}));
    EXPECT_EQ(ticks, 27'000'000ull * 3600);
}

TEST(GpuClock, KeepsCountingForYears) {
    constexpr Nanoseconds kHundredYears = std::chrono::hours(24 * 365 * 100);
    EXPECT_EQ(gpu_ticks(kHundredYears), 27'000'000ull * 3600 * 24 * 365 * 100);
    EXPECT_EQ(gpu_ticks(Nanoseconds{999}), 26u);
}

}  // namespace
}  // namespace vgpu::softgpu::regs
