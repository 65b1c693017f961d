// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/mem/gpuvm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "pf-driver/hw/tc_op.h"
#include "pf-driver/softgpu/mem/atomic.h"
#include "pf-driver/softgpu/mem/value.h"
#include "tests/unit/mem/memory_rig.h"

namespace vgpu::softgpu::mem {
namespace {

using test::kBusBase;
using test::kRwx;
using test::kVfBytes;

constexpr std::uint64_t kVa = 0x7f1234567000;
constexpr std::uint64_t kPage = 0x300000;       // VRAM offset of data
constexpr std::uint64_t kOtherPage = 0x301000;  // another
constexpr unsigned kUser = 8;                   // a VMID

struct GpuVmTest : testing::Test {
    test::MemoryRig rig;
    std::uint64_t root = rig.new_table();

    GpuVmTest() { rig.enable_context(kUser, root); }

    std::unique_ptr<Port> port(unsigned vmid = kUser, Hub hub = Hub::Gfx) {
        return rig.gpuvm->make_port(Vmid{static_cast<std::uint8_t>(vmid)}, hub);
    }
    static std::uint32_t read32(Port& port, std::uint64_t va) {
        std::uint32_t value = 0;
        EXPECT_TRUE(port.read(GpuVa{va}, bytes_of(value)));
        return value;
    }
    static FaultKind fault_of(Port& port, std::uint64_t va, Access access = Access::Read) {
        port.clear_fault();
        EXPECT_EQ(port.at(GpuVa{va}, access), nullptr);
        return port.fault().kind;
    }
};

TEST_F(GpuVmTest, WalksFourLevelsToAPage) {
    rig.map_page(root, kVa, kPage | kRwx);
    rig.put(kPage + 8, 0xabcdu);
    const auto memory = port();
    EXPECT_EQ(read32(*memory, kVa + 8), 0xabcdu);
}

TEST_F(GpuVmTest, BothHubsHaveContextsOfTheirOwn) {
    rig.map_page(root, kVa, kPage | kRwx);
    rig.write_reg(REG_MMHUB_VM_CONTEXT0_CNTL + kUser, 0);
    EXPECT_NE(port(kUser, Hub::Gfx)->at(GpuVa{kVa}, Access::Read), nullptr);
    EXPECT_EQ(fault_of(*port(kUser, Hub::Mm), kVa), FaultKind::NotPresent);
}

TEST_F(GpuVmTest, SignExtendedAddressesAreTheSamePage) {
    rig.map_page(root, 0xffffffbf0000, kPage | kRwx);
    rig.put(kPage, 3u);
    const auto memory = port();
    EXPECT_EQ(read32(*memory, 0xffffffffffbf0000), 3u);
    EXPECT_EQ(read32(*memory, 0x0000ffffffbf0000), 3u);
}

TEST_F(GpuVmTest, AnAddressOutsideThe48BitsIsNotCanonical) {
    const auto memory = port();
    EXPECT_EQ(fault_of(*memory, 0x0001'0000'0000'0000), FaultKind::NotCanonical);
    EXPECT_EQ(fault_of(*memory, 0x8000'0000'0000'0000), FaultKind::NotCanonical);
}

TEST_F(GpuVmTest, APdeWithBit54MapsAHugePage) {
    const std::uint64_t entry = 0x400000 | kRwx | GPUVM_PDE_PTE;
    rig.map_huge(root, kVa & ~0x1fffffull, 1, entry);
    rig.put(0x400000 + 0x123450, 0x77u);
    const auto memory = port();
    EXPECT_EQ(read32(*memory, (kVa & ~0x1fffffull) + 0x123450), 0x77u);
    // 1 GiB at level 2: the VF has 16 MiB of it.
    rig.map_huge(root, 0x40000000, 2, kRwx | GPUVM_PDE_PTE);
    rig.put(0xf00000, 0x78u);
    EXPECT_EQ(read32(*memory, 0x40f00000), 0x78u);
    EXPECT_EQ(fault_of(*memory, 0x40000000 + kVfBytes.count), FaultKind::OutOfRange);
}

/// amdgpu looks at the alignment of the virtual address alone when it makes a PDE a PTE: pages of
/// system memory may begin anywhere.
TEST_F(GpuVmTest, AHugePageBeginsAtAnyPageOfMemory) {
    rig.map_huge(root, kVa & ~0x1fffffull, 1, 0x483000 | kRwx | GPUVM_PDE_PTE);
    rig.put(0x483000 + 0x17f008, 0x79u);
    rig.put(0x483000 + 0x1ff000, 0x7au);
    const auto memory = port();
    EXPECT_EQ(read32(*memory, (kVa & ~0x1fffffull) + 0x17f008), 0x79u);
    EXPECT_EQ(read32(*memory, (kVa & ~0x1fffffull) + 0x1ff000), 0x7au);
}

TEST_F(GpuVmTest, SystemPagesGoToTheBus) {
    rig.map_page(root, kVa, (kBusBase + 0x5000) | kRwx | GPUVM_PTE_SYSTEM | GPUVM_PTE_SNOOPED);
    const auto memory = port();
    const std::uint32_t value = 0x600d;
    ASSERT_TRUE(memory->write(GpuVa{kVa + 4}, bytes_of(value)));
    EXPECT_EQ(rig.get_bus<std::uint32_t>(kBusBase + 0x5004), value);
}

/// The doorbell BAR of the VF itself: what its engines do there.
struct RecordedBar {
    using Write = std::pair<std::uint64_t, std::vector<std::byte>>;
    template <typename T> static Write write_of(std::uint64_t offset, const T& value) {
        const auto bytes = bytes_of(value);
        return {offset, {bytes.begin(), bytes.end()}};
    }
    std::vector<Write> writes;
};

struct OwnBarTest : GpuVmTest {
    static constexpr std::uint64_t kBar = 0xfe200000;
    OwnBarTest() {
        rig.system.set_own_bar(
            [this](std::uint64_t offset, std::span<const std::byte> data) {
                bar.writes.emplace_back(offset, std::vector(data.begin(), data.end()));
            },
            2_MiB);
        rig.map_page(root, kVa, (kBar + 0x3000) | kRwx | GPUVM_PTE_SYSTEM);
    }
    RecordedBar bar;
};

TEST_F(OwnBarTest, AWriteOfAnEngineArrivesInItsSizeAtTheOffsetInTheBar) {
    rig.system.place_own_bar(Iova{kBar});
    for (const Hub hub : {Hub::Gfx, Hub::Mm}) {
        const auto memory = port(kUser, hub);
        bar.writes.clear();
        ASSERT_TRUE(store_value(*memory, GpuVa{kVa + 8}, std::uint64_t{7}));
        ASSERT_TRUE(store_value(*memory, GpuVa{kVa + 16}, std::uint32_t{8}));
        EXPECT_EQ(bar.writes, (std::vector{RecordedBar::write_of(0x3008, std::uint64_t{7}),
                                           RecordedBar::write_of(0x3010, std::uint32_t{8})}));
        EXPECT_EQ(read32(*memory, kVa + 8), 0u);
    }
}

TEST_F(OwnBarTest, WhatLiesBesideTheBarOrWhereItIsNotPlacedIsNoMemory) {
    const auto memory = port();
    EXPECT_EQ(fault_of(*memory, kVa, Access::Write), FaultKind::OutOfRange) << "never placed";
    rig.system.place_own_bar(Iova{kBar});
    rig.map_page(root, kVa + 0x1000, (kBar + (2_MiB).count) | kRwx | GPUVM_PTE_SYSTEM);
    rig.map_page(root, kVa + 0x2000, (kBar - 0x1000) | kRwx | GPUVM_PTE_SYSTEM);
    EXPECT_EQ(fault_of(*memory, kVa + 0x1000, Access::Write), FaultKind::OutOfRange);
    EXPECT_EQ(fault_of(*memory, kVa + 0x2000, Access::Write), FaultKind::OutOfRange);
    rig.system.place_own_bar(Iova{kBar + (2_MiB).count});  // the guest moves it
    EXPECT_EQ(fault_of(*memory, kVa, Access::Write), FaultKind::OutOfRange);
    memory->clear_fault();
    EXPECT_TRUE(store_value(*memory, GpuVa{kVa + 0x1000}, std::uint32_t{1}));
    rig.system.place_own_bar(std::nullopt);  // memory space off
    EXPECT_EQ(fault_of(*memory, kVa + 0x1000, Access::Write), FaultKind::OutOfRange);
    EXPECT_EQ(bar.writes, (std::vector{RecordedBar::write_of(0, std::uint32_t{1})}));
}

TEST_F(OwnBarTest, APageWithoutWritePermissionRingsNothing) {
    rig.system.place_own_bar(Iova{kBar});
    rig.map_page(root, kVa, (kBar + 0x3000) | (kRwx & ~GPUVM_PTE_WRITEABLE) | GPUVM_PTE_SYSTEM);
    const auto memory = port();
    EXPECT_FALSE(store_value(*memory, GpuVa{kVa}, std::uint64_t{7}));
    EXPECT_EQ(memory->fault().kind, FaultKind::Permission);
    EXPECT_TRUE(bar.writes.empty());
}

TEST_F(OwnBarTest, AnAtomicHasNoEffectAndReturnsAllOnes) {
    rig.system.place_own_bar(Iova{kBar});
    const auto memory = port();
    const AtomicResult result = perform_atomic(*memory, {TC_OP_ADD_64, GpuVa{kVa}, 1, 0});
    EXPECT_EQ(result.status, AtomicStatus::Done);
    EXPECT_EQ(result.before, ~0ull);
    EXPECT_TRUE(bar.writes.empty());
}

TEST_F(GpuVmTest, PageTablesMayLieInSystemMemory) {
    rig.put_bus<std::uint64_t>(kBusBase + 0x1000 + bits(kVa, 12, 9) * 8, kPage | kRwx);
    rig.map_huge(root, kVa, 1, (kBusBase + 0x1000) | GPUVM_PTE_VALID | GPUVM_PTE_SYSTEM);
    rig.put(kPage, 0x99u);
    EXPECT_EQ(read32(*port(), kVa), 0x99u);
}

TEST_F(GpuVmTest, PermissionsAreThoseOfThePte) {
    const auto memory = port();
    rig.map_page(root, kVa, kPage | GPUVM_PTE_VALID | GPUVM_PTE_READABLE);
    EXPECT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    EXPECT_EQ(fault_of(*memory, kVa, Access::Write), FaultKind::Permission);
    EXPECT_EQ(fault_of(*memory, kVa, Access::Execute), FaultKind::Permission);
    rig.map_page(root, kVa + 0x1000, kPage | GPUVM_PTE_VALID | GPUVM_PTE_WRITEABLE);
    EXPECT_EQ(fault_of(*memory, kVa + 0x1000, Access::Read), FaultKind::Permission);
    EXPECT_NE(memory->at(GpuVa{kVa + 0x1000}, Access::Write), nullptr);
}

TEST_F(GpuVmTest, InvalidEntriesFaultAtEveryLevelWhateverTheirOtherBits) {
    const auto memory = port();
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::NotPresent);
    for (const unsigned level : {3u, 2u, 1u, 0u}) {
        rig.map_huge(root, kVa, level, GPUVM_PDE_PTE | GPUVM_PTE_TF | GPUVM_PTE_EXECUTABLE);
        EXPECT_EQ(fault_of(*memory, kVa), FaultKind::NotPresent) << "level " << level;
        if (level != 0) rig.map_huge(root, kVa, level, rig.new_table() | GPUVM_PTE_VALID);
    }
}

TEST_F(GpuVmTest, EntriesThatPointOutsideTheSliceFault) {
    const auto memory = port();
    rig.map_page(root, kVa, kVfBytes.count | kRwx);
    EXPECT_EQ(fault_of(*memory, kVa, Access::Write), FaultKind::OutOfRange);
    rig.map_page(root, kVa, 0x0000fffffffff000 | kRwx);
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::OutOfRange);
    rig.map_page(root, kVa, 0x12345000 | kRwx | GPUVM_PTE_SYSTEM);
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::OutOfRange);
    rig.map_huge(root, kVa, 1, 0x00007ffffffff000 | GPUVM_PTE_VALID);
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::OutOfRange) << "table outside";
}

TEST_F(GpuVmTest, PrtPagesReadZeroAndForgetWrites) {
    rig.map_page(root, kVa, GPUVM_PTE_PRT);
    const auto memory = port();
    const std::uint32_t value = 5;
    EXPECT_EQ(memory->at(GpuVa{kVa}, Access::Write), nullptr);
    EXPECT_FALSE(memory->has_fault());
    EXPECT_TRUE(memory->write(GpuVa{kVa}, bytes_of(value)));
    EXPECT_EQ(read32(*memory, kVa), 0u);
}

TEST_F(GpuVmTest, AChangedPteIsSeenStaleUntilItIsInvalidated) {
    rig.map_page(root, kVa, kPage | kRwx);
    rig.put(kPage, 1u);
    rig.put(kOtherPage, 2u);
    const auto memory = port();
    ASSERT_EQ(read32(*memory, kVa), 1u);
    rig.map_page(root, kVa, kOtherPage | kRwx);
    EXPECT_EQ(read32(*memory, kVa), 1u) << "nobody flushed the TLB";
    rig.invalidate(kUser - 1);
    EXPECT_EQ(read32(*memory, kVa), 1u) << "another VMID was flushed";
    rig.invalidate(kUser);
    EXPECT_EQ(read32(*memory, kVa), 2u);
}

/// The walker keeps what one entry maps: pages of it that were never asked for are stale, too.
TEST_F(GpuVmTest, AChangedHugePageIsSeenStaleAsAWholeUntilItIsInvalidated) {
    constexpr std::uint64_t start = kVa & ~0x1fffffull, other = 0x5000;
    rig.map_huge(root, start, 1, 0x400000 | kRwx | GPUVM_PDE_PTE);
    rig.put(0x400000 + other, 1u);
    rig.put(0x800000 + other, 2u);
    const auto memory = port();
    ASSERT_EQ(read32(*memory, start), 0u);
    rig.map_huge(root, start, 1, 0x800000 | kRwx | GPUVM_PDE_PTE);
    EXPECT_EQ(read32(*memory, start + other), 1u) << "nobody flushed the walker";
    rig.invalidate(kUser);
    EXPECT_EQ(read32(*memory, start + other), 2u);
}

TEST_F(GpuVmTest, PagesOfAReadOnlyHugePageFaultAlike) {
    constexpr std::uint64_t start = kVa & ~0x1fffffull;
    rig.map_huge(root, start, 1, 0x400000 | GPUVM_PTE_VALID | GPUVM_PTE_READABLE | GPUVM_PDE_PTE);
    const auto memory = port();
    ASSERT_NE(memory->at(GpuVa{start}, Access::Read), nullptr);
    for (const std::uint64_t page : {0x0u, 0x1000u, 0x1ff000u}) {
        ASSERT_EQ(memory->at(GpuVa{start + page + 8}, Access::Write), nullptr);
        EXPECT_EQ(memory->fault().kind, FaultKind::Permission);
        EXPECT_EQ(memory->fault().access, Access::Write);
        EXPECT_EQ(memory->fault().va, GpuVa{start + page + 8});
    }
}

TEST_F(GpuVmTest, AnUnmappedPageIsReachableUntilItIsInvalidated) {
    rig.map_page(root, kVa, kPage | kRwx);
    const auto memory = port();
    ASSERT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    rig.map_page(root, kVa, 0);
    EXPECT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    rig.invalidate(kUser);
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::NotPresent);
}

TEST_F(GpuVmTest, InvalidateRequestsAreAcknowledgedPerEngineAndVmid) {
    rig.write_reg(REG_GC_VM_INVALIDATE_ENG0_REQ + 5, HW_PREP(VM_INVALIDATE_REQ, VMIDS, 0x0102));
    EXPECT_EQ(rig.read_reg(REG_GC_VM_INVALIDATE_ENG0_ACK + 5), 0x0102u);
    EXPECT_EQ(rig.read_reg(REG_GC_VM_INVALIDATE_ENG0_ACK + 4), 0u);
    EXPECT_EQ(rig.read_reg(REG_MMHUB_VM_INVALIDATE_ENG0_ACK + 5), 0u);
    rig.write_reg(REG_MMHUB_VM_INVALIDATE_ENG0_REQ, HW_PREP(VM_INVALIDATE_REQ, VMIDS, 1));
    EXPECT_EQ(rig.read_reg(REG_MMHUB_VM_INVALIDATE_ENG0_ACK), 1u);
}

TEST_F(GpuVmTest, PasidFlushReachesTheVmidOfTheProcess) {
    rig.map_page(root, kVa, kPage | kRwx);
    rig.put(kPage, 1u);
    rig.put(kOtherPage, 2u);
    rig.gpuvm->set_pasid(Vmid{kUser}, 0x8001);
    EXPECT_EQ(rig.read_reg(REG_ATHUB_ATC_VMID0_PASID_MAPPING + kUser), 0x80008001u);
    EXPECT_EQ(rig.gpuvm->pasid_of(Vmid{kUser}), 0x8001u);
    const auto memory = port();
    ASSERT_EQ(read32(*memory, kVa), 1u);
    rig.map_page(root, kVa, kOtherPage | kRwx);
    rig.gpuvm->invalidate_pasid(0x8002);
    EXPECT_EQ(read32(*memory, kVa), 1u);
    rig.gpuvm->invalidate_pasid(0x8001);
    EXPECT_EQ(read32(*memory, kVa), 2u);
    rig.write_reg(REG_ATHUB_ATC_VMID0_PASID_MAPPING + kUser, 0);
    EXPECT_EQ(rig.gpuvm->pasid_of(Vmid{kUser}), 0u);
}

TEST_F(GpuVmTest, FlushesOfTheGuestAreToldWithTheirVmids) {
    std::vector<std::uint16_t> told;
    rig.gpuvm->set_invalidation_hook([&told](std::uint16_t vmids) { told.push_back(vmids); });
    rig.gpuvm->set_pasid(Vmid{kUser}, 0x8001);
    rig.write_reg(REG_GC_VM_INVALIDATE_ENG0_REQ + 5, HW_PREP(VM_INVALIDATE_REQ, VMIDS, 0x0102));
    rig.gpuvm->invalidate_pasid(0x8001);
    rig.gpuvm->invalidate_pasid(0x8002);  // nobody's
    EXPECT_EQ(told, (std::vector<std::uint16_t>{0x0102, 1u << kUser}));
}

TEST_F(GpuVmTest, MapProcessOverridesTheRegisterRoot) {
    const std::uint64_t process = rig.new_table();
    rig.map_page(root, kVa, kPage | kRwx);
    rig.map_page(process, kVa, kOtherPage | kRwx);
    rig.put(kPage, 1u);
    rig.put(kOtherPage, 2u);
    const auto memory = port();
    EXPECT_EQ(read32(*memory, kVa), 1u);
    rig.gpuvm->set_root(Vmid{kUser}, process | GPUVM_ROOT_VALID);
    EXPECT_EQ(read32(*memory, kVa), 2u);
    EXPECT_EQ(read32(*port(kUser, Hub::Mm), kVa), 2u);
    rig.gpuvm->reset();
    EXPECT_EQ(read32(*memory, kVa), 1u);
}

TEST_F(GpuVmTest, AnInvalidProcessRootFaultsInsteadOfUsingTheRegister) {
    rig.map_page(root, kVa, kPage | kRwx);
    rig.gpuvm->set_root(Vmid{kUser}, 0);
    EXPECT_EQ(fault_of(*port(), kVa), FaultKind::NotPresent);
}

TEST_F(GpuVmTest, Vmid0SeesVramAtFbBaseAndTheGart) {
    rig.enable_gart(0x100000, 512);
    rig.put(kPage, 0x11u);
    const auto memory = port(0);
    EXPECT_EQ(read32(*memory, kFbBase + kPage), 0x11u);
    EXPECT_EQ(fault_of(*memory, kFbBase + kVfBytes.count), FaultKind::NotPresent);
    EXPECT_EQ(fault_of(*memory, 0x3000), FaultKind::NotPresent);
    rig.put<std::uint64_t>(0x100000 + 3 * 8, kBusBase | kRwx | GPUVM_PTE_SYSTEM);
    rig.put_bus(kBusBase + 0x20, 0x22u);
    memory->clear_fault();
    EXPECT_EQ(read32(*memory, 0x3020), 0x22u);
    EXPECT_EQ(fault_of(*memory, 512 << 12), FaultKind::NotPresent) << "behind the GART's end";
}

TEST_F(GpuVmTest, UserVmidsDoNotSeeTheFbAperture) {
    EXPECT_EQ(fault_of(*port(), kFbBase + kPage), FaultKind::NotPresent);
}

TEST_F(GpuVmTest, ADmaUnmapEndsTranslationsToIt) {
    rig.map_page(root, kVa, kBusBase | kRwx | GPUVM_PTE_SYSTEM);
    const auto memory = port();
    ASSERT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    ASSERT_TRUE(rig.system.unmap(Iova{kBusBase}, test::kBusBytes));
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::OutOfRange);
}

TEST_F(GpuVmTest, ADmaUnmapWaitsForWhoeverHoldsAPointer) {
    rig.map_page(root, kVa, kBusBase | kRwx | GPUVM_PTE_SYSTEM);
    const auto memory = port();
    std::optional<Port::Hold> hold(*memory);
    std::byte* const host = memory->at(GpuVa{kVa}, Access::Write);
    ASSERT_NE(host, nullptr);
    std::atomic<bool> is_unmapped = false;
    std::thread client([&] {
        EXPECT_TRUE(rig.system.unmap(Iova{kBusBase}, test::kBusBytes));
        is_unmapped = true;
    });
    while (rig.system.mapping_count() != 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_unmapped);
    *host = std::byte{1};
    EXPECT_EQ(memory->at(GpuVa{kVa}, Access::Write), nullptr) << "no new pointer meanwhile";
    hold.reset();
    client.join();
    EXPECT_TRUE(is_unmapped);
}

TEST_F(GpuVmTest, CopiesSurviveAClientThatMapsAndUnmapsAllTheTime) {
    rig.map_page(root, kVa, kBusBase | kRwx | GPUVM_PTE_SYSTEM);
    constexpr int kRounds = 2'000;
    constexpr int kMaxRounds = 1'000'000;  // of a busy machine, where the engine starts late
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> copies = 0;
    std::thread engine([&] {
        const auto memory = port();
        std::array<std::byte, Port::kPageBytes> page{};
        while (!stop) {
            memory->clear_fault();
            copies += memory->read(GpuVa{kVa}, page) && memory->write(GpuVa{kVa}, page) ? 1 : 0;
        }
    });
    for (int i = 0; i < kRounds || (copies == 0 && i < kMaxRounds); ++i) {
        EXPECT_TRUE(rig.system.unmap(Iova{kBusBase}, test::kBusBytes));
        EXPECT_TRUE(rig.system.map(
            {Iova{kBusBase}, test::kBusBytes, rig.bus_fd.get(), 0, test::kBusReadWrite}));
    }
    stop = true;
    engine.join();
    EXPECT_GT(copies, 0u);
}

TEST_F(GpuVmTest, ReleasedVramEndsTranslationsToIt) {
    rig.map_page(root, kVa, kPage | kRwx);
    const auto memory = port();
    ASSERT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    rig.vram->release();
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::OutOfRange);
}

/// As if a release had forgotten to end translations.
TEST_F(GpuVmTest, ATranslationToAPageOfAnotherVfIsNotUsed) {
#ifdef NDEBUG
    GTEST_SKIP() << "assertions are off in this build";
#else
    rig.map_page(root, kVa, kPage | kRwx);
    const auto memory = port();
    ASSERT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    rig.device->release_pages(VfId{1});
    const auto leaves = test::contiguous_leaves(16u << 20, test::kVfBytes);
    ASSERT_TRUE(rig.device->claim_pages(VfId{2}, leaves));
    EXPECT_DEATH((void)memory->at(GpuVa{kVa}, Access::Read), "the TLB has a page of another VF");
#endif
}

TEST_F(GpuVmTest, ReadOnlyBusMemoryCannotBeWrittenThroughAWriteablePte) {
    const OwnedFd fd = test::make_memfd(4_KiB);
    ASSERT_TRUE(rig.system.map(
        {Iova{0x1000}, 4_KiB, fd.get(), 0, static_cast<std::uint8_t>(Access::Read)}));
    rig.map_page(root, kVa, 0x1000 | kRwx | GPUVM_PTE_SYSTEM);
    const auto memory = port();
    EXPECT_NE(memory->at(GpuVa{kVa}, Access::Read), nullptr);
    EXPECT_EQ(fault_of(*memory, kVa, Access::Write), FaultKind::Permission);
}

TEST_F(GpuVmTest, FbLocationFollowsTheVram) {
    EXPECT_EQ(rig.read_reg(REG_GC_MC_VM_FB_LOCATION_BASE), 0xf400u);
    EXPECT_EQ(rig.read_reg(REG_MMHUB_MC_VM_FB_LOCATION_TOP), 0xf400u) << "16 MiB: one unit";
}

TEST_F(GpuVmTest, AFaultIsRecordedOnceUntilItIsCleared) {
    const VmFault first{
        Hub::Gfx, Vmid{kUser}, 0x8001, {FaultKind::NotPresent, Access::Write, GpuVa{kVa + 0x10}}};
    const ih_iv_entry entry = rig.gpuvm->record_fault(first);
    EXPECT_EQ(entry.client_id, IH_CLIENT_UTCL2);
    EXPECT_EQ(entry.source_id, IH_SOURCE_VM_FAULT);
    EXPECT_EQ(entry.vmid, kUser);
    EXPECT_EQ(entry.pasid, 0x8001u);
    EXPECT_EQ(entry.ring_id, IH_FAULT_RING_VALID | IH_FAULT_RING_WRITE);
    EXPECT_EQ(entry.source_data[0], low32(kVa >> 12));
    EXPECT_EQ(entry.source_data[1], high32(kVa >> 12) | IH_FAULT_DATA1_WRITE);
    const std::uint32_t status = rig.read_reg(REG_GC_VM_L2_PROTECTION_FAULT_STATUS);
    EXPECT_EQ(HW_GET(VM_L2_PROTECTION_FAULT_STATUS, VMID, status), kUser);
    EXPECT_EQ(HW_GET(VM_L2_PROTECTION_FAULT_STATUS, RW, status), 1u);
    EXPECT_EQ(HW_GET(VM_L2_PROTECTION_FAULT_STATUS, MORE_FAULTS, status), 0u);
    VmFault second = first;
    second.fault.va = GpuVa{0x5000};
    rig.gpuvm->record_fault(second);
    EXPECT_EQ(rig.read_reg(REG_GC_VM_L2_PROTECTION_FAULT_ADDR_LO32), low32(kVa >> 12));
    EXPECT_EQ(HW_GET(VM_L2_PROTECTION_FAULT_STATUS, MORE_FAULTS,
                     rig.read_reg(REG_GC_VM_L2_PROTECTION_FAULT_STATUS)),
              1u);
    rig.write_reg(REG_GC_VM_INVALIDATE_ENG0_REQ, HW_PREP(VM_INVALIDATE_REQ, CLEAR_FAULT, 1));
    EXPECT_EQ(rig.read_reg(REG_GC_VM_L2_PROTECTION_FAULT_STATUS), 0u);
    EXPECT_EQ(rig.gpuvm->state().faults, 2u);
}

TEST_F(GpuVmTest, MmhubFaultsSayWhoseVmidTheyMean) {
    const ih_iv_entry entry = rig.gpuvm->record_fault(
        {Hub::Mm, Vmid{3}, 0, {FaultKind::Permission, Access::Read, GpuVa{kVa}}});
    EXPECT_EQ(entry.client_id, IH_CLIENT_VMC);
    EXPECT_EQ(entry.vmid, 0x83);
    EXPECT_EQ(rig.read_reg(REG_GC_VM_L2_PROTECTION_FAULT_STATUS), 0u);
    EXPECT_NE(rig.read_reg(REG_MMHUB_VM_L2_PROTECTION_FAULT_STATUS), 0u);
}

TEST_F(GpuVmTest, LoadOfASavedStateTranslatesAlike) {
    const std::uint64_t process = rig.new_table();
    rig.map_page(process, kVa, kPage | kRwx);
    rig.put(kPage, 0x42u);
    rig.gpuvm->set_root(Vmid{9}, process | GPUVM_ROOT_VALID);
    rig.enable_context(9, root);
    std::vector<std::byte> stream;
    Writer out(stream);
    rig.regs.save(out);
    rig.gpuvm->save(out);
    rig.regs.reset();
    rig.gpuvm->reset();
    const auto memory = port(9);
    EXPECT_EQ(fault_of(*memory, kVa), FaultKind::NotPresent);
    Reader in(stream);
    ASSERT_TRUE(rig.regs.load(in));
    ASSERT_TRUE(rig.gpuvm->load(in));
    memory->clear_fault();
    EXPECT_EQ(read32(*memory, kVa), 0x42u);
}

TEST_F(GpuVmTest, ATruncatedStreamLeavesTheResetState) {
    rig.gpuvm->set_root(Vmid{9}, root | GPUVM_ROOT_VALID);
    std::vector<std::byte> stream;
    Writer out(stream);
    rig.gpuvm->save(out);
    Reader in(std::span<const std::byte>(stream).first(8));
    EXPECT_FALSE(rig.gpuvm->load(in));
    EXPECT_EQ(rig.gpuvm->state().process_mask, 0u);
}

}  // namespace
}  // namespace vgpu::softgpu::mem
