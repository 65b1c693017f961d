// SPDX-License-Identifier: MIT
#include "daemon/dbus/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vgpu::daemon::dbus {
namespace {

Freshness freshness_for(std::string_view names) {
    return PropertyFilter::of_vf(names)->freshness();
}

TEST(PropertyFilter, OnlyCountersThatNoEventTellsOfNeedALookAtAllVfs) {
    EXPECT_EQ(freshness_for("Name,State,VramBytes,Weight,ShareWindow,Attached,Owner,OwnerName"),
              Freshness::Events)
        << "the columns of vgpuctl list";
    EXPECT_EQ(freshness_for("Name,WaveInstructions"), Freshness::Counters);
    EXPECT_EQ(freshness_for("HasWork"), Freshness::Counters);
    EXPECT_EQ(freshness_for(""), Freshness::Counters) << "all properties";
}

TEST(PropertyFilter, ANameThatDoesNotExistIsNamed) {
    const auto filter = PropertyFilter::of_vf("Name,Nmae");
    ASSERT_FALSE(filter);
    EXPECT_EQ(filter.error().id, ErrorId::OutOfRange);
    EXPECT_EQ(filter.error().cause, "properties: there is no property 'Nmae'");
}

TEST(PropertyChanges, OfOneMemberOfAViewAloneAreSignalled) {
    const auto changed_by = [](void (*change)(VfView&)) {
        VfView before, after;
        before.gpu = after.gpu = "gpu0";
        change(after);
        return changes(before, after);
    };
    const auto is_only = [](const char* name) {
        return ::testing::ElementsAre(PropertyName{name});
    };
    EXPECT_THAT(changed_by([](VfView& vf) { vf.client = "qemu"; }), is_only("Client"));
    EXPECT_THAT(changed_by([](VfView& vf) { vf.lease_expires = UnixTime(7); }),
                is_only("LeaseExpires"));
    EXPECT_THAT(changed_by([](VfView& vf) { vf.condition = "no VRAM"; }), is_only("Condition"));
    EXPECT_THAT(changed_by([](VfView& vf) { vf.orphan = "unused"; }), is_only("Orphan"));
    EXPECT_THAT(changed_by([](VfView& vf) { vf.assignment_mode = AssignmentMode::Host; }),
                is_only("AssignmentMode"));
    EXPECT_THAT(changed_by([](VfView& vf) { vf.owner_domain_name = "web1"; }),
                is_only("OwnerName"));
}

}  // namespace
}  // namespace vgpu::daemon::dbus
