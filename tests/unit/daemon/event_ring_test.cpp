// SPDX-License-Identifier: MIT
#include "daemon/adapters/event_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vgpu::daemon::adapters {
namespace {

constexpr std::uint64_t kBytes = 1u << 20;

Result<> map(const vgpu_pf_event_ring_info& info) {
    UniqueFd memory(::memfd_create("ring", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(memory.get(), kBytes), 0);
    TRY(const auto ring, EventRing::map(info, std::move(memory), UniqueFd()));
    return {};
}

vgpu_pf_event_ring_info sound_info() {
    vgpu_pf_event_ring_info info{};
    info.entries = 64;
    info.bytes = kBytes;
    info.events_offset = 4096;
    return info;
}

TEST(EventRing, IsMappedIfItsEventsLieInItsMemory) {
    EXPECT_TRUE(map(sound_info()));
    vgpu_pf_event_ring_info last = sound_info();
    last.events_offset = kBytes - 64 * sizeof(vgpu_pf_event);
    EXPECT_TRUE(map(last));
}

TEST(EventRing, OfAHostilePfCoreIsRefused) {
    const auto expect_refused = [](auto change) {
        vgpu_pf_event_ring_info info = sound_info();
        change(info);
        const auto mapped = map(info);
        ASSERT_FALSE(mapped);
        EXPECT_EQ(mapped.error().id, ErrorId::PfLost);
    };
    expect_refused([](auto& info) { info.entries = 65; });
    expect_refused([](auto& info) { info.entries = 1u << 21; });
    expect_refused([](auto& info) { info.bytes = 2 * kBytes; });
    expect_refused([](auto& info) { info.events_offset = 0; });
    expect_refused([](auto& info) { info.events_offset = kBytes; });
    // offset + size is 0 in 64 bits
    expect_refused([](auto& info) {
        info.entries = 1u << 20;
        info.events_offset = 0 - (std::uint64_t{1} << 20) * sizeof(vgpu_pf_event);
    });
}

}  // namespace
}  // namespace vgpu::daemon::adapters
