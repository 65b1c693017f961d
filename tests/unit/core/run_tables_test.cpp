// SPDX-License-Identifier: MIT
//
// SET_RUN_TABLE and GET_RUN_TABLE: which tables are taken, when, and how they read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::HasSubstr;

TEST(RunTable, TakesOverAtTheNextDecisionAndIsAnnounced) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(20 * kMs);
    ASSERT_EQ(rig.set_table({{1, 500}, {2, 500}}), 0);
    EXPECT_TRUE(rig.events(VGPU_PF_EVENT_TABLE).empty()) << "not in the middle of a quantum";
    rig.gpu.run_for(10 * kMs);
    const auto tables = rig.events(VGPU_PF_EVENT_TABLE);
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_EQ(tables[0].arg, 1u);
    EXPECT_EQ(rig.get_info().table_generation, 1u);
}

TEST(RunTable, GenerationsMustFollowEachOther) {
    Rig rig;
    ASSERT_EQ(rig.set_table({{1, 500}}), 0);
    vgpu_pf_run_table table{};
    table.count = 1;
    table.entries[0] = {1, 500};
    table.generation = 1;
    EXPECT_EQ(rig.request(VGPU_PF_OP_SET_RUN_TABLE, table), -ESTALE);
    EXPECT_EQ(rig.message(),
              "run table: generation 1 does not follow the newest, 1; read that table and send 2");
    table.generation = 3;
    EXPECT_EQ(rig.request(VGPU_PF_OP_SET_RUN_TABLE, table), -ESTALE);
    table.generation = 2;
    EXPECT_EQ(rig.request(VGPU_PF_OP_SET_RUN_TABLE, table), 0);
}

TEST(RunTable, NonsenseIsRefusedWithItsPlace) {
    Rig rig;
    EXPECT_EQ(rig.set_table({}), -EINVAL);
    EXPECT_EQ(rig.set_table({{1, 500}, {5, 500}}), -EINVAL);
    EXPECT_EQ(rig.message(), "run table: entry 1 names VF5; VFs are 1 to 4");
    EXPECT_EQ(rig.set_table({{0, 500}}), -EINVAL);
    EXPECT_EQ(rig.set_table({{1, 99}}), -EINVAL);
    EXPECT_EQ(rig.message(), "run table: entry 0 has 99 us; 100 to 1000000");
    EXPECT_EQ(rig.set_table({{1, 1000001}}), -EINVAL);
    EXPECT_EQ(rig.set_table({{1, 500}}, {{9, 500}}), -EINVAL);
    EXPECT_THAT(rig.message(), HasSubstr("reserve entry 0"));
    EXPECT_EQ(rig.set_table({{1, 500}}, {}, 8), -EINVAL);
    EXPECT_EQ(rig.get_info().table_generation, 0u);
}

TEST(RunTable, AVfWithoutAnEntryStillGetsATurn) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    ASSERT_EQ(rig.set_table({{1, 6000}}), 0);
    rig.gpu.run_for(100 * kMs);
    const std::uint64_t before = rig.get_vf(2).service_ns;
    rig.gpu.run_for(kSecond);
    EXPECT_NEAR(static_cast<double>(rig.get_vf(2).service_ns - before), 0.5e9, 0.02e9);
}

TEST(RunTable, ReadsBackAsSet) {
    Rig rig;
    ASSERT_EQ(rig.set_table({{1, 500}, {2, 700}}, {{2, 300}}, VGPU_PF_TABLE_STRICT), 0);
    vgpu_pf_run_table table{};
    ASSERT_EQ(rig.request(VGPU_PF_OP_GET_RUN_TABLE, table), 0);
    EXPECT_EQ(table.generation, 1u);
    EXPECT_EQ(table.count, 2u);
    EXPECT_EQ(table.entries[1].quantum_us, 700u);
    EXPECT_EQ(table.reserve_count, 1u);
    EXPECT_EQ(table.reserve[0].vf, 2u);
    EXPECT_EQ(table.flags, VGPU_PF_TABLE_STRICT);
}

TEST(RunTable, SwitchTimesAreInTheInfo) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(kSecond);
    const vgpu_pf_info info = rig.get_info();
    EXPECT_GE(info.switches, 100u);
    EXPECT_GT(info.switch_p50_ns, 4 * kUs);
    EXPECT_LE(info.switch_p50_ns, info.switch_p99_ns);
    EXPECT_LE(info.switch_p99_ns, info.switch_max_ns);
}

/// As after some months of many switches.
TEST(Switches, HaveTheSamePercentilesHoweverManyThereWere) {
    Rig rig;
    rig.make_busy(1);
    rig.make_busy(2);
    rig.gpu.run_for(kSecond);
    const vgpu_pf_info before = rig.get_info();
    ASSERT_GT(before.switches, 0u);
    vgpu_run_switches& switches = rig.pf->scheduler.switches;
    switches.count <<= 33;
    for (auto& bucket : switches.histogram) bucket <<= 33;
    const vgpu_pf_info after = rig.get_info();
    EXPECT_EQ(after.switches, before.switches << 33);
    EXPECT_EQ(after.switch_p50_ns, before.switch_p50_ns);
    EXPECT_EQ(after.switch_p99_ns, before.switch_p99_ns);
}

}  // namespace
}  // namespace vgpu::test
