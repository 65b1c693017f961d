// SPDX-License-Identifier: MIT
//
// A PF with 63 VFs, the most that xe has: vgpud manages all of them, although a GPU of our PF core
// has at most 16.
#include "tests/unit/backend/pci_gpu.h"

#include <fmt/format.h>

namespace vgpu::daemon {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr unsigned kVfs = 63;

class ManyVfs : public PciGpu {
protected:
    ManyVfs() : PciGpu(XeKernel::k702, kVfs) {}

    static std::string all_vfs(unsigned count) {
        const nlohmann::json profile{{"resources", {{"vram", "64MiB"}}},
                                     {"assignment_mode", "vfio-pci"}};
        const nlohmann::json group{{"profile", "p"}, {"count", count}, {"name", "vm-{n}"}};
        return nlohmann::json{{"profiles", {{"p", profile}}},
                              {"configs", {{"day", {{{"gpu", "b50"}, {"vfs", {group}}}}}}}}
            .dump();
    }
};

TEST_F(ManyVfs, AreAppliedInOneEnableAndSurviveARestart) {
    EXPECT_EQ(snapshot()->gpu.info.total_vfs, kVfs);
    const auto id = jobs->apply(all_vfs(kVfs), {});
    ASSERT_TRUE(id) << id.error().cause;
    for (int i = 0; i < 100; ++i) pass(std::chrono::milliseconds(100));
    const JobView job = jobs->list().back();
    ASSERT_EQ(job.state, "done") << (job.error ? job.error->cause : job.step);
    EXPECT_EQ(count_enables(), 1u);
    ASSERT_EQ(card.pf.count(), kVfs);
    EXPECT_EQ(card.pf.vf(kVfs).driver, "vfio-pci");
    EXPECT_GT(card.function(kVfs).quantum_ms, 0u);
    files->forget_writes();
    start();
    pass();
    EXPECT_THAT(snapshot()->vfs, SizeIs(kVfs));
    EXPECT_EQ(view(kVfs).record.spec.name, "vm-63");
    EXPECT_EQ(view(kVfs).condition, "");
    EXPECT_THAT(files->writes(), ::testing::IsEmpty());
    EXPECT_TRUE(plan(all_vfs(kVfs))->at("is_empty"));
    EXPECT_THAT(plan(all_vfs(kVfs + 1)).error().cause, HasSubstr("64 VFs wanted, 63 exist"));
}

TEST_F(ManyVfs, HaveEventsThatATraceCanHold) {
    const trace::Annotated event{.at = Nanoseconds{1}, .vf = kVfs, .kind = "orphan", .text = "x"};
    Nanoseconds before{0}, after{0};
    const trace::Json json = trace::json_of(event, before);
    EXPECT_EQ(std::get<trace::Annotated>(trace::event_of(json, after)).vf, kVfs);
}

}  // namespace
}  // namespace vgpu::daemon
