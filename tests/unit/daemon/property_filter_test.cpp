// SPDX-License-Identifier: MIT
#include "daemon/dbus/properties.h"

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

}  // namespace
}  // namespace vgpu::daemon::dbus
