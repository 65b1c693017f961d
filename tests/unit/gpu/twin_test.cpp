// SPDX-License-Identifier: MIT
//
// Noninterference: two GPUs on which VF1 does the same and VF2 something else, at random. The clock
// moves only between the slices of the VFs, so everything that VF1 can see must be equal: every
// register, its configuration space, its VRAM, its interrupts, the times in its memory. While VF2
// runs, nothing of VF1 changes. The time that VF1 waits for its slice is up to the scheduler, which
// unit_core tests. Planted leaks show that each comparison can fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>

#include <iostream>
#include <random>
#include <stdexcept>
#include <string_view>

#include "tests/support/virtual_clock.h"
#include "tests/unit/gpu/gpu_guests.h"

namespace vgpu::softgpu::test {
namespace {

using ::testing::ElementsAre;

constexpr unsigned kObserver = 1, kNeighbour = 2;
constexpr std::chrono::milliseconds kSlice{4};
constexpr std::uint32_t kRegisterDwords = (512u << 10) / 4;
constexpr std::uint32_t kConfigBytes = 4096;

struct Row {
    std::uint32_t offset, count, stride;
};
#define REG(block, name, offset, reset, pf, vf, doc) {offset, 1, 0},
#define REG_ARRAY(block, name, offset, count, stride, reset, pf, vf, doc) {offset, count, stride},
constexpr Row kRows[] = {
#include "pf-driver/hw/regs.def"
};
#undef REG
#undef REG_ARRAY

/// All that a VF can read, at one time.
struct Sight {
    std::vector<std::uint32_t> registers;
    std::vector<std::byte> config;
    std::size_t vram_hash = 0;
    bool has_interrupt = false;
    std::vector<std::uint64_t> answers;  ///< values and times that its work has stored

    bool operator==(const Sight&) const = default;
};

std::vector<std::uint32_t> all_registers(VfClient& vf) {
    std::vector<std::uint32_t> values;
    for (const Row& row : kRows)
        for (std::uint32_t i = 0; i < row.count; ++i)
            values.push_back(vf.reg(row.offset + i * row.stride));
    return values;
}

std::size_t hash_of_vram(VfClient& vf) {
    constexpr std::size_t kChunk = 512u << 10;
    std::string all(std::size_t{kMegabytes} << 20, '\0');
    const auto bytes = std::as_writable_bytes(std::span(all));
    for (std::size_t at = 0; at < bytes.size(); at += kChunk)
        vf.read(VGPU_BAR_VRAM, at, bytes.subspan(at, kChunk));
    return std::hash<std::string_view>{}(all);
}

Sight look(VfClient& vf) {
    Sight sight;
    sight.registers = all_registers(vf);
    sight.config.resize(kConfigBytes);
    for (std::uint32_t at = 0; at < kConfigBytes; at += 4) {
        const auto dword = vf.config<std::uint32_t>(at);
        std::ranges::copy(bytes_of(dword), &sight.config[at]);
    }
    sight.vram_hash = hash_of_vram(vf);
    sight.has_interrupt = vf.msi.is_signalled();
    return sight;
}

/// A planted fault: in each slice, something that VF2 does reaches VF1.
enum class Leak { None, Register, Config, Vram, Interrupt, Time };

/// One slice of both VFs: what VF1 sees before and after VF2 has had the engine.
struct Slice {
    Sight before, after;
};

class Twin {
public:
    Twin(iov::SwitchMode mode, std::uint32_t work_seed, std::uint32_t neighbour_seed,
         Leak leak = Leak::None)
        : gpu_(clock_, mode, iov::DoorbellMode::Trap),
          leak_(leak),
          work_(work_seed),
          chance_(neighbour_seed),
          driver_(gpu_.pf()),
          observer_(gpu_.vf(kObserver)),
          neighbour_(gpu_.vf(kNeighbour)) {
        constexpr std::uint64_t kSecond = kFirstVram + (std::uint64_t{kMegabytes} << 20);
        driver_->provision(kObserver, kFirstVram, kMegabytes);
        driver_->provision(kNeighbour, kSecond, kMegabytes);
    }

    std::vector<Slice> live(std::size_t slices) {
        std::vector<Slice> seen;
        GfxGuest gfx(*observer_);
        SdmaGuest sdma(*observer_);
        for (std::size_t slice = 0; slice < slices; ++slice) {
            EXPECT_EQ(driver_->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, kObserver),
                      GPUIOV_STATUS_DONE);
            const std::vector<std::uint64_t> answers = work(gfx, sdma);
            EXPECT_EQ(driver_->command(GPUIOV_CMD_CONTEXT_SWITCH, kObserver, 0),
                      GPUIOV_STATUS_DONE);
            Sight before = look(*observer_);
            disturb();
            leak();
            Sight after = look(*observer_);
            before.answers = after.answers = answers;
            seen.push_back({std::move(before), std::move(after)});
            clock_.advance(kSlice);
        }
        return seen;
    }

    std::size_t neighbours_vram() { return hash_of_vram(*neighbour_); }

private:
    std::uint32_t any(std::uint32_t limit) { return static_cast<std::uint32_t>(chance_() % limit); }

    /// VF1's work, to its end.
    std::vector<std::uint64_t> work(GfxGuest& gfx, SdmaGuest& sdma) {
        std::vector<std::uint64_t> answers{gfx.timestamp()};
        const auto number = static_cast<std::uint16_t>(work_() % 0x7fff);
        gfx.put_code(number);
        observer_->set_reg(REG_GC_VM_INVALIDATE_ENG0_REQ, HW_PREP(VM_INVALIDATE_REQ, VMIDS, 1));
        answers.push_back(gfx.dispatch());
        EXPECT_EQ(answers.back(), number);
        sdma.fill_first_block(static_cast<std::uint32_t>(work_()));
        constexpr std::uint32_t kCopies = 20;
        sdma.submit_chain(kCopies);
        EXPECT_TRUE(eventually([&] { return sdma.is_done(); }));
        sdma.expect_block(kCopies);
        observer_->set_reg(REG_GC_RLC_CAPTURE_GPU_CLOCK_COUNT, 1);
        answers.push_back(observer_->reg(REG_GC_RLC_GPU_CLOCK_COUNT_LSB));
        answers.push_back(gfx.timestamp());
        return answers;
    }

    /// VF2's slice: everything a guest can reach, with random contents; at its end it is reset, now
    /// and then.
    void disturb() {
        const std::uint32_t status = driver_->command(GPUIOV_CMD_CONTEXT_SWITCH, 0, kNeighbour);
        for (std::uint32_t acts = 5 + any(20); acts > 0; --acts) act();
        if (status != GPUIOV_STATUS_DONE || any(3) == 0 ||
            driver_->command(GPUIOV_CMD_CONTEXT_SWITCH, kNeighbour, 0) != GPUIOV_STATUS_DONE)
            reset_neighbour();
    }

    void leak() {
        constexpr std::uint64_t kUnusedVram = 8u << 20;
        switch (leak_) {
            case Leak::None:
                return;
            case Leak::Register:
                return observer_->set_reg(REG_GC_SCRATCH_REG0, any(~0u));
            case Leak::Config:
                return observer_->set_config(PCI_INTERRUPT_LINE,
                                             static_cast<std::uint8_t>(any(256)));
            case Leak::Vram:
                return observer_->set_vram(kUnusedVram, any(~0u));
            case Leak::Interrupt:
                ASSERT_EQ(eventfd_write(observer_->msi.fd(), 1), 0);
                return;
            case Leak::Time:
                return clock_.advance(std::chrono::microseconds(any(1000)));
        }
    }

    void reset_neighbour() {
        driver_->flr(kNeighbour);
        driver_->set_bank(kNeighbour, REG_VGPU_VF0_GATES, 7);
    }

    void act() try {
        const Row& row = kRows[any(std::size(kRows))];
        switch (any(8)) {
            case 0:
                return run_garbage();
            case 1:
                return neighbour_->set_vram(std::uint64_t{any(kMegabytes << 18)} * 4, any(~0u));
            case 2:
                return neighbour_->ring(any(1024), chance_());
            case 3:
                return neighbour_->set_config(any(kConfigBytes / 4) * 4, any(~0u));
            case 4:
                return neighbour_->set_reg(any(kRegisterDwords), any(~0u));
            case 5:
                return run_endless();
            default:
                return neighbour_->set_reg(row.offset + any(row.count) * row.stride, any(~0u));
        }
    } catch (const std::runtime_error&) {
        // refused: the next act may be possible
    }

    void run_garbage() {
        std::vector<std::uint32_t> packets(256);
        for (std::uint32_t& dword : packets) dword = any(~0u);
        const bool is_gfx = any(2) == 0;
        if (is_gfx)
            GfxGuest ring(*neighbour_);
        else
            SdmaGuest ring(*neighbour_);
        neighbour_->write(VGPU_BAR_VRAM, is_gfx ? kGfxRing : kRing,
                          std::as_bytes(std::span(packets)));
        neighbour_->ring(is_gfx ? DOORBELL_GFX_RING0 : DOORBELL_SDMA0,
                         is_gfx ? packets.size() : packets.size() * 4);
    }

    void run_endless() { GfxGuest(*neighbour_).start_endless(); }

    VirtualClock clock_;
    RunningGpu gpu_;
    const Leak leak_;
    std::mt19937 work_, chance_;
    std::unique_ptr<PfClient> driver_;
    std::unique_ptr<VfClient> observer_, neighbour_;
};

class Noninterference : public ::testing::TestWithParam<iov::SwitchMode> {
protected:
    static constexpr std::uint32_t kWork = 7;
};

TEST_P(Noninterference, AVfSeesTheSameBytesAndTimesWhateverItsNeighbourDoes) {
    constexpr std::size_t kSlices = 6;
    const char* text = std::getenv("VGPU_TWIN_SEED");
    const std::uint32_t seed =
        text ? static_cast<std::uint32_t>(std::stoul(text)) : std::random_device{}();
    std::cout << "VGPU_TWIN_SEED=" << seed << "\n";
    Twin first(GetParam(), kWork, seed), second(GetParam(), kWork, seed + 1);
    const std::vector<Slice> one = first.live(kSlices);
    const std::vector<Slice> other = second.live(kSlices);
    for (std::size_t slice = 0; slice < kSlices; ++slice) {
        const Sight &mine = one[slice].before, &theirs = other[slice].before;
        EXPECT_EQ(mine.registers, theirs.registers) << "slice " << slice;
        EXPECT_EQ(mine.answers, theirs.answers) << "slice " << slice;
        EXPECT_TRUE(mine == theirs) << "slice " << slice;
        for (const Slice& twin : {one[slice], other[slice]}) {
            EXPECT_EQ(twin.before.registers, twin.after.registers) << "slice " << slice;
            EXPECT_EQ(twin.before.config, twin.after.config) << "slice " << slice;
            EXPECT_EQ(twin.before.vram_hash, twin.after.vram_hash) << "slice " << slice;
            EXPECT_FALSE(twin.after.has_interrupt) << "slice " << slice;
        }
    }
    EXPECT_NE(one[0].before.answers, one[1].before.answers)
        << "times and values change with the slices";
    EXPECT_NE(first.neighbours_vram(), second.neighbours_vram()) << "they do the same";
}

/// The parts of a VF's sight in which two slices differ, or which an interrupt has changed.
std::vector<Leak> differences(const Sight& one, const Sight& other) {
    std::vector<Leak> found;
    if (one.registers != other.registers) found.push_back(Leak::Register);
    if (one.config != other.config) found.push_back(Leak::Config);
    if (one.vram_hash != other.vram_hash) found.push_back(Leak::Vram);
    if (other.has_interrupt) found.push_back(Leak::Interrupt);
    return found;
}

TEST_P(Noninterference, WhatReachesTheVfFromItsNeighbourIsSeenWhereItArrives) {
    for (const Leak leak : {Leak::Register, Leak::Config, Leak::Vram, Leak::Interrupt}) {
        Twin twin(GetParam(), kWork, 1, leak);
        const Slice slice = twin.live(1)[0];
        EXPECT_THAT(differences(slice.before, slice.after), ElementsAre(leak));
    }
}

TEST_P(Noninterference, TimeThatDependsOnTheNeighbourMakesTheTwinsDiffer) {
    Twin first(GetParam(), kWork, 1, Leak::Time), second(GetParam(), kWork, 2, Leak::Time);
    const std::vector<Slice> one = first.live(2), other = second.live(2);
    EXPECT_EQ(one[0].before.answers, other[0].before.answers);
    EXPECT_NE(one[1].before.answers, other[1].before.answers);
}

INSTANTIATE_TEST_SUITE_P(Modes, Noninterference,
                         ::testing::Values(iov::SwitchMode::Pointer, iov::SwitchMode::TrueCopy),
                         [](const auto& test) {
                             return test.param == iov::SwitchMode::Pointer ? "Pointer" : "TrueCopy";
                         });

}  // namespace
}  // namespace vgpu::softgpu::test
