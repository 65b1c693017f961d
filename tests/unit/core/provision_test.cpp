// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "pf-driver/core/resource/pf_vram.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/pf2vf.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/hw/vf_page_table.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

using testing::HasSubstr;

TEST(Provision, GivesAllResourcesAndAGeneration) {
    Rig rig;
    vgpu_pf_provision request{};
    request.vf = 2;
    request.vram_bytes = 48u << 20;
    request.cu_mask = 0x0f;
    request.doorbell_pages = 100;
    ASSERT_EQ(rig.request(VGPU_PF_OP_PROVISION, request), 0);
    EXPECT_EQ(request.generation, 1u);
    EXPECT_EQ(rig.gpu.bank(2, REG_VGPU_VF0_FB_SIZE_MB), 48u);
    EXPECT_EQ(rig.gpu.bank(2, REG_VGPU_VF0_CU_MASK_LO), 0x0fu);
    EXPECT_EQ(HW_GET(VGPU_DOORBELLS, PAGES, rig.gpu.bank(2, REG_VGPU_VF0_DOORBELLS)), 100u);
    EXPECT_TRUE(rig.gpu.bank(2, REG_VGPU_VF0_FB_TABLE_ROOT_LO) & VF_PAGE_TABLE_VALID);
    EXPECT_EQ(rig.gpu.bank(2, REG_VGPU_VF0_GATES), HW_FIELD_MASK(VGPU_GATES, FB_EN));
    const vgpu_pf_vf vf = rig.get_vf(2);
    EXPECT_EQ(vf.state, VGPU_PF_VF_PROVISIONED);
    EXPECT_EQ(vf.vram_bytes, 48u << 20);
    EXPECT_EQ(vf.vram_first_offset, 16u << 20);
}

TEST(Provision, VfZeroMeansAnyAbsentVf) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    vgpu_pf_provision request{};
    request.vram_bytes = 16u << 20;
    ASSERT_EQ(rig.request(VGPU_PF_OP_PROVISION, request), 0);
    EXPECT_EQ(request.vf, 2u);
    EXPECT_EQ(rig.provision(3, 16), 0);
    EXPECT_EQ(rig.provision(4, 16), 0);
    request.vf = 0;
    EXPECT_EQ(rig.request(VGPU_PF_OP_PROVISION, request), -ENOSPC);
    EXPECT_EQ(rig.message(), "all 4 VFs have resources; release one");
}

TEST(Provision, RefusesWhatDoesNotExistAndSaysWhy) {
    Rig rig;
    vgpu_pf_provision request{};
    request.vf = 1;
    const auto refused = [&](int error, const char* text) {
        vgpu_pf_provision copy = request;
        EXPECT_EQ(rig.request(VGPU_PF_OP_PROVISION, copy), error) << text;
        EXPECT_THAT(rig.message(), HasSubstr(text));
    };
    refused(-EINVAL, "not a multiple of 16 MiB");
    request.vram_bytes = (16u << 20) + 1;
    refused(-EINVAL, "not a multiple of 16 MiB");
    request.vram_bytes = 272u << 20;
    refused(-EINVAL, "exceeds the aperture of 256 MiB");
    request.vram_bytes = 16u << 20;
    request.cu_mask = 0x100;
    refused(-EINVAL, "CU mask 0x100; the device has 0xff");
    request.cu_mask = 0;
    request.doorbell_pages = 513;
    refused(-EINVAL, "513 doorbell pages; at most 512");
    request.doorbell_pages = 0;
    request.flags = 0x80;
    refused(-EINVAL, "unknown flags 0x80");
    request.flags = 0;
    request.guard_limits[2] = 65;
    refused(-EINVAL, "guard_limits[2] is 65");
    request.guard_limits[2] = 0;
    request.vf = 5;
    refused(-ENOENT, "there is no VF5; the device has 4");
    EXPECT_EQ(rig.get_info().vram_free_bytes, 496u << 20);
}

TEST(Provision, OutOfVramNamesWhatIsFree) {
    Rig rig;
    ASSERT_EQ(rig.provision(1, 256), 0);
    ASSERT_EQ(rig.provision(2, 224), 0);
    EXPECT_EQ(rig.provision(3, 32), -ENOSPC);
    EXPECT_EQ(rig.message(), "VF3: VRAM of 32 MiB wanted, 16 MiB free; release or shrink a VF");
    EXPECT_EQ(rig.provision(1, 16), -EBUSY);
    EXPECT_THAT(rig.message(), HasSubstr("is PROVISIONED, not ABSENT"));
}

TEST(Provision, ADeviceWithAFullQueueIsBusy) {
    Rig rig;
    vgpu_bulk_op op{};
    op.opcode = VGPU_OP_SCRUB_VRAM;
    op.done = [](auto...) {};
    while (vgpu_pf_bulk_submit(rig.pf.get(), &op) == 0) continue;
    EXPECT_EQ(rig.provision(1), -EBUSY);
    EXPECT_THAT(rig.message(), HasSubstr("busy with 32 copies and scrubs; try again"));
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT);
}

TEST(Provision, ScatteredVramIsOnePieceForTheVf) {
    Rig rig;
    for (std::uint32_t vf = 1; vf <= 4; ++vf) ASSERT_EQ(rig.provision(vf, 112), 0);
    ASSERT_EQ(rig.release(1), 0);
    ASSERT_EQ(rig.release(3), 0);
    rig.gpu.run_for(100 * kMs);
    ASSERT_EQ(rig.durable(1), 0);
    ASSERT_EQ(rig.durable(3), 0);
    ASSERT_EQ(rig.provision(1, 192), 0);  // 7 + 5 units from two holes
    vgpu_range range{0, 0};
    int runs = 0;
    while (vgpu_pf_range_next(&rig.pf->vram, 1, &range)) ++runs;
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_FB_SIZE_MB), 192u);
}

TEST(Provision, VramThatIsNotKnownCleanIsScrubbedBeforeItIsHandedOut) {
    Rig rig;
    for (std::uint64_t offset = 16u << 20; offset < 64u << 20; offset += 4096)
        rig.gpu.poke(offset, 0xee);
    ASSERT_EQ(rig.provision(1, 48), 0);
    for (std::uint64_t offset = 17u << 20; offset < 64u << 20; offset += 4096)
        ASSERT_EQ(rig.gpu.peek(offset), 0) << offset;
}

std::vector<std::uint64_t> words(Rig& rig, std::uint64_t from, std::uint64_t bytes) {
    std::vector<std::uint64_t> out(bytes / sizeof(std::uint64_t));
    for (std::uint64_t i = 0; i < bytes; ++i)
        out[i / 8] |= std::uint64_t{rig.gpu.peek(from + i)} << (i % 8 * 8);
    return out;
}

/// Valid entries of VF `vf`'s page tables, whatever the tables held before; all others are zero.
void expect_tables(Rig& rig, std::uint32_t vf, std::uint64_t mib) {
    const std::uint64_t leaves = mib >> (VF_PAGE_TABLE_LEAF_SHIFT - 20);
    const auto root = words(rig, pf_vram_root(vf), VF_PAGE_TABLE_BYTES);
    EXPECT_EQ(root[0], pf_vram_leaf(vf, 0) | VF_PAGE_TABLE_VALID);
    EXPECT_EQ(std::ranges::count(root, 0u), std::ssize(root) - 1);
    const auto leaf = words(rig, pf_vram_leaf(vf, 0), VF_PAGE_TABLE_BYTES);
    for (std::uint64_t i = 0; i < leaf.size(); ++i)
        EXPECT_EQ((leaf[i] & VF_PAGE_TABLE_VALID) != 0, i < leaves) << i;
    EXPECT_EQ(std::ranges::count(leaf, 0u), std::ssize(leaf) - static_cast<std::int64_t>(leaves));
}

TEST(Provision, WhatThePageTablesHeldBeforeIsNoPartOfNewOnes) {
    Rig rig;
    for (std::uint64_t i = 0; i < 2 * VF_PAGE_TABLE_BYTES; ++i)
        rig.gpu.poke(pf_vram_root(2) + i, 0xff);
    for (const std::uint64_t mib : {64u, 16u, 32u}) {
        ASSERT_EQ(rig.provision(2, mib), 0);
        expect_tables(rig, 2, mib);
        ASSERT_EQ(rig.release(2), 0);
        rig.gpu.run_for(100 * kMs);
        ASSERT_EQ(rig.durable(2), 0);
    }
    rig.restart_core();
    for (std::uint64_t i = 0; i < 2 * VF_PAGE_TABLE_BYTES; ++i)
        rig.gpu.poke(pf_vram_root(2) + i, 0xff);
    ASSERT_EQ(rig.provision(2, 32), 0);
    expect_tables(rig, 2, 32);
}

TEST(Provision, WritesVbiosAndPf2vfThatAGuestAccepts) {
    Rig rig;
    ASSERT_EQ(rig.provision(3, 32), 0);
    const std::uint64_t base = rig.get_vf(3).vram_first_offset;
    EXPECT_EQ(rig.gpu.peek(base), 0x55);
    EXPECT_EQ(rig.gpu.peek(base + 1), 0xaa);
    std::string magic, version;
    for (std::uint64_t i = 0; i < 10; ++i)
        magic += static_cast<char>(rig.gpu.peek(base + 0x30 + i));
    for (std::uint64_t i = 0; i < 15; ++i)
        version += static_cast<char>(rig.gpu.peek(base + 0x80 + i));
    EXPECT_EQ(magic, " 761295520");
    EXPECT_EQ(version, "113-SOFTGPU-000");
    std::uint32_t sum = 0, checksum = 0;
    for (std::uint64_t i = 0; i < PF2VF_BYTES; ++i) {
        const std::uint8_t byte = rig.gpu.peek(base + VF_VRAM_PF2VF_OFFSET + i);
        if (i >= 16 && i < 20)
            checksum |= std::uint32_t{byte} << (8 * (i - 16));
        else
            sum += byte;
    }
    EXPECT_EQ(sum, checksum);
    EXPECT_EQ(rig.gpu.peek(base + VF_VRAM_PF2VF_OFFSET + offsetof(pf2vf_message, fcn_idx)), 3);
}

/// In a VM each word of VRAM that the PF writes is a trapped access.
TEST(Provision, WritesOfTheVbiosWhatIsNotZeroIntoVramThatIs) {
    Rig rig;
    for (std::uint64_t i = 0; i < VF_VRAM_VBIOS_BYTES; ++i) rig.gpu.poke((16u << 20) + i, 0xee);
    const std::uint64_t before = rig.gpu.vram_bytes_written;
    ASSERT_EQ(rig.provision(1, 32), 0);
    EXPECT_LT(rig.gpu.vram_bytes_written - before, VF_VRAM_VBIOS_BYTES / 4)
        << "what the core writes down of itself included";
    std::vector<std::uint8_t> image(VGPU_PF_SCRATCH_BYTES);
    vgpu_pf_vbios_build(image.data(), 32);
    const std::uint64_t base = rig.get_vf(1).vram_first_offset;
    for (std::uint64_t i = 0; i < VF_VRAM_VBIOS_BYTES; ++i)
        ASSERT_EQ(rig.gpu.peek(base + VF_VRAM_VBIOS_OFFSET + i), image[i]) << i;
}

/// The bytes of the table in the documents, spot by spot.
TEST(Vbios, PutsEveryTableWhereTheDriverLooks) {
    std::vector<std::uint8_t> image(VGPU_PF_SCRATCH_BYTES, 0xcc);
    vgpu_pf_vbios_build(image.data(), 512);
    const auto u16 = [&](std::size_t at) { return image[at] | image[at + 1] << 8; };
    const auto u32 = [&](std::size_t at) {
        return static_cast<std::uint32_t>(u16(at)) | static_cast<std::uint32_t>(u16(at + 2)) << 16;
    };
    EXPECT_EQ(image[2], 128);
    EXPECT_EQ(u16(0x48), 0x200);
    EXPECT_EQ(u32(0x200), 0x02020028u);
    EXPECT_EQ(std::string(image.begin() + 0x204, image.begin() + 0x208), "ATOM");
    EXPECT_EQ(u16(0x21e), 0x300);
    EXPECT_EQ(u16(0x220), 0x400);
    EXPECT_EQ(u32(0x300), 0x010200a4u);
    EXPECT_EQ(u32(0x400), 0x0102004au);
    EXPECT_EQ(u16(0x40c), 0x600);
    EXPECT_EQ(u16(0x414), 0x700);
    EXPECT_EQ(u16(0x41a), 0x780);
    EXPECT_EQ(u16(0x432), 0x800);
    EXPECT_EQ(u16(0x434), 0x840);
    EXPECT_EQ(u16(0x43c), 0x900);
    EXPECT_EQ(u32(0x600), 0x01030048u);
    EXPECT_EQ(u32(0x608), 85200u);
    EXPECT_EQ(u32(0x60c), 16700u);
    EXPECT_EQ(u32(0x610), 2u);
    EXPECT_EQ(u32(0x618), 0x4cu);
    EXPECT_EQ(u32(0x710), 2700u);
    EXPECT_EQ(u32(0x784), 0x80000000u);
    EXPECT_EQ(u16(0x788), 256);
    EXPECT_NE(image[0x804], 1);
    EXPECT_EQ(u32(0x900), 0x03020100u);
    EXPECT_EQ(image[0x914], 1);
    EXPECT_EQ(u32(0x918), 512u);
    EXPECT_EQ(u32(0x91c), 0xffu);
    EXPECT_EQ(u16(0x92c), 60);
    EXPECT_EQ(image[0x92f], 0x60);
    EXPECT_EQ(image[0x930], 16);
    EXPECT_EQ(image[0x931], 7);
    EXPECT_EQ(image[0xffff], 0);
}

TEST(Policy, ThePreemptTimeoutOfAVfInServiceChangesAndOutlivesTheCore) {
    constexpr std::uint32_t kMicroseconds = 123'000;
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    ASSERT_EQ(vgpu_pf_set_preempt_timeout(rig.pf.get(), 1, kMicroseconds), 0);
    EXPECT_EQ(rig.vf(1).config.preempt_timeout_us, kMicroseconds);
    rig.restart_core();
    EXPECT_EQ(rig.vf(1).config.preempt_timeout_us, kMicroseconds);
    EXPECT_EQ(vgpu_pf_set_preempt_timeout(rig.pf.get(), 1, 100'000'001), -EINVAL);
    EXPECT_THAT(rig.message(), HasSubstr("VF1: preempt_timeout_us 100000001; at most 100000000"));
    EXPECT_EQ(rig.vf(1).config.preempt_timeout_us, kMicroseconds) << "as it was";
}

TEST(Policy, AShorterPreemptTimeoutEndsAHangSooner) {
    const auto hang_ends = [](std::uint32_t timeout_us) {
        Rig rig;
        rig.make_busy(1);
        rig.make_busy(2);
        rig.gpu.run_for(20 * kMs);
        EXPECT_EQ(vgpu_pf_set_preempt_timeout(rig.pf.get(), 1, timeout_us), 0);
        rig.gpu.faults.push_back({GPUIOV_CMD_IDLE, 1, FaultKind::Lost});
        const std::uint64_t start = rig.gpu.now();
        while (rig.get_vf(1).hangs == 0 && rig.gpu.now() < start + 20 * kSecond)
            rig.gpu.run_for(kMs);
        return rig.gpu.now() - start;
    };
    EXPECT_LT(hang_ends(20'000), kSecond / 2);
    EXPECT_GT(hang_ends(2'000'000), 2 * kSecond);
}

TEST(Policy, WhatThePlatformWasToldIsAnEvent) {
    Rig rig;
    const std::uint64_t notified = rig.gpu.notifications;
    vgpu_pf_report_policy(rig.pf.get(), 0, VGPU_PF_POLICY_WEIGHT, 300);
    vgpu_pf_report_policy(rig.pf.get(), 2, VGPU_PF_POLICY_VRAM_QUOTA, 1ull << 33);
    const auto events = rig.events(VGPU_PF_EVENT_POLICY);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].vf, 0u);
    EXPECT_EQ(events[0].arg, VGPU_PF_POLICY_WEIGHT);
    EXPECT_EQ(events[0].arg2, 300u);
    EXPECT_EQ(events[1].vf, 2u);
    EXPECT_EQ(events[1].arg2, 1ull << 33);
    EXPECT_GT(rig.gpu.notifications, notified) << "readers are woken";
}

TEST(Provision, RollsBackCompletelyAtEveryPointOfFailure) {
    std::uint64_t point = 0;
    int failures = 0;
    for (;; ++point) {
        Rig rig;
        const std::uint64_t before = rig.get_info().vram_free_bytes;
        rig.gpu.fail_after = point;
        const int error = rig.provision(1, 48);
        const std::string message = rig.message();
        if (rig.gpu.fail_after) break;  // the whole request took fewer accesses
        rig.gpu.run_for(kMs);
        if (error == 0) continue;  // not an access the request depends on
        ++failures;
        EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT) << point;
        EXPECT_EQ(rig.get_info().vram_free_bytes, before) << point;
        EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_FB_TABLE_ROOT_LO), 0u) << point;
        EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_DOORBELLS), 0u) << point;
        EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_CU_MASK_LO), 0u) << point;
        EXPECT_FALSE(message.empty()) << point;
        EXPECT_EQ(rig.provision(1, 48), 0) << "not usable after failure at " << point;
    }
    EXPECT_GE(failures, 15);
}

TEST(Provision, ATableThatTheDeviceRefusesIsRolledBack) {
    Rig rig;
    rig.gpu.refuse_tables = true;
    EXPECT_EQ(rig.provision(1), -EIO);
    EXPECT_THAT(rig.message(), HasSubstr("the device refused its page table"));
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT);
    rig.gpu.refuse_tables = false;
    EXPECT_EQ(rig.provision(1), 0);
}

TEST(Scrub, AReleasedSliceIsNotHandedOutBeforeItIsRecordedDurable) {
    Rig rig;
    ASSERT_EQ(rig.provision(1, 256), 0);
    ASSERT_EQ(rig.provision(2, 224), 0);
    const std::uint64_t base = rig.get_vf(1).vram_first_offset;
    rig.gpu.poke(base + (100u << 20), 0x5a);
    ASSERT_EQ(rig.release(1), 0);
    EXPECT_EQ(rig.durable(1), -EBUSY);
    rig.gpu.run_for(100 * kMs);
    ASSERT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 1).size(), 1u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 1)[0].arg, 1u);
    EXPECT_GE(rig.events(VGPU_PF_EVENT_SCRUBBED, 1)[0].duration_ns, rig.gpu.bulk_ns);
    EXPECT_GE(rig.events(VGPU_PF_EVENT_SCRUBBED, 1)[0].arg2, rig.gpu.bulk_ns);
    EXPECT_EQ(rig.gpu.peek(base + (100u << 20)), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_EQ(rig.provision(3, 256), -ENOSPC);
    ASSERT_EQ(rig.durable(1), 0);
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_ABSENT);
    EXPECT_EQ(rig.provision(3, 256), 0);
    EXPECT_EQ(rig.provision(1, 16), 0);
    EXPECT_EQ(rig.get_vf(1).generation, 2u) << "a generation never comes back";
}

TEST(Scrub, ASliceThatDoesNotVerifyIsNeverHandedOut) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    rig.gpu.verify_fails = true;
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_TRUE(rig.events(VGPU_PF_EVENT_SCRUBBED).empty());
    EXPECT_EQ(rig.durable(1), -EBUSY);
    vgpu_pf_vf_ref ref{sizeof(ref), 1, 0, 0};
    EXPECT_EQ(rig.request(VGPU_PF_OP_VERIFY_ZERO, ref), -EUCLEAN);
    rig.gpu.verify_fails = false;
    EXPECT_EQ(rig.durable(1), -EBUSY);  // asking again tries again
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.request(VGPU_PF_OP_VERIFY_ZERO, ref), 0);
    EXPECT_EQ(rig.durable(1), 0);
}

/// What a client sees of a scrub that has given up: GET_VF, and an event that tells it to look.
bool has_given_up(Rig& rig, std::uint32_t vf) {
    const vgpu_pf_vf seen = rig.get_vf(vf);
    return seen.state == VGPU_PF_VF_SCRUBBING && seen.last_error != VGPU_PF_REASON_NONE;
}

std::size_t events_of_giving_up(const Rig& rig, std::uint32_t vf) {
    return static_cast<std::size_t>(
        std::ranges::count_if(rig.events(VGPU_PF_EVENT_STATE, vf), [](const vgpu_pf_event& event) {
            return event.arg == VGPU_PF_VF_SCRUBBING && event.arg2 == VGPU_PF_VF_SCRUBBING;
        }));
}

TEST(Scrub, OneThatHasGivenUpIsBegunAnewByARelease) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    ASSERT_EQ(rig.control(1, VGPU_PF_RESET), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.get_vf(1).last_error, VGPU_PF_REASON_OPERATOR);
    rig.gpu.verify_fails = true;
    ASSERT_EQ(rig.release(1), 0);
    EXPECT_FALSE(has_given_up(rig, 1)) << "what became of it in service is another matter";
    EXPECT_EQ(rig.release(1), -EINVAL) << "it is being scrubbed";
    rig.gpu.run_for(kSecond);
    EXPECT_TRUE(has_given_up(rig, 1));
    EXPECT_EQ(events_of_giving_up(rig, 1), 1u);
    for (std::size_t again = 2; again < 4; ++again) {
        ASSERT_EQ(rig.release(1), 0);
        EXPECT_FALSE(has_given_up(rig, 1));
        rig.gpu.run_for(kSecond);
        EXPECT_EQ(events_of_giving_up(rig, 1), again) << "three more attempts";
        EXPECT_TRUE(has_given_up(rig, 1));
    }
    EXPECT_TRUE(rig.events(VGPU_PF_EVENT_SCRUBBED).empty());
    EXPECT_EQ(rig.provision(1), -EBUSY) << "it is nobody's yet";
    rig.gpu.verify_fails = false;
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 1).size(), 1u);
    EXPECT_FALSE(has_given_up(rig, 1));
    EXPECT_EQ(rig.release(1), -EINVAL) << "it waits for SCRUB_DURABLE";
    EXPECT_EQ(rig.get_vf(1).state, VGPU_PF_VF_SCRUBBING);
    EXPECT_EQ(rig.durable(1), 0);
    EXPECT_EQ(rig.provision(1), 0);
}

TEST(Scrub, OneThatTakesTooLongGivesUpToo) {
    Rig rig;
    ASSERT_EQ(rig.provision(1), 0);
    rig.gpu.bulk_ns = 11 * kSecond;
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(40 * kSecond);
    EXPECT_TRUE(has_given_up(rig, 1));
    rig.gpu.bulk_ns = 20 * kUs;
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.durable(1), 0);
}

/// VF1 and VF2, and a reset of VF1 that only one of the whole device ends.
void make_one_that_takes_the_device_along(Rig& rig) {
    rig.make_busy(1);
    rig.provision(2);
    rig.gpu.run_for(kMs);
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.device_reset_ns = 100 * kMs;
}

/// Nor does it fail: what was under way begins anew when the device is back.
TEST(Scrub, IsNotGivenUpBecauseTheDeviceIsReset) {
    Rig rig;
    make_one_that_takes_the_device_along(rig);
    rig.gpu.bulk_ns = 5 * kSecond;
    ASSERT_EQ(rig.release(2), 0);
    rig.control(1, VGPU_PF_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    EXPECT_FALSE(has_given_up(rig, 2));
    EXPECT_EQ(rig.durable(2), -EBUSY);
    EXPECT_EQ(rig.release(2), -EINVAL);
    rig.gpu.bulk_ns = 20 * kUs;
    rig.gpu.run_for(10 * kSecond);
    EXPECT_EQ(events_of_giving_up(rig, 2), 0u);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 2).size(), 1u);
    EXPECT_EQ(rig.durable(2), 0);
}

TEST(Scrub, IsBegunOnceThoughTheDeviceIsInItsReset) {
    Rig rig;
    make_one_that_takes_the_device_along(rig);
    rig.gpu.bulk_ns = 300 * kMs;
    rig.control(1, VGPU_PF_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.release(2), 0);
    rig.gpu.run_for(5 * kSecond);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 2).size(), 1u);
    EXPECT_EQ(rig.durable(2), 0);
}

TEST(Scrub, OneThatHasGivenUpBeginsAnewOnceWithAResetOfTheDevice) {
    Rig rig;
    rig.make_busy(1);
    rig.provision(2);
    rig.gpu.verify_fails = true;
    ASSERT_EQ(rig.release(2), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_TRUE(has_given_up(rig, 2));
    rig.gpu.verify_fails = false;
    rig.gpu.vf(1).flr_never_ends = true;
    rig.gpu.device_reset_ns = 100 * kMs;
    rig.gpu.bulk_ns = 300 * kMs;
    rig.control(1, VGPU_PF_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    EXPECT_EQ(rig.release(2), 0);
    EXPECT_EQ(rig.durable(2), -EBUSY);
    rig.gpu.run_for(5 * kSecond);
    EXPECT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 2).size(), 1u);
    EXPECT_EQ(rig.durable(2), 0);
}

/// It says nothing about the VRAM.
TEST(Verification, ThatAResetOfTheDeviceCutsOffFindsNothing) {
    Rig rig;
    make_one_that_takes_the_device_along(rig);
    ASSERT_EQ(rig.release(2), 0);
    rig.gpu.run_for(kSecond);
    ASSERT_EQ(rig.events(VGPU_PF_EVENT_SCRUBBED, 2).size(), 1u);
    rig.gpu.bulk_ns = 5 * kSecond;
    constexpr std::uint64_t kToken = 900;
    vgpu_pf_vf_ref ref{sizeof(ref), 2, 0, 0};
    ASSERT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_VERIFY_ZERO, &ref, kToken),
              -EINPROGRESS);
    rig.control(1, VGPU_PF_RESET);
    while (rig.gpu.device_resets == 0) rig.gpu.run_for(kMs);
    ASSERT_TRUE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.gpu.done[kToken].first, -EIO);
    EXPECT_EQ(rig.gpu.done[kToken].second, "the check was interrupted");
}

/// A scrubbed VF in two pieces, the first of which is being verified.
struct VerifiedInPieces : testing::Test {
    VerifiedInPieces() {
        for (std::uint32_t vf = 1; vf <= 3; ++vf) rig.provision(vf, 16);
        for (const std::uint32_t vf : {1u, 3u}) {
            rig.release(vf);
            rig.gpu.run_for(kSecond);
            rig.durable(vf);
        }
        rig.provision(1, 32);
        rig.provision(4, 16);
        rig.release(1);
        rig.release(4);
        rig.gpu.run_for(kSecond);
        rig.gpu.bulk_ns = kSecond;
        EXPECT_EQ(vgpu_pf_request_run(rig.pf.get(), VGPU_PF_OP_VERIFY_ZERO, &ref, kToken),
                  -EINPROGRESS);
        rig.gpu.run_for(kSecond / 2);
    }
    static constexpr std::uint64_t kToken = 800;
    vgpu_pf_vf_ref ref{sizeof(ref), 1, 0, 0};
    Rig rig;
};

TEST_F(VerifiedInPieces, IsNotSaidToBeCleanIfItIsHandedBackMeanwhile) {
    ASSERT_EQ(rig.durable(1), 0);
    ASSERT_TRUE(rig.gpu.is_done(kToken));
    EXPECT_EQ(rig.gpu.done[kToken].first, -ECANCELED);
    EXPECT_THAT(rig.gpu.done[kToken].second, HasSubstr("released while"));
}

TEST_F(VerifiedInPieces, TheNextOwnersVramIsNotCheckedInItsPlace) {
    ASSERT_EQ(rig.durable(1), 0);
    ASSERT_EQ(rig.provision(1, 32), 0);
    rig.gpu.poke(rig.get_vf(1).vram_first_offset + (20u << 20), 0xaa);
    rig.gpu.run_for(3 * kSecond);
    EXPECT_EQ(rig.gpu.done[kToken].first, -ECANCELED);
    rig.gpu.bulk_ns = 20 * kUs;
    ASSERT_EQ(rig.release(1), 0);
    rig.gpu.run_for(kSecond);
    EXPECT_EQ(rig.request(VGPU_PF_OP_VERIFY_ZERO, ref), 0) << "the next one is its own";
}

TEST_F(VerifiedInPieces, AStepOfACheckThatWasCutOffIsNoStepOfTheNext) {
    ASSERT_EQ(rig.durable(1), 0);
    vgpu_pf_vf_ref other{sizeof(other), 4, 0, 0};
    const std::uint64_t before = rig.gpu.now();
    EXPECT_EQ(rig.request(VGPU_PF_OP_VERIFY_ZERO, other), 0);
    EXPECT_GT(rig.gpu.now() - before, kSecond) << "its own step has been done";
}

TEST(Scrub, ReleaseTakesEverythingFromTheVfAtOnce) {
    Rig rig;
    rig.make_busy(1);
    rig.gpu.run_for(kMs);
    ASSERT_EQ(rig.release(1), 0);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_FB_TABLE_ROOT_LO), 0u);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_DOORBELLS), 0u);
    EXPECT_EQ(rig.gpu.bank(1, REG_VGPU_VF0_GATES), 0u);
    EXPECT_EQ(rig.gpu.loaded(), 0u);
}

TEST(Requests, AStaleGenerationIsRefused) {
    Rig rig;
    rig.provision(1);
    vgpu_pf_control request{sizeof(request), 1, 7, VGPU_PF_PAUSE};
    EXPECT_EQ(rig.request(VGPU_PF_OP_CONTROL, request), -ESTALE);
    EXPECT_EQ(rig.message(), "VF1: generation 7 is over; the current one is 1");
    request.generation = 1;
    EXPECT_EQ(rig.request(VGPU_PF_OP_CONTROL, request), 0);
}

TEST(Requests, UnknownOperationsAndVfsAreRefused) {
    Rig rig;
    vgpu_pf_vf vf{};
    EXPECT_EQ(rig.request(VGPU_PF_OP_GET_VF, vf), -ENOENT);
    vf.vf = 17;
    EXPECT_EQ(rig.request(VGPU_PF_OP_GET_VF, vf), -ENOENT);
    EXPECT_EQ(rig.request(99, vf), -EOPNOTSUPP);
    EXPECT_EQ(vgpu_pf_request_traits(99), nullptr);
    EXPECT_EQ(vgpu_pf_request_traits(VGPU_PF_OP_GET_VF)->bytes, sizeof(vgpu_pf_vf));
}

}  // namespace
}  // namespace vgpu::test
