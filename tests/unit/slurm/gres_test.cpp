// SPDX-License-Identifier: MIT
#include "daemon/engines/slurm/gres.h"

#include <gmock/gmock.h>

namespace vgpu::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Gres, AllFormsOfSlurmAreRead) {
    EXPECT_EQ(*read_gres("vgpu:small(CNT:2),vgpu:large(CNT:1)"),
              (Counts{{"small", 2}, {"large", 1}}));
    EXPECT_EQ(*read_gres("gpu:tesla:2(IDX:0-1,3),vgpu:small:8"), (Counts{{"small", 8}}));
    EXPECT_EQ(*read_gres("vgpu:small:2(IDX:0-1)"), (Counts{{"small", 2}}));
    EXPECT_EQ(*read_gres("vgpu_vram:256"), Counts{}) << "another GRES";
    EXPECT_EQ(*read_gres("(null)"), Counts{});
    EXPECT_EQ(*read_gres(""), Counts{});
}

TEST(Gres, AVgpuWithoutATypeOrANumberIsRefusedByItsName) {
    for (const char* list :
         {"vgpu:2", "vgpu", "vgpu(CNT:2)", "vgpu:small", "vgpu:small:x", "vgpu:small(CNT:)",
          "vgpu:small:-1", "vgpu:small:65536", "vgpu:small(CNT:4294967295)"}) {
        const auto counts = read_gres(list);
        ASSERT_FALSE(counts) << list;
        EXPECT_EQ(counts.error().id, ErrorId::BadConfiguration);
        EXPECT_THAT(counts.error().cause, HasSubstr(list));
    }
}

TEST(Gres, ARequestForVfsIsKnownByTheNameOfTheGres) {
    for (const char* list : {"gres:vgpu:small:1", "gres/vgpu:small:1", "gres:vgpu", "vgpu:2",
                             "gres:gpu:1,gres:vgpu:small:10"})
        EXPECT_TRUE(has_vfs(list)) << list;
    for (const char* list : {"gres:gpu:vgpu:1", "gres:nvgpu:1", "gres:vgpu:small:0", "gres:vgpu:0",
                             "gres/vgpu_vram:256", "(null)", ""})
        EXPECT_FALSE(has_vfs(list)) << list;
}

TEST(Gres, NumbersOfOneTypeAddUpToWhatAHostCanHave) {
    EXPECT_EQ(*read_gres("vgpu:a:2,vgpu:a:3"), (Counts{{"a", 5}}));
    EXPECT_EQ(*read_gres("vgpu:a:65535,vgpu:a:65535"), (Counts{{"a", 65'535}}));
}

TEST(Gres, AListWhoseParenthesesDoNotMatchIsRefused) {
    for (const char* list :
         {"gpu:1(IDX:0,vgpu:small:8", "gpu:1),vgpu:small:8", ")(", "vgpu:a:1(("}) {
        const auto counts = read_gres(list);
        ASSERT_FALSE(counts) << list;
        EXPECT_EQ(counts.error().id, ErrorId::BadConfiguration);
        EXPECT_THAT(counts.error().cause, HasSubstr(list));
    }
}

TEST(Gres, AMessageShowsThe200FirstBytesOfAList) {
    const std::string long_name(10'000, '\x80');
    for (const std::string& list : {"(" + long_name, "vgpu:" + long_name}) {
        const auto counts = read_gres(list);
        ASSERT_FALSE(counts);
        EXPECT_LT(counts.error().cause.size(), 1'000u);
    }
}

TEST(Gres, OtherResourcesOfAHostStayAndTypesThatAreGoneBecomeZero) {
    EXPECT_EQ(with_counts("gpu:tesla:1,vgpu:large:4,vgpu:old:2", {{"large", 3}, {"small", 8}}),
              "gpu:tesla:1,vgpu:large:3,vgpu:old:0,vgpu:small:8");
    EXPECT_EQ(with_counts("(null)", {{"small", 8}}), "vgpu:small:8");
    EXPECT_EQ(with_counts("(null),gpu:1", {{"small", 8}}), "gpu:1,vgpu:small:8");
    EXPECT_EQ(with_counts("gpu:1", {}), "gpu:1");
}

TEST(Gres, AJobAsksForOneVfPerUnit) {
    EXPECT_THAT(profiles_of({{"large", 1}, {"small", 2}}), ElementsAre("large", "small", "small"));
}

TEST(Gres, TheConfigurationOfAHostHasALinePerProfile) {
    EXPECT_EQ(configuration_of("n1", {{"large", 4}, {"small", 8}}),
              "# slurm.conf: add to the line NodeName=n1\n"
              "Gres=vgpu:large:4,vgpu:small:8\n\n"
              "# gres.conf\n"
              "NodeName=n1 Name=vgpu Type=large Count=4\n"
              "NodeName=n1 Name=vgpu Type=small Count=8\n");
}

}  // namespace
}  // namespace vgpu::slurm
