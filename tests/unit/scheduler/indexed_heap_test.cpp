// SPDX-License-Identifier: MIT
#include "daemon/service/scheduler/indexed_heap.h"

#include "daemon/simulator/dice.h"

#include <gtest/gtest.h>
#include <set>

namespace vgpu::daemon::scheduler {
namespace {

TEST(IndexedHeap, AgreesWithASortedSetThroughRandomChanges) {
    simulator::Dice dice(1);
    IndexedHeap<int> heap;
    heap.make_room(64);
    std::set<std::pair<int, std::uint32_t>> model;
    std::vector<int> keys(64, 0);
    for (int i = 0; i < 20'000; ++i) {
        const auto id = static_cast<std::uint32_t>(dice.below(64));
        model.erase({keys[id], id});
        if (dice.chance(0.3)) {
            heap.remove(id);
        } else {
            keys[id] = static_cast<int>(dice.below(40));
            heap.set(id, keys[id]);
            model.insert({keys[id], id});
        }
        ASSERT_EQ(heap.size(), model.size());
        ASSERT_EQ(heap.has(id), model.contains({keys[id], id}));
        if (model.empty()) continue;
        ASSERT_EQ(heap.least_key(), model.begin()->first);
        ASSERT_EQ(heap.least(), model.begin()->second);
    }
}

TEST(IndexedHeap, EqualKeysComeInTheOrderOfTheirNumbers) {
    IndexedHeap<int> heap;
    heap.make_room(10);
    for (const std::uint32_t id : {7u, 2u, 9u, 4u}) heap.set(id, 5);
    for (const std::uint32_t id : {2u, 4u, 7u, 9u}) {
        EXPECT_EQ(heap.least(), id);
        heap.remove(id);
    }
    EXPECT_TRUE(heap.empty());
}

}  // namespace
}  // namespace vgpu::daemon::scheduler
