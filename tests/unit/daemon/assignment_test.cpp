// SPDX-License-Identifier: MIT
//
// Which VFs a consumer gets: the rules alone.
#include "daemon/service/owners/assignment.h"

#include <gmock/gmock.h>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Candidate free_vf(const std::string& gpu, std::uint32_t vf, const std::string& profile,
                  std::uint32_t weight = 100) {
    return {.target = {.gpu = gpu, .vf = vf},
            .name = gpu + "-" + std::to_string(vf),
            .profile = profile,
            .weight = weight,
            .availability = Availability::Free,
            .why = ""};
}

Candidate vf_that_is(Availability availability, Candidate one, std::string why = "is not free") {
    one.availability = availability;
    one.why = std::move(why);
    return one;
}

const VfSelector kSmall{.by = VfSelector::By::Profile, .value = "small"};

VfSelector by_name(const std::string& name) {
    return {.by = VfSelector::By::Name, .value = name};
}

TEST(Assignment, WantsAreNamesOrProfiles) {
    EXPECT_EQ(*selector_of("name", "train"), by_name("train"));
    EXPECT_EQ(*selector_of("profile", "small"), kSmall);
    EXPECT_EQ(selector_of("profile", "64MiB-w300")->value, "64MiB-w300") << "as an export calls it";
    EXPECT_EQ(selector_of("name", "64MiB").error().id, ErrorId::InvalidName);
    EXPECT_EQ(selector_of("uuid", "x").error().id, ErrorId::UnknownOption);
    EXPECT_EQ(selector_of("name", "no name").error().id, ErrorId::InvalidName);
    EXPECT_EQ(selector_of("profile", "").error().cause, "'' is not a valid profile of a VF");
}

TEST(Assignment, ANameOfTwoVfsChoosesNeither) {
    std::vector<Candidate> two{free_vf("gpu0", 1, "small"), free_vf("gpu1", 2, "small")};
    two[0].name = two[1].name = "train";
    const auto chosen = choose(std::vector{by_name("train")}, two);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().error.id, ErrorId::AmbiguousName);
    EXPECT_EQ(chosen.error().error.cause, "'train' is the name of 2 VFs: gpu0/vf1, gpu1/vf2");
}

TEST(Assignment, AProfileComesFromTheGpuWithTheLeastWeightInUse) {
    const std::vector<Candidate> candidates{
        vf_that_is(Availability::Claimed, free_vf("gpu0", 1, "large", 300)),
        free_vf("gpu0", 2, "small"), free_vf("gpu1", 1, "small"),
        vf_that_is(Availability::Claimed, free_vf("gpu1", 2, "small", 100))};
    EXPECT_THAT(*choose(std::vector{kSmall}, candidates), ElementsAre(Target{"gpu1", 1}));
}

TEST(Assignment, WhatOneRequestTakesCountsForItsNextVf) {
    const std::vector<Candidate> candidates{
        free_vf("gpu0", 1, "small"), free_vf("gpu0", 2, "small"), free_vf("gpu1", 1, "small")};
    EXPECT_THAT(*choose(std::vector{kSmall, kSmall, kSmall}, candidates),
                ElementsAre(Target{"gpu0", 1}, Target{"gpu1", 1}, Target{"gpu0", 2}));
}

TEST(Assignment, AProfileDoesNotTakeTheVfThatANameStandsFor) {
    const std::vector<Candidate> candidates{free_vf("gpu0", 1, "small"),
                                            free_vf("gpu0", 2, "small")};
    EXPECT_THAT(*choose(std::vector{kSmall, by_name("gpu0-1")}, candidates),
                ElementsAre(Target{"gpu0", 2}, Target{"gpu0", 1}));
}

TEST(Assignment, WhatTheConsumerHasComesFirstInTheOrderItGotIt) {
    auto second = vf_that_is(Availability::Own, free_vf("gpu0", 1, "small"));
    auto first = vf_that_is(Availability::Own, free_vf("gpu0", 3, "small"));
    first.owned_since = UnixTime{10};
    second.owned_since = UnixTime{20};
    const std::vector<Candidate> candidates{second, free_vf("gpu0", 2, "small"), first};
    EXPECT_THAT(*choose(std::vector{kSmall, kSmall}, candidates),
                ElementsAre(Target{"gpu0", 3}, Target{"gpu0", 1}));
}

TEST(Assignment, ARefusalCountsWhyNothingOfTheProfileIsFree) {
    const std::vector<Candidate> candidates{
        vf_that_is(Availability::Claimed, free_vf("gpu0", 1, "small")),
        vf_that_is(Availability::Claimed, free_vf("gpu0", 2, "small")),
        vf_that_is(Availability::NotInService, free_vf("gpu0", 3, "small")),
        free_vf("gpu0", 4, "large")};
    const auto refused = choose(std::vector{kSmall}, candidates);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().error.id, ErrorId::NoMatchingVf);
    EXPECT_EQ(refused.error().error.cause,
              "none of the 3 VFs of profile 'small' is free: 2 claimed, 1 not in service");
    EXPECT_FALSE(refused.error().waiting_may_help);
}

TEST(Assignment, AProfileThatNoVfHasIsNamedWithThoseThereAre) {
    const std::vector<Candidate> candidates{free_vf("gpu0", 1, "small"), free_vf("gpu0", 2, "")};
    const auto refused =
        choose(std::vector{VfSelector{.by = VfSelector::By::Profile, .value = "smal"}}, candidates);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().error.cause,
              "there is no VF of profile 'smal'; existing profiles: small");
    EXPECT_EQ(choose(std::vector{kSmall}, std::vector<Candidate>{}).error().error.cause,
              "there is no VF of profile 'small'; no VF has a profile");
}

TEST(Assignment, AScrubIsWaitedForAndAClaimIsNot) {
    const std::vector<Candidate> candidates{
        vf_that_is(Availability::Claimed, free_vf("gpu0", 1, "small")),
        vf_that_is(Availability::Scrubbing, free_vf("gpu0", 2, "small"), "is being scrubbed")};
    EXPECT_TRUE(choose(std::vector{kSmall}, candidates).error().waiting_may_help);
    EXPECT_TRUE(choose(std::vector{by_name("gpu0-2")}, candidates).error().waiting_may_help);
    const auto claimed = choose(std::vector{by_name("gpu0-1")}, candidates);
    EXPECT_FALSE(claimed.error().waiting_may_help);
    EXPECT_EQ(claimed.error().error.id, ErrorId::Claimed);
    EXPECT_EQ(claimed.error().error.cause, "gpu0/vf1 ('gpu0-1') is not free");
}

TEST(Assignment, AScrubDoesNotKeepAnybodyFromAFreeVf) {
    const std::vector<Candidate> candidates{
        vf_that_is(Availability::Scrubbing, free_vf("gpu0", 1, "small")),
        free_vf("gpu0", 2, "small")};
    EXPECT_THAT(*choose(std::vector{kSmall}, candidates), ElementsAre(Target{"gpu0", 2}));
}

TEST(Assignment, NamesAreGuessedAndNotGivenTwice) {
    const std::vector<Candidate> candidates{free_vf("gpu0", 1, "small")};
    const auto mistyped = choose(std::vector{by_name("gpu0-l")}, candidates);
    EXPECT_EQ(mistyped.error().error.id, ErrorId::NoSuchVf);
    EXPECT_THAT(mistyped.error().error.cause, HasSubstr("did you mean 'gpu0-1'?"));
    const auto twice = choose(std::vector{by_name("gpu0-1"), by_name("gpu0-1")}, candidates);
    EXPECT_EQ(twice.error().error.cause, "VF 'gpu0-1' is requested more than once");
}

}  // namespace
}  // namespace vgpu::daemon
