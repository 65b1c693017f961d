// SPDX-License-Identifier: MIT
//
// An attach that does not come to its end: the core is as it was before, and the next one works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/home_watch.h"
#include "tests/unit/core/rig.h"

namespace vgpu::test {
namespace {

/// A core that has not seen a device yet.
void start_anew(Rig& rig) {
    const vgpu_pf_params params = rig.pf->params;
    vgpu_pf_detach(rig.pf.get());
    vgpu_pf_init(rig.pf.get(), rig.gpu.os(), &params);
}

void expect_same_device(const vgpu_pf_info& info, const vgpu_pf_info& before) {
    EXPECT_EQ(info.total_vfs, before.total_vfs);
    EXPECT_EQ(info.vram_bytes, before.vram_bytes);
    EXPECT_EQ(info.vram_aperture_bytes, before.vram_aperture_bytes);
    EXPECT_EQ(info.doorbell_pages, before.doorbell_pages);
    EXPECT_EQ(info.cu_count, before.cu_count);
}

/// Accesses of an attach, as the rig is now.
std::uint64_t count_accesses(Rig& rig) {
    const std::uint64_t before = rig.gpu.accesses;
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), 0);
    return rig.gpu.accesses - before;
}

/// All of the first, where the device is asked what it is, and some of those that follow.
std::uint64_t next_point(std::uint64_t point) {
    return point < 20 ? point + 1 : point + 7;
}

TEST(Attach, AnyAccessOfTheFirstOneMayFail) {
    Rig whole;
    const vgpu_pf_info good = whole.get_info();
    start_anew(whole);
    const std::uint64_t accesses = count_accesses(whole);
    for (std::uint64_t point = 0; point < accesses; point = next_point(point)) {
        SCOPED_TRACE(point);
        Rig rig;
        start_anew(rig);
        rig.gpu.fail_after = point;
        const bool is_refused = vgpu_pf_attach(rig.pf.get()) != 0;
        rig.gpu.fail_after.reset();
        if (is_refused) {
            EXPECT_EQ(rig.get_info().device_lost, 1u);
            EXPECT_EQ(rig.get_info().total_vfs, 0u) << "nothing is known of it";
            ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
        }
        expect_same_device(rig.get_info(), good);
        EXPECT_EQ(rig.provision(4), 0) << rig.message();
    }
}

/// Its home detaches it then, and attaches again when the device is back.
TEST(Attach, ADeviceMayBeLostInTheMiddleAndComeBack) {
    const auto lose = [](Rig& rig) {
        rig.make_busy(1);
        rig.gpu.run_for(20 * kMs);
        rig.gpu.is_gone = true;
        vgpu_pf_detach(rig.pf.get());
        rig.gpu.is_gone = false;
    };
    Rig whole;
    const vgpu_pf_info good = whole.get_info();
    lose(whole);
    const std::uint64_t accesses = count_accesses(whole);
    for (std::uint64_t point = 0; point < accesses; point = next_point(point)) {
        SCOPED_TRACE(point);
        Rig rig;
        lose(rig);
        HomeWatch watch(rig.gpu);
        const std::uint64_t lost_at = rig.gpu.accesses + point;
        watch.on_access = [&] { rig.gpu.is_gone = rig.gpu.accesses >= lost_at; };
        if (vgpu_pf_attach(rig.pf.get()) == 0) vgpu_pf_detach(rig.pf.get());
        watch.on_access = nullptr;
        expect_same_device(rig.get_info(), good);
        EXPECT_EQ(rig.get_info().device_lost, 1u);
        rig.gpu.is_gone = false;
        ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
        expect_same_device(rig.get_info(), good);
        rig.gpu.run_for(kSecond);
        EXPECT_NE(rig.vf(1).state, VGPU_PF_VF_MISMATCH);
        EXPECT_EQ(rig.provision(4), 0) << rig.message();
    }
}

TEST(Attach, ADeviceWithMoreVfsThanTheCoreHasLeavesNothingBehind) {
    Rig rig;
    rig.make_busy(1);
    const vgpu_pf_info good = rig.get_info();
    rig.gpu.is_gone = true;
    vgpu_pf_detach(rig.pf.get());
    ModelGpu large({.total_vfs = VGPU_PF_MAX_VFS + 1});
    rig.gpu.bind(nullptr);
    rig.pf->os = large.os();
    EXPECT_EQ(vgpu_pf_attach(rig.pf.get()), -ENODEV);
    EXPECT_EQ(rig.message(), "device reports 17 VFs; 1 to 16 are supported");
    expect_same_device(rig.get_info(), good);
    vgpu_pf_vf beyond{};
    beyond.vf = VGPU_PF_MAX_VFS + 1;
    EXPECT_EQ(rig.request(VGPU_PF_OP_GET_VF, beyond), -ENOENT);
    rig.pf->os = rig.gpu.os();
    rig.gpu.bind(rig.pf.get());
    rig.gpu.is_gone = false;
    ASSERT_EQ(vgpu_pf_attach(rig.pf.get()), 0) << rig.message();
    EXPECT_EQ(rig.vf(1).state, VGPU_PF_VF_READY);
}

}  // namespace
}  // namespace vgpu::test
