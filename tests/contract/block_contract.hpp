// SPDX-License-Identifier: MIT
//
// The contract every block of softgpu keeps (base/block.h), as one typed suite. A rig is what a
// block needs around it:
//
//   struct XRig {
//       X& block();                 the block, in its power-on state at first
//       void disturb(unsigned n);   brings it into some other state; n varies it
//   };
//
// Two rigs of a kind are two equal devices: a stream of one must load into the other.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "pf-driver/softgpu/base/block.h"

namespace vgpu::softgpu::contract {

struct WithPadding {
    std::uint64_t wide;
    std::uint32_t narrow;
};
static_assert(!Saved<WithPadding>);

template <typename B> std::vector<std::byte> saved(B& block) {
    block.drain();
    std::vector<std::byte> stream;
    Writer out(stream);
    block.save(out);
    return stream;
}

template <typename Rig> class BlockContract : public ::testing::Test {
protected:
    using BlockType = std::remove_reference_t<decltype(std::declval<Rig&>().block())>;
    static_assert(Block<BlockType>);
};

TYPED_TEST_SUITE_P(BlockContract);

TYPED_TEST_P(BlockContract, LoadOfASavedStateIsThatStateBitForBit) {
    for (unsigned n = 0; n < 4; ++n) {
        TypeParam source;
        source.disturb(n);
        const auto stream = saved(source.block());
        TypeParam target;
        target.disturb(n + 1);
        Reader in(stream);
        ASSERT_TRUE(target.block().load(in));
        EXPECT_EQ(in.remaining(), 0u);
        EXPECT_EQ(saved(target.block()), stream);
    }
}

TYPED_TEST_P(BlockContract, DisturbingIsSeenInTheState) {
    TypeParam fresh;
    TypeParam disturbed;
    disturbed.disturb(1);
    EXPECT_NE(saved(fresh.block()), saved(disturbed.block()));
}

TYPED_TEST_P(BlockContract, ResetIsThePowerOnState) {
    TypeParam fresh;
    TypeParam used;
    used.disturb(2);
    used.block().drain();
    used.block().reset();
    EXPECT_EQ(saved(used.block()), saved(fresh.block()));
}

TYPED_TEST_P(BlockContract, DrainChangesNothingTheSecondTime) {
    TypeParam rig;
    rig.disturb(1);
    const auto once = saved(rig.block());
    EXPECT_EQ(saved(rig.block()), once);
}

TYPED_TEST_P(BlockContract, ATruncatedStreamIsAnErrorAndLeavesTheResetState) {
    TypeParam source;
    source.disturb(3);
    const auto stream = saved(source.block());
    TypeParam fresh;
    const auto power_on = saved(fresh.block());
    const std::size_t step = std::max<std::size_t>(1, stream.size() / 13);
    for (std::size_t size = 0; size < stream.size(); size += step) {
        TypeParam target;
        target.disturb(1);
        target.block().drain();
        Reader in(std::span<const std::byte>(stream).first(size));
        EXPECT_FALSE(target.block().load(in)) << size << " of " << stream.size();
        EXPECT_EQ(saved(target.block()), power_on) << size << " of " << stream.size();
    }
}

TYPED_TEST_P(BlockContract, AStreamOfGarbageNeverEndsInACrash) {
    std::uint32_t seed = 12345;
    for (int round = 0; round < 8; ++round) {
        TypeParam source;
        source.disturb(static_cast<unsigned>(round));
        auto stream = saved(source.block());
        for (std::byte& byte : stream) {
            seed = seed * 1664525u + 1013904223u;
            if (seed >> 24 < 32) byte = static_cast<std::byte>(seed >> 16);
        }
        TypeParam target;
        Reader in(stream);
        (void)target.block().load(in);
        (void)saved(target.block());
        target.block().reset();
    }
}

REGISTER_TYPED_TEST_SUITE_P(BlockContract, LoadOfASavedStateIsThatStateBitForBit,
                            DisturbingIsSeenInTheState, ResetIsThePowerOnState,
                            DrainChangesNothingTheSecondTime,
                            ATruncatedStreamIsAnErrorAndLeavesTheResetState,
                            AStreamOfGarbageNeverEndsInACrash);

}  // namespace vgpu::softgpu::contract
