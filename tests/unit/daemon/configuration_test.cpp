// SPDX-License-Identifier: MIT
//
// Configuration documents: what they say, what is wrong with them, and what desired_gpus() makes of
// a label.
#include "daemon/service/config/configuration.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <chrono>

namespace vgpu::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTwoSizes = R"({
    // comments are allowed
    "profiles": {
        "small": {"resources": {"vram": "32MiB"}},
        "large": {"resources": {"vram": "1 GiB", "compute_units": 4, "doorbell_pages": 8},
                  "scheduler": {"weight": 300, "quantum_us": 2000},
                  "security": {"preempt_timeout_us": 5, "full_access_timeout_ms": 6,
                               "exclusive_full_access": true, "scrub_on_release": true,
                               "guard": {"flr": 7, "interrupt": "off"}},
                  "assignment_mode": "vfio-pci"}
    },
    "configs": {
        "day": [{"gpu": "gpu1", "vfs": []},
                {"gpu": "*", "scheduler": {"max_gap_ms": 80},
                 "vfs": [{"profile": "small", "count": 2, "name": "{gpu}-web-{n}"},
                         {"profile": "large", "name": "train", "was": "old"}]}],
        "night": []
    }
})";

Configuration two_sizes() {
    const auto read = parse_configuration(kTwoSizes);
    EXPECT_TRUE(read) << read.error().cause;
    return read.value_or(Configuration{});
}

std::string mistake_in(std::string_view text) {
    const auto read = parse_configuration(text);
    if (read) return "none";
    EXPECT_EQ(read.error().id, ErrorId::BadConfiguration);
    return read.error().cause;
}

std::vector<std::string> names_of(const DesiredGpu& gpu) {
    std::vector<std::string> names;
    for (const DesiredVf& vf : gpu.vfs) names.push_back(vf.spec.name);
    return names;
}

TEST(Configuration, SaysEverythingThatThePfCoreCanDoForAVf) {
    const Configuration read = two_sizes();
    const VfSpec& large = read.profiles.at("large");
    EXPECT_EQ(large.resources.vram_bytes, 1u << 30);
    EXPECT_EQ(large.resources.cu_mask, 0xfu);
    EXPECT_EQ(large.resources.doorbell_pages, 8u);
    EXPECT_EQ(large.weight, 300u);
    EXPECT_EQ(large.quantum_us, 2000u);
    EXPECT_EQ(large.assignment_policy,
              (VfAssignmentPolicy{.assignment_mode = AssignmentMode::VfioPci,
                                  .scrubs_on_release = true}));
    EXPECT_EQ(large.resources.security.preempt_timeout_us, 5u);
    EXPECT_EQ(large.resources.security.full_access_timeout_ms, 6u);
    EXPECT_TRUE(large.resources.security.is_exclusive_full_access);
    EXPECT_THAT(large.resources.security.guard_limits, ElementsAre(7u, 0u, 0u, kGuardOff));
    EXPECT_EQ(read.profiles.at("small"), (VfSpec{.resources = {.vram_bytes = 32u << 20}}));
}

TEST(Configuration, ReadsBackWhatItWrites) {
    const Configuration read = two_sizes();
    const auto again = parse_configuration(encode_configuration(read));
    ASSERT_TRUE(again) << again.error().cause;
    EXPECT_EQ(*again, read);
}

TEST(Configuration, ResourcesReachThePfCoreWhole) {
    const vgpu_pf_provision request = provision_of(two_sizes().profiles.at("large").resources);
    EXPECT_EQ(request.vram_bytes, 1u << 30);
    EXPECT_EQ(request.cu_mask, 0xfu);
    EXPECT_EQ(request.doorbell_pages, 8u);
    EXPECT_EQ(request.preempt_timeout_us, 5u);
    EXPECT_EQ(request.full_access_timeout_ms, 6u);
    EXPECT_EQ(request.flags, static_cast<std::uint32_t>(VGPU_PF_PROVISION_EXCLUSIVE_FULL_ACCESS));
    EXPECT_THAT(request.guard_limits, ElementsAre(7u, 0u, 0u, UINT32_MAX));
}

TEST(Configuration, HostileDocumentsEndInAnError) {
    EXPECT_THAT(mistake_in(std::string(kMaxConfigurationBytes + 1, ' ')),
                HasSubstr("the limit is 262144"));
    EXPECT_THAT(mistake_in("{"), HasSubstr("parse error"));
    EXPECT_THAT(mistake_in("[]"), HasSubstr("not an object"));
    EXPECT_THAT(mistake_in("\"\xff\""), HasSubstr("UTF-8"));
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    EXPECT_THAT(mistake_in(R"({"configs": {"a": []}, "profiles": {"p": {"resources": {"vram": 1,)"
                           R"("doorbell_pages": )" +
                           deep + "}}}}"),
                HasSubstr("lists and objects are nested more than 64 deep"));
    EXPECT_EQ(mistake_in(R"({"configs": {"a": []}, "profiles": {"p": {"resources": {"vram": 1,)"
                         R"("doorbell_pages": [[1]]}}}})"),
              "/profiles/p/resources/doorbell_pages must be a whole number within 1..4294967295, "
              "not a list");
    const std::string mistake = mistake_in(R"({")" + std::string(200'000, 'x') + R"(": 1})");
    EXPECT_LT(mistake.size(), 200u);
    EXPECT_THAT(mistake, HasSubstr("is unknown"));
}

/// "NAME0: VALUE, NAME1: VALUE …"
std::string members(const std::string& name, std::size_t count, const std::string& value) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
        text += fmt::format("{}\"{}{}\": {}", i == 0 ? "" : ", ", name, i, value);
    return text;
}

/// `entries` of VFs, each of the profile "p" and a name of its own.
std::string groups(std::size_t entries, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < entries; ++i)
        text += fmt::format(R"({}{{"profile": "p", "count": {}, "name": "g{}-{{n}}"}})",
                            i == 0 ? "" : ", ", count, i);
    return text;
}

std::string document_with(const std::string& profiles, const std::string& configs) {
    return fmt::format(R"({{"profiles": {{{}}}, "configs": {{{}}}}})", profiles, configs);
}

constexpr const char* kProfile = R"({"resources": {"vram": 1}})";

TEST(Configuration, WhatItHoldsIsBoundedAndTheBoundIsNamed) {
    const std::string profile = fmt::format(R"("p": {})", kProfile);
    const auto gpu = [](const std::string& id, const std::string& vfs) {
        return fmt::format(R"({{"gpu": "{}", "vfs": [{}]}})", id, vfs);
    };
    const auto one = [&](const std::string& vfs) {
        return document_with(profile, fmt::format(R"("x": [{}])", gpu("gpu0", vfs)));
    };
    EXPECT_EQ(mistake_in(one(groups(4, 16))), "none");
    EXPECT_EQ(mistake_in(one(groups(4, 16) + ", " + groups(1, 1))),
              "/configs/x/0/vfs requests more than 64 VFs");
    EXPECT_EQ(mistake_in(document_with(members("p", 1024, kProfile), R"("x": [])")), "none");
    EXPECT_EQ(mistake_in(document_with(members("p", 1025, kProfile), R"("x": [])")),
              "/profiles has 1025 profiles; the limit is 1024");
    EXPECT_EQ(mistake_in(document_with(profile, members("x", 64, "[]"))), "none");
    EXPECT_EQ(mistake_in(document_with(profile, members("x", 65, "[]"))),
              "/configs has 65 labels; the limit is 64");
    std::string gpus;
    for (int i = 0; i < 65; ++i) gpus += (i == 0 ? "" : ", ") + gpu(fmt::format("gpu{}", i), "");
    EXPECT_EQ(mistake_in(document_with(profile, fmt::format(R"("x": [{}])", gpus))),
              "/configs/x has 65 entries for GPUs; the limit is 64");
}

/// Each replacement moves what follows: of a quarter of a mebibyte that would take seconds.
TEST(Configuration, APatternThatCannotMakeANameIsNotTried) {
    std::string pattern;
    for (int i = 0; i < 80'000; ++i) pattern += "{n}";
    const auto refused = parse_configuration(
        R"({"profiles": {"p": {"resources": {"vram": 16777216}}}, "configs": {"c":)"
        R"( [{"gpu": "*", "vfs": [{"profile": "p", "count": 2, "name": ")" +
        pattern + "\"}]}]}}");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().cause, ::testing::HasSubstr("must be a name of 1 to 63 letters"));
}

TEST(Configuration, NothingIsReadBehindTheFirstMistake) {
    // each of the 1500 is unknown, and would be compared with 1024 names of 60 letters
    const std::string name(58, 'p');
    std::string unknown;
    for (int i = 0; i < 1500; ++i)
        unknown += fmt::format(R"({}{{"profile": "{}", "name": "v"}})", i == 0 ? "" : ", ",
                               std::string(60, 'q'));
    const std::string text =
        document_with(members(name, 1024, kProfile),
                      fmt::format(R"("x": [{{"gpu": "gpu0", "vfs": [{}]}}])", unknown));
    ASSERT_LT(text.size(), kMaxConfigurationBytes);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(mistake_in(text), HasSubstr("/configs/x/0/vfs/0/profile 'qqq"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20))
        << "two milliseconds for each of the names are minutes";
}

TEST(Configuration, StarStandsForTheGpusWithoutAnEntry) {
    const std::vector<std::string> gpus{"gpu0", "gpu1"};
    const auto wanted = desired_gpus(two_sizes(), "day", gpus);
    ASSERT_TRUE(wanted) << wanted.error().cause;
    ASSERT_EQ(wanted->size(), 2u);
    EXPECT_THAT(names_of(wanted->at(0)), ElementsAre("gpu0-web-1", "gpu0-web-2", "train"));
    EXPECT_EQ(wanted->at(0).scheduler.max_gap_ms, 80u);
    EXPECT_EQ(wanted->at(0).vfs.at(2).was, "old");
    EXPECT_EQ(wanted->at(0).vfs.at(2).spec.profile, "large");
    EXPECT_THAT(names_of(wanted->at(1)), ElementsAre());
    EXPECT_EQ(desired_gpus(two_sizes(), "night", gpus)->size(), 0u)
        << "a GPU without entry is left alone";
}

TEST(Configuration, ALabelMustBeThereAndIsGuessed) {
    const std::vector<std::string> gpus{"gpu0", "gpu1"};
    const auto wrong = desired_gpus(two_sizes(), "nihgt", gpus);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().id, ErrorId::NoSuchLabel);
    EXPECT_EQ(wrong.error().cause,
              "there is no label 'nihgt'; did you mean 'night'?; its labels are day, night");
    EXPECT_EQ(desired_gpus(two_sizes(), "", gpus).error().cause,
              "the document has 2 configs; its labels are day, night");
    Configuration single = two_sizes();
    single.configs.erase("night");
    EXPECT_TRUE(desired_gpus(single, "", gpus));
    EXPECT_EQ(chosen_label(single, ""), "day");
}

TEST(Configuration, WhatIsWantedTwiceOrOfNoGpuIsRefused) {
    Configuration twice = two_sizes();
    for (GpuSection& section : twice.configs.at("day"))
        if (!section.vfs.empty()) section.vfs.push_back(section.vfs.back());
    EXPECT_THAT(desired_gpus(twice, "day", std::vector<std::string>{"gpu0", "gpu1"}).error().cause,
                HasSubstr("is the name of two VFs of gpu"));
    EXPECT_EQ(
        desired_gpus(two_sizes(), "day", std::vector<std::string>{"a", "gpu11"}).error().cause,
        "there is no GPU 'gpu1'; did you mean 'gpu11'?");
}

TEST(Configuration, RenamingInACircleIsRefused) {
    const auto read = parse_configuration(R"({
        "profiles": {"p": {"resources": {"vram": "64MiB"}}},
        "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "a", "was": "b"},
                                                   {"profile": "p", "name": "b", "was": "a"}]}]}
    })");
    ASSERT_TRUE(read) << read.error().cause;
    const auto wanted = desired_gpus(*read, "x", std::vector<std::string>{"gpu0"});
    ASSERT_FALSE(wanted);
    EXPECT_THAT(wanted.error().cause, HasSubstr("rename one after the other"));
}

}  // namespace
}  // namespace vgpu::daemon
