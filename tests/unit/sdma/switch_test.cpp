// SPDX-License-Identifier: MIT
//
// World switch of an engine in true-copy fashion: at random points the state is saved, the live one
// is poisoned, and loaded again. Memory, pointers and interrupts must be what they are without.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/sdma/sdma_rig.h"

namespace vgpu::softgpu::sdma {
namespace {

using namespace test;

constexpr std::uint64_t kData = kUserBase;

std::vector<std::byte> save(const Engine& engine) {
    std::vector<std::byte> stream;
    Writer out(stream);
    engine.save(out);
    return stream;
}

/// A stream that uses every way to stop: long copies, IBs, fills, waits that end later.
Dwords busy_stream(SdmaRig& rig) {
    const Dwords ib = fill(kData + 0x30000, 0x5a5a5a5a, 0, 0x9000) +
                      atomic(SDMA_ATOMIC_ADD_64, kData, 1) +
                      copy_linear(kData + 0x10000, kData + 0x30000, 0x12345) + trap(2);
    for (std::size_t i = 0; i < ib.size(); ++i) rig.put_user(kData + 0x1000 + 4 * i, ib[i]);
    return copy_linear(kData + 0x20000, kData + 0x60000, 0x10000) +
           indirect(kData + 0x1000, static_cast<std::uint32_t>(ib.size())) + trap(3) +
           atomic(SDMA_ATOMIC_ADD_64, kData, 1) + write_linear(kData + 0x5000, Dwords(40, 0x99)) +
           fence(kData + 16, 0x77);
}

struct Outcome {
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(0x80000);
    std::size_t interrupts = 0;
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Outcome&) const = default;
};

Outcome run(std::uint32_t switch_seed) {
    SdmaRig rig;
    std::mt19937 random(switch_seed);
    for (std::uint64_t at = 0x60000; at < 0x70000; at += 8)
        rig.put_user(kData + at, at * 0x9e3779b9);
    EXPECT_TRUE(rig.map_user());
    rig.submit_user(busy_stream(rig));
    for (int i = 0; i < 10000; ++i) {
        if (rig.engine->step({1000 + static_cast<std::uint32_t>(random() % 5000), 2}) !=
            StepResult::Progress)
            break;
        if (switch_seed == 0) continue;
        const std::vector<std::byte> stream = save(*rig.engine);
        std::vector<std::byte> poison(stream.size(), std::byte{0xdb});
        Reader poisoned(poison);
        EXPECT_FALSE(rig.engine->load(poisoned));
        Reader in(stream);
        EXPECT_TRUE(rig.engine->load(in));
        EXPECT_EQ(save(*rig.engine), stream);
    }
    Outcome outcome;
    EXPECT_TRUE(
        rig.mem.vram->read(VfOffset{kUserVram}, std::as_writable_bytes(std::span(outcome.memory))));
    outcome.interrupts = rig.interrupts.size();
    outcome.packets = rig.engine->state().packets;
    outcome.bytes = rig.engine->state().bytes;
    EXPECT_EQ(rig.get_user<std::uint32_t>(kData + 16), 0x77u);
    return outcome;
}

TEST(SdmaSwitch, SavingAndLoadingAtRandomPointsChangesNothing) {
    const Outcome reference = run(0);
    EXPECT_EQ(reference.interrupts, 2u);
    for (std::uint32_t seed = 1; seed <= 10; ++seed)
        EXPECT_EQ(run(seed), reference) << "seed " << seed;
}

TEST(SdmaSwitch, AForeignOrTruncatedStreamLeavesTheResetState) {
    SdmaRig rig;
    ASSERT_TRUE(rig.map_user());
    std::vector<std::byte> stream = save(*rig.engine);
    Reader truncated(std::span<const std::byte>(stream).first(stream.size() - 1));
    EXPECT_FALSE(rig.engine->load(truncated));
    EXPECT_EQ(rig.engine->state().queues[1].is_mapped, 0u);
    store(std::span<std::byte>(stream), offsetof(Engine::State, next_queue), 99u);
    Reader foreign(stream);
    EXPECT_FALSE(rig.engine->load(foreign));
}

TEST(SdmaSwitch, ResetTakesEveryQueueOff) {
    SdmaRig rig;
    ASSERT_TRUE(rig.map_user());
    rig.enable_kernel_ring();
    rig.submit(fence(softgpu::mem::kFbBase, 1));
    rig.engine->reset();
    EXPECT_FALSE(rig.engine->has_work());
    EXPECT_FALSE(rig.engine->unmap(SdmaRig::doorbell_of(0)));
}

}  // namespace
}  // namespace vgpu::softgpu::sdma
