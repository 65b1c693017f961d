// SPDX-License-Identifier: MIT
//
// The records in PF VRAM: as little is written as has changed, and a new core finds all of it.
#include <gtest/gtest.h>

#include <random>

#include "pf-driver/core/resource/pf_vram.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

TEST(Checkpoint, WritesOfARecordNoMoreThanHasChanged) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    ASSERT_EQ(rig.provision(2), 0);
    const std::uint64_t before = rig.gpu.vram_bytes_written;
    ASSERT_EQ(vgpu_pf_set_preempt_timeout(rig.pf.get(), 1, 5000), 0);
    const std::uint64_t written = rig.gpu.vram_bytes_written - before;
    EXPECT_GT(written, 0u);
    EXPECT_LT(written, 128u) << "the head, and a word or two of a VF";
}

TEST(Checkpoint, IsFoundByTheNextCoreWhateverChangedHoweverOften) {
    Rig rig;
    std::minstd_rand rng(1);
    std::map<std::uint32_t, std::uint32_t> timeouts;
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t vf = 1 + static_cast<std::uint32_t>(rng() % 4);
        const int made = timeouts.contains(vf) ? 0 : rig.provision(vf, 16);
        ASSERT_EQ(made, 0);
        timeouts[vf] = 1000 + static_cast<std::uint32_t>(rng() % 1000);
        ASSERT_EQ(vgpu_pf_set_preempt_timeout(rig.pf.get(), vf, timeouts[vf]), 0);
        if (rng() % 3 == 0) {
            std::vector<vgpu_pf_run_entry> entries;
            for (const auto& [other, us] : timeouts) entries.push_back({other, us});
            ASSERT_EQ(rig.set_table(entries), 0);
        }
        if (rng() % 5 != 0) continue;
        vgpu_pf_run_table table{};
        ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
        rig.restart_core();
        for (const auto& [other, us] : timeouts)
            ASSERT_EQ(rig.pf->vfs[other].config.preempt_timeout_us, us) << "round " << round;
        vgpu_pf_run_table found{};
        ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, found), 0);
        ASSERT_EQ(found.count, table.count);
        for (std::uint32_t i = 0; i < found.count; ++i)
            ASSERT_EQ(found.entries[i].quantum_us, table.entries[i].quantum_us);
    }
}

/// What is wrong there need not be what changes next.
TEST(Checkpoint, ACopyThatWasDamagedIsWholeAgainAfterAWhile) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    constexpr std::uint64_t kUnchanged = 1500;
    for (const std::uint64_t copy : {0u, PF_VRAM_CHECKPOINT_BYTES})
        rig.gpu.poke(PF_VRAM_CHECKPOINT + copy + kUnchanged, 0xa5);
    for (std::uint32_t i = 0; i < 130; ++i)
        ASSERT_EQ(vgpu_pf_set_preempt_timeout(rig.pf.get(), 1, 1000 + i), 0);
    rig.restart_core();
    EXPECT_EQ(rig.get_vf(1).state, VGPU_PF_VF_PROVISIONED);
}

/// VF of the first entry of the newest run table, which has only one.
std::uint32_t vf_of_newest_table(Rig& rig) {
    vgpu_pf_run_table table{};
    EXPECT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.count, 1u);
    return table.entries[0].vf;
}

/// Writes to the device may be on their way when the link goes down.
TEST(Checkpoint, OfAnOldRunTableDoesNotReplaceTheNewestWhenTheDeviceIsBack) {
    Rig rig;
    ASSERT_EQ(rig.set_table({{1, 500}}), 0);
    std::vector<std::uint8_t> records;
    for (std::uint64_t i = 0; i < 2 * PF_VRAM_RUN_TABLE_BYTES; ++i)
        records.push_back(rig.gpu.peek(PF_VRAM_RUN_TABLE + i));
    ASSERT_EQ(rig.set_table({{2, 500}}), 0);
    vgpu_pf_suspend(rig.pf.get());
    for (std::uint64_t i = 0; i < records.size(); ++i)
        rig.gpu.poke(PF_VRAM_RUN_TABLE + i, records[i]);
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
    EXPECT_EQ(vf_of_newest_table(rig), 2u);
    rig.restart_core();
    EXPECT_EQ(vf_of_newest_table(rig), 2u);
}

TEST(Checkpoint, OfAnOldRunTableIsNotTakenForNewerAfterTheVfsRecordWasDamaged) {
    Rig rig;
    for (int i = 0; i < 4; ++i) ASSERT_EQ(rig.set_table({{1, 500}}), 0);
    for (std::uint64_t i = 0; i < 2 * PF_VRAM_CHECKPOINT_BYTES; ++i)
        rig.gpu.poke(PF_VRAM_CHECKPOINT + i, 0xff);
    rig.restart_core();
    ASSERT_EQ(rig.get_info().table_generation, 0u) << "it goes with VFs that are not known";
    ASSERT_EQ(rig.set_table({{2, 500}}), 0);
    rig.restart_core();
    EXPECT_EQ(vf_of_newest_table(rig), 2u);
}

}  // namespace
}  // namespace vgpu::test
