// SPDX-License-Identifier: MIT
#include "pf-driver/softgpu/iov/run_log.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "pf-driver/softgpu/base/bits.h"

namespace vgpu::softgpu::iov {
namespace {

constexpr std::uint64_t kBase = 0x10000;

struct Memory {
    std::vector<std::byte> bytes = std::vector<std::byte>(4096);
    int writes = 0;
    bool write(Iova at, std::span<const std::byte> data) {
        ++writes;
        if (raw(at) < kBase || raw(at) - kBase + data.size() > bytes.size()) return false;
        std::memcpy(bytes.data() + (raw(at) - kBase), data.data(), data.size());
        return true;
    }
    vgpu_hw_run_log_entry entry(std::size_t index) const {
        return load<vgpu_hw_run_log_entry>(bytes, index * sizeof(vgpu_hw_run_log_entry));
    }
};

class RunLogTest : public ::testing::Test {
protected:
    Memory memory;
    RunLog log{[this](Iova at, std::span<const std::byte> data) { return memory.write(at, data); }};
};

vgpu_hw_run_log_entry stay(std::uint32_t vf) {
    vgpu_hw_run_log_entry entry{};
    entry.vf = vf;
    return entry;
}

TEST_F(RunLogTest, EntriesGoRoundTheRingWithIncreasingSequence) {
    log.configure(Iova{kBase}, 4);
    for (std::uint32_t vf = 1; vf <= 6; ++vf) log.append(stay(vf));
    EXPECT_EQ(log.write_pointer(), 6u);
    EXPECT_EQ(memory.entry(0).vf, 5u);
    EXPECT_EQ(memory.entry(0).seq, 5u);
    EXPECT_EQ(memory.entry(1).seq, 6u);
    EXPECT_EQ(memory.entry(2).seq, 3u);
}

TEST_F(RunLogTest, TheSequenceIsWrittenLast) {
    log.configure(Iova{kBase}, 4);
    std::vector<std::uint64_t> seen;
    RunLog watched([&](Iova, std::span<const std::byte> data) {
        seen.push_back(load<std::uint64_t>(data));
        return true;
    });
    watched.configure(Iova{kBase}, 4);
    watched.append(stay(1));
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1}));
}

TEST_F(RunLogTest, WithoutARingNothingIsWritten) {
    log.append(stay(1));
    log.configure(Iova{kBase}, 0);
    log.append(stay(1));
    EXPECT_EQ(memory.writes, 0);
}

TEST_F(RunLogTest, UnusableRingsSwitchTheLogOff) {
    for (const std::uint32_t entries : {3u, 0x80000000u}) {
        log.configure(Iova{kBase}, entries);
        log.append(stay(1));
    }
    log.configure(Iova{kBase + 64}, 4);
    log.append(stay(1));
    EXPECT_EQ(memory.writes, 0);
}

TEST_F(RunLogTest, ARingOnMissingMemoryLosesEntriesAndCountsThem) {
    log.configure(Iova{0x900000}, 4);
    log.append(stay(1));
    EXPECT_EQ(log.lost(), 1u);
    EXPECT_EQ(log.write_pointer(), 1u);
}

}  // namespace
}  // namespace vgpu::softgpu::iov
