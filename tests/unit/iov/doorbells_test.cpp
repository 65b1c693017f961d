// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/doorbells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::iov {

bool operator==(const DoorbellRing& a, const DoorbellRing& b) {
    return a.index == b.index && a.value == b.value && a.width == b.width;
}
void PrintTo(const DoorbellRing& ring, std::ostream* out) {
    *out << "{" << raw(ring.index) << ", " << ring.value << ", " << static_cast<int>(ring.width)
         << "}";
}

namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DoorbellIndex kIh{DOORBELL_IH};

class Listener final : public DoorbellListener {
public:
    bool deliver_to_ih(const DoorbellRing& ring) override {
        if (ring.index != kIh) return false;
        read_pointers.push_back(ring.value);
        return true;
    }
    void deliver(const DoorbellRing& ring) override { rings.push_back(ring); }
    void work_arrived() override { ++wakes; }

    std::vector<std::uint64_t> read_pointers;
    std::vector<DoorbellRing> rings;
    int wakes = 0;
};

class DoorbellsTest : public ::testing::Test {
protected:
    DoorbellsTest() { doorbells.set_gate(regs::Gate::Open); }

    template <typename T> void ring(std::uint32_t dword, T value) {
        doorbells.write(dword * 4ull, bytes_of(std::as_const(value)));
    }
    /// By an engine of the VF.
    template <typename T> void post(std::uint64_t offset, T value) {
        doorbells.post(offset, bytes_of(std::as_const(value)));
    }
    static DoorbellRing narrow(std::uint32_t dword, std::uint32_t value) {
        return {DoorbellIndex{dword}, value, DoorbellRing::Width::Dword};
    }
    static DoorbellRing wide(std::uint32_t dword, std::uint64_t value) {
        return {DoorbellIndex{dword}, value, DoorbellRing::Width::Qword};
    }

    Listener listener;
    Doorbells doorbells{listener};
};

TEST_F(DoorbellsTest, AnActiveVfsRingGoesStraightThrough) {
    doorbells.activate();
    ring<std::uint64_t>(0x1000, 5);
    ring<std::uint32_t>(0x1f0, 6);
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 5), narrow(0x1f0, 6)));
    EXPECT_EQ(doorbells.counters().latched, 0u);
}

TEST_F(DoorbellsTest, AnInactiveVfsRingsAreLatchedLatestValuePerDoorbell) {
    ring<std::uint64_t>(0x1002, 1);
    ring<std::uint64_t>(0x1000, 2);
    ring<std::uint64_t>(0x1002, 0x1'0000'0003ull);
    EXPECT_THAT(listener.rings, IsEmpty());
    EXPECT_TRUE(doorbells.has_latched());
    EXPECT_EQ(listener.wakes, 1);
    doorbells.activate();
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 2), wide(0x1002, 0x1'0000'0003ull)));
    EXPECT_EQ(doorbells.counters().latched, 3u);
    EXPECT_FALSE(doorbells.has_latched());
    doorbells.deactivate();
    doorbells.activate();
    EXPECT_EQ(listener.rings.size(), 2u);
}

TEST_F(DoorbellsTest, ASmallerIndexThatIsRungLastDoesNotHideTheLargerOne) {
    ring<std::uint64_t>(0x1000, 5);
    ring<std::uint64_t>(0x1000, 4);
    ring<std::uint32_t>(0x1002, 2);
    ring<std::uint32_t>(0x1002, ~0u - 1);  // 4 behind: pointers wrap
    doorbells.activate();
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 5), wide(0x1000, 4), narrow(0x1002, 2),
                                            narrow(0x1002, ~0u - 1)));
}

TEST_F(DoorbellsTest, RingsOfTheVfsOwnEnginesAreTakenAsIfWrittenToTheBar) {
    doorbells.activate();
    post<std::uint64_t>(0x4000, 7);
    post<std::uint32_t>(0x4008, 8);
    post<std::uint32_t>(raw(kIh) * 4ull, 0x40);
    EXPECT_EQ(listener.wakes, 1);
    EXPECT_TRUE(doorbells.has_work());
    EXPECT_THAT(listener.rings, IsEmpty());
    EXPECT_EQ(doorbells.step(), StepResult::Progress);
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 7), narrow(0x1002, 8)));
    EXPECT_THAT(listener.read_pointers, ElementsAre(0x40u));
    EXPECT_EQ(doorbells.step(), StepResult::Idle);
    post<std::uint64_t>(0x4000, 9);
    EXPECT_EQ(listener.wakes, 2);
}

TEST_F(DoorbellsTest, EnginesPassTheSameGateAndPagesAsTheCpu) {
    doorbells.activate();
    doorbells.set_pages(0, 2);
    post<std::uint64_t>(0x4000, 7);
    (void)doorbells.step();
    doorbells.set_pages(0, DOORBELL_PAGES);
    doorbells.set_gate(regs::Gate::Shut);
    post<std::uint64_t>(0x4000, 7);
    (void)doorbells.step();
    EXPECT_THAT(listener.rings, IsEmpty());
    EXPECT_EQ(doorbells.counters().dropped, 2u);
}

TEST_F(DoorbellsTest, OddSizesAndMisalignedRingsOfEnginesAreDropped) {
    doorbells.activate();
    post<std::uint8_t>(0x4000, 1);
    post<std::uint16_t>(0x4000, 1);
    post<std::uint64_t>(0x4004, 1);
    post(0x4000, std::array<std::uint64_t, 2>{1, 2});
    post<std::uint64_t>(DOORBELL_BAR_BYTES, 1);
    EXPECT_EQ(doorbells.step(), StepResult::Progress);
    EXPECT_THAT(listener.rings, IsEmpty());
    EXPECT_EQ(doorbells.counters().dropped, 5u);
    EXPECT_FALSE(doorbells.has_work());
}

TEST_F(DoorbellsTest, AStormOfAnEngineIsNotifiedOnceAndTakenInBoundedPieces) {
    doorbells.activate();
    constexpr std::uint32_t kFirst = 0x1000;
    constexpr std::uint32_t kDoorbells = 5000;
    for (std::uint64_t round = 1; round <= 3; ++round)
        for (std::uint32_t i = 0; i < kDoorbells; ++i) post((kFirst + 2ull * i) * 4, round);
    EXPECT_EQ(listener.wakes, 1);
    std::size_t pieces = 0;
    for (std::size_t seen = 0; doorbells.step() == StepResult::Progress;
         seen = listener.rings.size(), ++pieces)
        EXPECT_LE(listener.rings.size() - seen, Doorbells::kMaxRings);
    EXPECT_EQ(pieces, kDoorbells / Doorbells::kMaxRings + 1);
    ASSERT_EQ(listener.rings.size(), kDoorbells);
    EXPECT_TRUE(
        std::ranges::all_of(listener.rings, [](const DoorbellRing& r) { return r.value == 3; }));
}

TEST_F(DoorbellsTest, WhatEnginesRangLastIsTakenBeforeTheVfLeavesTheEngine) {
    doorbells.activate();
    post<std::uint64_t>(0x4000, 7);
    doorbells.deactivate();
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 7)));
    EXPECT_FALSE(doorbells.has_latched());
}

TEST_F(DoorbellsTest, AResetForgetsWhatEnginesHaveRung) {
    doorbells.activate();
    post<std::uint64_t>(0x4000, 7);
    doorbells.reset();
    EXPECT_EQ(doorbells.step(), StepResult::Idle);
    EXPECT_THAT(listener.rings, IsEmpty());
}

TEST_F(DoorbellsTest, ReadPointerDoorbellsAreLiveWhileTheVfIsInactive) {
    ring<std::uint32_t>(raw(kIh), 0x40);
    EXPECT_THAT(listener.read_pointers, ElementsAre(0x40u));
    EXPECT_FALSE(doorbells.has_latched());
}

TEST_F(DoorbellsTest, AShutGateDropsAndCounts) {
    doorbells.set_gate(regs::Gate::Shut);
    ring<std::uint64_t>(0x1000, 5);
    ring<std::uint32_t>(raw(kIh), 0x40);
    EXPECT_FALSE(doorbells.has_latched());
    EXPECT_THAT(listener.read_pointers, IsEmpty());
    EXPECT_EQ(doorbells.counters().dropped, 2u);
}

TEST_F(DoorbellsTest, PagesThePfDidNotEnableAreDropped) {
    doorbells.set_pages(1, 2);  // dwords 0x400 .. 0xbff
    doorbells.activate();
    for (const std::uint32_t dword : {0x3feu, 0x400u, 0xbfeu, 0xc00u})
        ring<std::uint64_t>(dword, 1);
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x400, 1), wide(0xbfe, 1)));
    EXPECT_EQ(doorbells.counters().dropped, 2u);
}

TEST_F(DoorbellsTest, PageRangesBeyondTheBarAreCut) {
    doorbells.set_pages(0xffff, 0xffff);
    doorbells.activate();
    ring<std::uint64_t>(0, 1);
    EXPECT_THAT(listener.rings, IsEmpty());
}

TEST_F(DoorbellsTest, OddSizesAndMisalignedRingsAreDropped) {
    doorbells.activate();
    const std::array<std::byte, 16> data{};
    doorbells.write(0, std::span(data).first(1));
    doorbells.write(0, std::span(data).first(2));
    doorbells.write(2, std::span(data).first(4));
    doorbells.write(4, std::span(data).first(8));
    doorbells.write(0, data);
    doorbells.write(DOORBELL_BAR_BYTES, std::span(data).first(4));
    EXPECT_THAT(listener.rings, IsEmpty());
    EXPECT_EQ(doorbells.counters().dropped, 6u);
}

TEST_F(DoorbellsTest, TheLastDoorbellOfTheBarWorks) {
    ring<std::uint64_t>(DOORBELL_BAR_BYTES / 4 - 2, 9);
    ring<std::uint32_t>(DOORBELL_BAR_BYTES / 4 - 1, 8);
    doorbells.activate();
    EXPECT_EQ(listener.rings.size(), 2u);
}

TEST_F(DoorbellsTest, LatchedRingsTravelInTheState) {
    ring<std::uint64_t>(0x1000, 5);
    ring<std::uint32_t>(0x1e0, 6);
    std::vector<std::byte> stream;
    Writer out(stream);
    doorbells.save(out);
    doorbells.reset();
    Reader in(stream);
    ASSERT_TRUE(doorbells.load(in));
    doorbells.activate();
    EXPECT_THAT(listener.rings, ElementsAre(narrow(0x1e0, 6), wide(0x1000, 5)));
}

TEST_F(DoorbellsTest, AStreamWithADoorbellOutsideTheBarIsRefused) {
    std::vector<std::byte> stream;
    Writer out(stream);
    out.value(std::uint64_t{1});
    out.value(std::array<std::uint32_t, 4>{DOORBELL_BAR_BYTES, 4, 0, 0});
    Reader in(stream);
    EXPECT_FALSE(doorbells.load(in));
    EXPECT_FALSE(doorbells.has_latched());
}

TEST_F(DoorbellsTest, AStreamThatClaimsMoreThanItHoldsIsRefused) {
    std::vector<std::byte> stream;
    Writer(stream).value(~std::uint64_t{0});
    Reader in(stream);
    EXPECT_FALSE(doorbells.load(in));
}

/// Poll mode: the client's view of the BAR.
class MappedDoorbellsTest : public DoorbellsTest {
protected:
    void SetUp() override {
        ASSERT_TRUE(doorbells.make_mappable());
        map();
    }
    void TearDown() override { munmap(bar.data(), bar.size()); }
    void map() {
        void* address = mmap(nullptr, DOORBELL_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                             doorbells.memfd(), 0);
        ASSERT_NE(address, MAP_FAILED);
        bar = {static_cast<std::byte*>(address), DOORBELL_BAR_BYTES};
    }

    template <typename T> void client_writes(std::uint32_t dword, T value) {
        store(bar, dword * 4ull, value);
    }

    std::span<std::byte> bar;
};

TEST_F(MappedDoorbellsTest, ARingOfZeroIsARing) {
    doorbells.activate();
    client_writes<std::uint64_t>(0x1000, 0);
    doorbells.scan(Doorbells::Scan::Thorough);
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 0)));
    doorbells.scan(Doorbells::Scan::Thorough);
    EXPECT_EQ(listener.rings.size(), 1u);
}

TEST_F(MappedDoorbellsTest, NarrowRingsOfEitherHalfKeepTheirWidth) {
    doorbells.activate();
    client_writes<std::uint32_t>(0x1f0, 7);
    client_writes<std::uint32_t>(0x1f3, 8);
    doorbells.scan(Doorbells::Scan::Thorough);
    EXPECT_THAT(listener.rings, ElementsAre(narrow(0x1f0, 7), narrow(0x1f3, 8)));
}

TEST_F(MappedDoorbellsTest, AHotScanSeesKernelPagesAndPagesThatHaveRung) {
    doorbells.activate();
    client_writes<std::uint64_t>(0xc00, 1);
    client_writes<std::uint64_t>(0x2000, 2);
    doorbells.scan(Doorbells::Scan::Hot);
    EXPECT_THAT(listener.rings, ElementsAre(wide(0xc00, 1)));
    doorbells.scan(Doorbells::Scan::Thorough);
    client_writes<std::uint64_t>(0x2000, 3);
    doorbells.scan(Doorbells::Scan::Hot);
    EXPECT_EQ(listener.rings.back(), wide(0x2000, 3));
}

TEST_F(MappedDoorbellsTest, WhoMappedTheFormerFileRingsAndSeesNothing) {
    doorbells.activate();
    ASSERT_TRUE(doorbells.renew());
    const std::span<std::byte> former = bar;
    map();
    client_writes<std::uint64_t>(0x1000, 7);
    EXPECT_NE(load<std::uint64_t>(former, 0x1000 * 4), 7u);
    store(former, 0x1002 * 4, std::uint64_t{8});
    doorbells.scan(Doorbells::Scan::Thorough);
    EXPECT_THAT(listener.rings, ElementsAre(wide(0x1000, 7)));
    munmap(former.data(), former.size());
}

TEST_F(MappedDoorbellsTest, OneScanTakesABoundedNumberOfRingsAndTheNextTheRest) {
    doorbells.activate();
    constexpr std::uint32_t kRings = Doorbells::kMaxRings + 100;
    for (std::uint32_t i = 0; i < kRings; ++i) client_writes<std::uint64_t>(0x1000 + 2 * i, i);
    doorbells.scan(Doorbells::Scan::Thorough);
    EXPECT_EQ(listener.rings.size(), Doorbells::kMaxRings);
    doorbells.scan(Doorbells::Scan::Hot);
    ASSERT_EQ(listener.rings.size(), kRings);
    for (std::uint32_t i = 0; i < kRings; ++i) EXPECT_EQ(listener.rings[i].value, i);
}

TEST_F(MappedDoorbellsTest, APageThatIsRungWithoutEndKeepsNoOtherWaiting) {
    doorbells.activate();
    const auto ring_pages = [this] {
        for (std::uint32_t i = 0; i < Doorbells::kMaxRings; ++i)
            client_writes<std::uint64_t>(0x1000 + 2 * i, 1);
    };
    client_writes<std::uint64_t>(0x8000, 2);
    ring_pages();
    doorbells.scan(Doorbells::Scan::Thorough);
    ring_pages();
    doorbells.scan(Doorbells::Scan::Thorough);
    EXPECT_THAT(listener.rings, Contains(wide(0x8000, 2)));
}

TEST_F(MappedDoorbellsTest, NoRingIsLostOrSeenTwiceWhileScansRace) {
    doorbells.activate();
    constexpr std::uint64_t kLast = 20000;
    std::thread client([this] {
        for (std::uint64_t i = 0; i <= kLast; ++i)
            std::atomic_ref(*static_cast<std::uint64_t*>(static_cast<void*>(bar.data())))
                .store(i, std::memory_order_release);
    });
    while (listener.rings.empty() || listener.rings.back().value != kLast)
        doorbells.scan(Doorbells::Scan::Hot);
    client.join();
    for (std::size_t i = 1; i < listener.rings.size(); ++i)
        ASSERT_LT(listener.rings[i - 1].value, listener.rings[i].value);
}

}  // namespace
}  // namespace vgpu::softgpu::iov
