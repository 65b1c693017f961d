// SPDX-License-Identifier: MIT
//
// Every cell of the table that reconciles records and PF core (docs/decisions/0028): what a new
// vgpud does with the VF, and what is on record then.
#include "daemon/service/gpu/reconcile.h"
#include "tests/unit/daemon/world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <array>
#include <string>

namespace vgpu::daemon {
namespace {

using testing::FakePf;
using testing::World;
using std::chrono_literals::operator""s;

constexpr VfResources k128{.vram_bytes = 128 * FakePf::kMiB};

void make_other(vgpu_pf_vf& active) {
    active.uuid[0] = static_cast<std::uint8_t>(active.uuid[0] + 1);
}

/// VF 1 ('a', 64 MiB) and its record are as the cell says when a new vgpud starts.
void start_in(World& world, OnRecord on_record, Active active) {
    ASSERT_TRUE(world.create({{"name", std::string("a")}}));
    vgpu_pf_vf& in_pf = world.pf().vfs.at(1);
    GpuRecord record = world.manager->store().gpu("gpu0");
    VfRecord& one = record.vfs.at(1);
    if (on_record == OnRecord::Change)
        one.next = VfNext{.resources = k128, .replaces = in_pf.generation};
    if (on_record == OnRecord::Scrub)
        one.next = VfNext{
            .resources = one.spec.resources, .replaces = in_pf.generation, .needs_scrub = true};
    if (on_record == OnRecord::Changed) {
        one.next = VfNext{.resources = k128, .replaces = in_pf.generation + 1};
        in_pf.vram_bytes = k128.vram_bytes;
    }
    if (on_record == OnRecord::Other) make_other(in_pf);
    one.is_releasing = on_record == OnRecord::Releasing;
    if (on_record == OnRecord::Nothing) record.vfs.erase(1);
    ASSERT_TRUE(world.manager->store().commit("gpu0", record));
    if (active == Active::Absent) world.pf().vfs.erase(1);
    if (active == Active::Scrubbing) world.pf().set_state(1, VGPU_PF_VF_SCRUBBING);
    world.pf().log.clear();
    world.start();
}

/// What the PF core was asked to do with VF 1, and the record of VF 1.
std::string outcome(World& world) {
    std::string text;
    for (const std::string& operation : world.pf().log)
        if (operation.ends_with(" 1") && !operation.starts_with("assignment"))
            text += operation + ", ";
    const GpuRecord record = world.manager->store().gpu("gpu0");
    if (!record.vfs.contains(1)) return text + "no record";
    const VfRecord& one = record.vfs.at(1);
    text += fmt::format("{} {}", one.spec.name, one.spec.resources.vram_bytes / FakePf::kMiB);
    if (one.next) text += fmt::format(" to {}", one.next->resources.vram_bytes / FakePf::kMiB);
    return text + (one.is_releasing ? " releasing" : "");
}

struct Row {
    OnRecord on_record;
    std::string_view absent, in_service, scrubbing;
};

constexpr std::array kRows{
    Row{OnRecord::Nothing, "no record", "gpu0-vf1 64", "no record"},
    Row{OnRecord::Defined, "provision 1, a 64", "a 64", "a 64"},
    Row{OnRecord::Change, "provision 1, a 128", "a 64", "a 64 to 128"},
    Row{OnRecord::Scrub, "provision 1, a 64", "release 1, a 64 to 64", "a 64 to 64"},
    Row{OnRecord::Changed, "provision 1, a 128", "a 128", "a 64 to 128"},
    Row{OnRecord::Other, "provision 1, a 64", "a 64", "a 64"},
    Row{OnRecord::Releasing, "no record", "release 1, a 64 releasing", "a 64 releasing"},
};

TEST(Reconcile, ANewVgpudDoesInEachCellWhatTheTableSays) {
    static_assert(kRows.size() == kOnRecords);
    for (const Row& row : kRows) {
        const std::array<std::string_view, kActives> expected{row.absent, row.in_service,
                                                              row.scrubbing};
        for (std::size_t active = 0; active < kActives; ++active) {
            World world;
            start_in(world, row.on_record, static_cast<Active>(active));
            EXPECT_EQ(outcome(world), expected.at(active))
                << "row " << static_cast<int>(row.on_record) << ", column " << active;
        }
    }
}

/// No slice is given again before its scrub is durable, whatever is on record.
TEST(Reconcile, AfterItsScrubAVfIsTreatedAsOneWithoutResources) {
    for (const Row& row : kRows) {
        World world;
        start_in(world, row.on_record, Active::Scrubbing);
        EXPECT_EQ(outcome(world), row.scrubbing);
        world.pf().finish_scrub(1);
        world.pass(2s);
        EXPECT_EQ(outcome(world), fmt::format("confirm_scrub 1, {}", row.absent))
            << "row " << static_cast<int>(row.on_record);
    }
}

}  // namespace
}  // namespace vgpu::daemon
