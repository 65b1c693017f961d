// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "pf-driver/core/resource/range.h"

namespace {

class Range : public testing::Test {
protected:
    std::unique_ptr<vgpu_range_map> map = std::make_unique<vgpu_range_map>();
    void SetUp() override { vgpu_pf_range_init(map.get(), 32); }
    int claim(std::uint32_t count, std::uint8_t owner) {
        return vgpu_pf_range_claim(map.get(), count, owner);
    }
    int reserve(std::uint32_t first, std::uint32_t count, std::uint8_t owner) {
        return vgpu_pf_range_reserve(map.get(), {first, count}, owner);
    }
};

TEST_F(Range, StartsFreeAndDirty) {
    EXPECT_EQ(vgpu_pf_range_free_units(map.get()), 32u);
    vgpu_range range{0, 0};
    ASSERT_TRUE(vgpu_pf_range_next_dirty(map.get(), VGPU_RANGE_FREE, &range));
    EXPECT_EQ(range.first, 0u);
    EXPECT_EQ(range.count, 32u);
    EXPECT_FALSE(vgpu_pf_range_next_dirty(map.get(), VGPU_RANGE_FREE, &range));
}

TEST_F(Range, NeverHasMoreUnitsThanTheMapHolds) {
    vgpu_pf_range_init(map.get(), VGPU_RANGE_UNITS + 1);
    EXPECT_EQ(map->count, VGPU_RANGE_UNITS);
}

TEST_F(Range, ClaimTakesTheSmallestRunThatFits) {
    ASSERT_EQ(reserve(0, 2, 9), 0);
    ASSERT_EQ(reserve(10, 1, 9), 0);  // free: 2-9 (8), 11-13 (3), 15-31
    ASSERT_EQ(reserve(14, 1, 9), 0);
    ASSERT_EQ(claim(3, 1), 0);
    vgpu_range range{0, 0};
    ASSERT_TRUE(vgpu_pf_range_next(map.get(), 1, &range));
    EXPECT_EQ(range.first, 11u);
    EXPECT_EQ(range.count, 3u);
}

TEST_F(Range, ClaimScattersOnlyWhenNoRunIsLongEnough) {
    for (std::uint32_t unit = 0; unit < 32; unit += 2) ASSERT_EQ(reserve(unit, 1, 9), 0);
    ASSERT_EQ(claim(16, 1), 0);
    EXPECT_EQ(vgpu_pf_range_owned_units(map.get(), 1), 16u);
    EXPECT_EQ(vgpu_pf_range_free_units(map.get()), 0u);
}

TEST_F(Range, ClaimThatCannotBeMetTakesNothing) {
    ASSERT_EQ(claim(30, 1), 0);
    EXPECT_EQ(claim(3, 2), -ENOSPC);
    EXPECT_EQ(vgpu_pf_range_owned_units(map.get(), 2), 0u);
    EXPECT_EQ(claim(0, 2), -EINVAL);
}

TEST_F(Range, ReserveRefusesWhatIsOutsideOrOwned) {
    EXPECT_EQ(reserve(31, 2, 1), -ERANGE);
    EXPECT_EQ(reserve(32, 1, 1), -ERANGE);
    EXPECT_EQ(reserve(0xffffffff, 2, 1), -ERANGE);
    EXPECT_EQ(reserve(0, 0, 1), -ERANGE);
    ASSERT_EQ(reserve(5, 2, 1), 0);
    EXPECT_EQ(reserve(4, 2, 2), -EBUSY);
    EXPECT_EQ(vgpu_pf_range_owned_units(map.get(), 2), 0u);
}

TEST_F(Range, ReleaseFreesExactlyTheOwnersUnits) {
    ASSERT_EQ(claim(4, 1), 0);
    ASSERT_EQ(claim(5, 2), 0);
    EXPECT_EQ(vgpu_pf_range_release(map.get(), 1), 4u);
    EXPECT_EQ(vgpu_pf_range_owned_units(map.get(), 2), 5u);
    EXPECT_EQ(vgpu_pf_range_free_units(map.get()), 27u);
    EXPECT_EQ(vgpu_pf_range_release(map.get(), 1), 0u);
}

TEST_F(Range, CleanMarksStayWithTheUnits) {
    ASSERT_EQ(claim(4, 1), 0);
    vgpu_pf_range_set_clean(map.get(), {0, 4});
    vgpu_range range{0, 0};
    EXPECT_FALSE(vgpu_pf_range_next_dirty(map.get(), 1, &range));
    vgpu_pf_range_release(map.get(), 1);
    ASSERT_TRUE(vgpu_pf_range_next_dirty(map.get(), VGPU_RANGE_FREE, &range));
    EXPECT_EQ(range.first, 4u);
    ASSERT_EQ(claim(4, 2), 0);
    vgpu_pf_range_set_dirty(map.get(), 2);
    range = {0, 0};
    EXPECT_TRUE(vgpu_pf_range_next_dirty(map.get(), 2, &range));
    vgpu_pf_range_set_clean(map.get(), {30, 9});  // does not exist: ignored
    EXPECT_EQ(map->dirty[31], 1);
}

TEST_F(Range, RandomClaimsAndReleasesNeverLoseOrShareAUnit) {
    std::mt19937 random(7);
    std::uint32_t owned[8] = {};
    for (int i = 0; i < 20000; ++i) {
        const auto owner = static_cast<std::uint8_t>(1 + random() % 7);
        if (owned[owner] != 0) {
            ASSERT_EQ(vgpu_pf_range_release(map.get(), owner), owned[owner]);
            owned[owner] = 0;
        } else {
            const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 12);
            const bool fits = count <= vgpu_pf_range_free_units(map.get());
            ASSERT_EQ(claim(count, owner), fits ? 0 : -ENOSPC);
            if (fits) owned[owner] = count;
        }
        std::uint32_t total = vgpu_pf_range_free_units(map.get());
        for (std::uint8_t o = 1; o < 8; ++o) {
            ASSERT_EQ(vgpu_pf_range_owned_units(map.get(), o), owned[o]);
            total += owned[o];
        }
        ASSERT_EQ(total, 32u);
    }
}

}  // namespace
