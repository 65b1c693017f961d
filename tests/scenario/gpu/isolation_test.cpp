// SPDX-License-Identifier: MIT
//
// A guest cannot reach a neighbour: not by GPUVM, SDMA or BAR0, not through old mappings, and not
// if it removes its own memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "pf-driver/hw/gpuvm.h"
#include "tests/scenario/gpu/guest.h"

namespace vgpu::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint32_t kSecret = 0x5ec2e75u;

/// Fills the last MiB of a guest's VRAM with a pattern and checks whether the pattern is still
/// there.
class Pattern {
public:
    explicit Pattern(Guest& guest)
        : bytes_(guest.client.device().vram_at(guest.client.vram_bytes() - kMiB, kMiB)) {
        for (std::size_t at = 0; at < kMiB; at += 4)
            store_shared<std::uint32_t>(bytes_.data() + at, kSecret);
    }
    [[nodiscard]] bool is_intact() const {
        for (std::size_t at = 0; at < kMiB; at += 4)
            if (load_shared<std::uint32_t>(bytes_.data() + at) != kSecret) return false;
        return true;
    }

private:
    std::span<std::byte> bytes_;
};

struct TwoGuests : ::testing::Test {
    TwoGuests() {
        stack.provision(1);
        stack.provision(2);
        attacker.emplace(stack, 1);
        neighbour.emplace(stack, 2);
        pattern.emplace(*neighbour);
    }
    void expect_neighbour_well() {
        EXPECT_TRUE(pattern->is_intact());
        EXPECT_EQ(neighbour->run_all(), "");
    }

    GpuStack stack;
    std::optional<Guest> attacker, neighbour;
    std::optional<Pattern> pattern;
};

/// One page of a process whose PTE the test writes itself.
struct OddPage {
    OddPage(Guest& guest, std::uint64_t pte) : buffer(guest.process->allocate(4096)) {
        guest.process->tables().set_entry(buffer.address, 0, pte);
        guest.client.device().flush_hdp();
        guest.process->flush_tlb();
    }
    Buffer buffer;
};

using Isolation = TwoGuests;

TEST_F(Isolation, PteBeyondTheSliceFaultsForKernels) {
    const auto beyond = attacker->client.vram_bytes() + 4 * kMiB;
    const OddPage page(*attacker, beyond | PageTable::kVramFlags);
    const auto kernel = attacker->process->load(kernel_file("wild_store"), "wild_store");
    const auto out = attacker->process->allocate(4096);
    attacker->queue->dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                              args(out.address, page.buffer.address));
    const auto fault = attacker->process->wait_fault();
    EXPECT_EQ(fault.source_data[0],
              static_cast<std::uint32_t>(page.buffer.address >> GPUVM_PAGE_SHIFT));
    EXPECT_GE(stack.pf().vf(1).faults, 1u);
    EXPECT_EQ(stack.pf().vf(2).faults, 0u);
    expect_neighbour_well();
}

TEST_F(Isolation, HugePteBeyondTheSliceFaultsToo) {
    const auto buffer = attacker->process->allocate(2 * kMiB, Place::Vram);
    const auto beyond = (attacker->client.vram_bytes() + 2 * kMiB) & ~(2 * kMiB - 1);
    attacker->process->tables().map_huge(buffer.address, beyond);
    attacker->client.device().flush_hdp();
    attacker->process->flush_tlb();
    const auto kernel = attacker->process->load(kernel_file("wild_store"), "wild_store");
    const auto out = attacker->process->allocate(4096);
    attacker->queue->dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                              args(out.address, buffer.address));
    attacker->process->wait_fault();
    expect_neighbour_well();
}

TEST_F(Isolation, PteBeyondTheSliceFaultsForSdma) {
    const auto beyond = attacker->client.vram_bytes() + 4 * kMiB;
    const OddPage page(*attacker, beyond | PageTable::kVramFlags);
    const auto from = attacker->process->allocate(4096);
    const auto done = attacker->process->create_signal();
    attacker->process->create_sdma_queue(0).copy(page.buffer.address, from.address, 4096, done);
    attacker->process->wait_fault();
    EXPECT_EQ(done.value(), 1);
    expect_neighbour_well();
}

TEST_F(Isolation, PteToBusMemoryThatIsNotThereFaults) {
    const OddPage page(*attacker,
                       (GuestMemory::kIova + (std::uint64_t{1} << 40)) | PageTable::kSystemFlags);
    const auto to = attacker->process->allocate(4096);
    const auto done = attacker->process->create_signal();
    attacker->process->create_sdma_queue(1).copy(to.address, page.buffer.address, 4096, done);
    attacker->process->wait_fault();
    expect_neighbour_well();
}

TEST_F(Isolation, KernelRingBeyondTheFrameBufferFaults) {
    // VMID 0, MC address behind the VF's VRAM
    const auto base = std::uint64_t{GPUVM_FB_LOCATION_BASE} << GPUVM_FB_LOCATION_SHIFT;
    const auto beyond = base + attacker->client.vram_bytes() + kMiB;
    const std::array data{0xbadu};
    attacker->client.sdma(0).push(sdma::write(beyond, data));
    wait_for("the fault to be counted", milliseconds(5000),
             [&] { return stack.pf().vf(1).faults >= 1; });
    expect_neighbour_well();
}

TEST_F(Isolation, Bar0BeyondTheSliceReadsOnesAndDropsWrites) {
    auto& device = attacker->client.device();
    EXPECT_EQ(device.vram().size(), attacker->client.vram_bytes());
    std::array<std::byte, 64> bytes{};
    device.vram_read_trapped(attacker->client.vram_bytes(), bytes);
    EXPECT_TRUE(std::ranges::all_of(bytes, [](auto b) { return b == std::byte{0xff}; }));
    bytes.fill(std::byte{0x66});
    device.vram_write_trapped(attacker->client.vram_bytes(), bytes);
    device.vram_write_trapped(device.aperture_bytes() - bytes.size(), bytes);
    expect_neighbour_well();
}

TEST_F(Isolation, UnmappedAddressStopsTheProcessAndNobodyElse) {
    auto& other = attacker->client.create_process();
    auto& other_queue = other.create_queue();
    const auto kernel = attacker->process->load(kernel_file("wild_store"), "wild_store");
    const auto out = attacker->process->allocate(4096);
    constexpr std::uint64_t kNowhere = 0x123456789000;
    attacker->queue->dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                              args(out.address, kNowhere));
    const auto fault = attacker->process->wait_fault();
    EXPECT_EQ(fault.source_data[0], static_cast<std::uint32_t>(kNowhere >> GPUVM_PAGE_SHIFT));
    EXPECT_EQ(fault.source_data[1] & IH_FAULT_DATA1_VA_HI_MASK, kNowhere >> 44);
    EXPECT_NE(fault.source_data[1] & IH_FAULT_DATA1_WRITE, 0u);
    EXPECT_EQ(run_programs(other, other_queue, {"array_increment"}), "");
    // the halted queue can still be taken off the hardware
    attacker->client.destroy_process(*attacker->process);
    EXPECT_EQ(run_programs(other, other_queue, {"array_increment"}), "");
    expect_neighbour_well();
}

TEST(Tlb, ChangedPteIsSeenStaleUntilInvalidated) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    auto& process = *guest.process;
    const auto old_page = process.allocate(4096);
    const auto new_page = process.allocate(4096);
    const auto to = process.allocate(4096);
    old_page.store<std::uint32_t>(0, 1);
    new_page.store<std::uint32_t>(0, 2);
    auto& sdma = process.create_sdma_queue(0);
    const auto done = process.create_signal();
    const auto copied = [&] {
        done.set(1);
        sdma.copy(to.address, old_page.address, 4096, done);
        process.wait(done);
        return to.load<std::uint32_t>();
    };
    EXPECT_EQ(copied(), 1u);
    process.tables().set_entry(old_page.address, 0, new_page.backing | PageTable::kSystemFlags);
    guest.client.device().flush_hdp();
    EXPECT_EQ(copied(), 1u) << "the TLB forgot a translation that nobody invalidated";
    process.flush_tlb();
    EXPECT_EQ(copied(), 2u);
}

TEST(Tlb, InvalidationByVmidOnTheKiqWorksToo) {
    GpuStack stack;
    stack.provision(1);
    Guest guest(stack, 1);
    const auto one = guest.client.gart().allocate(4096);
    const auto two = guest.client.gart().allocate(4096);
    const auto to = guest.client.gart().allocate(4096);
    one.store<std::uint32_t>(0, 1);
    two.store<std::uint32_t>(0, 2);
    auto& ring = guest.client.sdma(0);
    ring.sync(sdma::copy(to.address, one.address, 64));
    const auto table = [&](const Buffer& page) {
        return guest.client.device()
            .vram_at(VramHeap::kGartTable + page.address / 4096 * 8, 8)
            .data();
    };
    store_shared(table(one), load_shared<std::uint64_t>(table(two)));
    ring.sync(sdma::copy(to.address, one.address, 64));
    EXPECT_EQ(to.load<std::uint32_t>(), 1u);
    guest.client.flush_tlb(1);
    ring.sync(sdma::copy(to.address, one.address, 64));
    EXPECT_EQ(to.load<std::uint32_t>(), 2u);
}

TEST(Release, OldMappingOfBar0SeesNothingOfTheNextOwner) {
    GpuStack stack;
    stack.provision(1);
    Mapping old;
    {
        Guest first(stack, 1);
        std::ranges::fill(first.client.device().vram().subspan(8 * kMiB, kMiB), std::byte{0x11});
        old = first.client.device().take_vram();
    }
    stack.pf().release(1);
    stack.pf().wait_state(1, VGPU_PF_VF_SCRUBBING);
    wait_for("the scrub to be finished", milliseconds(10000),
             [&] { return stack.pf().is_zero(1); });
    stack.pf().scrub_durable(1);
    stack.pf().wait_state(1, VGPU_PF_VF_ABSENT);
    stack.pf().provision(1, 32 * kMiB);

    VfClient second(stack.vf_socket(1));
    const auto fresh = second.device().vram().subspan(8 * kMiB, kMiB);
    EXPECT_TRUE(std::ranges::all_of(fresh, [](auto b) { return b == std::byte{0}; }));
    std::ranges::fill(fresh, std::byte{0x22});
    const auto stale = old.bytes().subspan(8 * kMiB, kMiB);
    EXPECT_TRUE(std::ranges::none_of(stale, [](auto b) { return b == std::byte{0x22}; }));
    std::ranges::fill(stale, std::byte{0x33});
    EXPECT_TRUE(std::ranges::all_of(fresh, [](auto b) { return b == std::byte{0x22}; }));
}

TEST(Release, VramIsZeroAndMayBeHandedOutOnlyAfterItIsRecorded) {
    GpuStack stack;
    stack.provision(1);
    {
        Guest guest(stack, 1);
        std::ranges::fill(guest.client.device().vram().subspan(8 * kMiB), std::byte{0x77});
        EXPECT_THROW((void)stack.pf().is_zero(1), VfError) << "only released VRAM is verified";
    }
    stack.pf().release(1);
    wait_for("the scrub to be finished", milliseconds(10000),
             [&] { return stack.pf().is_zero(1); });
    EXPECT_EQ(stack.pf().vf(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_THROW(stack.pf().provision(1, 32 * kMiB), VfError);
    stack.pf().scrub_durable(1);
    stack.pf().wait_state(1, VGPU_PF_VF_ABSENT);
    stack.pf().provision(1, 32 * kMiB);
}

TEST(HostileMemory, ShrinkingAnUnsealedFileUnderRunningWavesHarmsOnlyItsOwner) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest hostile(stack, 1, {.ram_bytes = 64u << 20, .sealing = Sealing::Unsealed});
    Guest neighbour(stack, 2);
    wait_progress(start_endless(hostile));
    hostile.client.ram().shrink_to(4096);
    wait_for("the device to notice", milliseconds(10000),
             [&] { return stack.pf().vf(1).faults >= 1; });
    EXPECT_EQ(neighbour.run_all(), "");
    EXPECT_TRUE(stack.softgpu().is_running());
    EXPECT_EQ(stack.pf().vf(2).faults, 0u);
}

TEST(HostileMemory, SealedFileCannotBeShrunk) {
    GuestMemory ram(kMiB, Sealing::Sealed);
    EXPECT_THROW(ram.shrink_to(0), VfError);
}

TEST(HostileMemory, ASealedFileOfHugePagesThatTheHostHasNotHarmsOnlyItsOwner) {
    const UniqueFd huge(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
    if (!huge) GTEST_SKIP() << "no memfd of huge pages: " << std::strerror(errno);
    struct stat info {};
    ASSERT_EQ(::fstat(huge.get(), &info), 0);
    ASSERT_EQ(::ftruncate(huge.get(), info.st_blksize), 0);
    ASSERT_EQ(::fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest hostile(stack, 1);
    Guest neighbour(stack, 2);
    auto& connection = hostile.client.device().connection();
    connection.serve_dma({[](auto, auto) { return false; }, [](auto, auto) { return false; }});
    constexpr std::uint64_t kAddress = GuestMemory::kIova + (std::uint64_t{1} << 40);
    connection.dma_map(kAddress, 4096, huge.get(), 0);
    const OddPage page(hostile, kAddress | PageTable::kSystemFlags);
    const auto to = hostile.process->allocate(4096);
    const auto done = hostile.process->create_signal();
    hostile.process->create_sdma_queue(0).copy(to.address, page.buffer.address, 4096, done);
    wait_for("the device to notice", milliseconds(10000),
             [&] { return stack.pf().vf(1).faults >= 1; });
    EXPECT_EQ(neighbour.run_all(), "");
    EXPECT_TRUE(stack.softgpu().is_running());
    EXPECT_EQ(stack.pf().vf(2).faults, 0u);
}

TEST(HostileMemory, UnmappingUnderRunningWavesHarmsOnlyItsOwner) {
    GpuStack stack;
    stack.provision(1);
    stack.provision(2);
    Guest hostile(stack, 1);
    Guest neighbour(stack, 2);
    const auto progress = start_endless(hostile);
    wait_progress(progress);
    hostile.client.device().connection().dma_unmap(GuestMemory::kIova, hostile.client.ram().size());
    // the reply came: no wave may write any more
    const auto frozen = progress.load<std::uint32_t>();
    EXPECT_EQ(neighbour.run_all(), "");
    EXPECT_EQ(progress.load<std::uint32_t>(), frozen);
    EXPECT_GE(stack.pf().vf(1).faults, 1u);
    EXPECT_TRUE(stack.softgpu().is_running());
}

}  // namespace
}  // namespace vgpu::test
