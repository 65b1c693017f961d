// SPDX-License-Identifier: MIT
#include "text/json_document.h"

#include <gtest/gtest.h>

namespace vgpu::text {
namespace {

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonDocument, OfTheDepthThatIsAllowedIsRead) {
    EXPECT_TRUE(read_json(nested(kMaxNested)));
    EXPECT_TRUE(read_json("[" + std::string(100'000, ' ') + "]"));
}

TEST(JsonDocument, ThatIsDeeperIsRefusedWithThePlace) {
    const auto refused = read_json("{\n  \"a\": " + nested(60'000) + "}");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "line 2, column 71: lists and objects are nested more than 64 deep");
}

TEST(JsonDocument, BracketsInTextsAndCommentsDoNotCount) {
    const std::string many(100, '{');
    EXPECT_TRUE(read_json("[\"" + many + "\\\"" + many + "\"]"));
    EXPECT_TRUE(read_json("// " + many + "\n/* " + many + " */ [1]", Comments::Allowed));
    EXPECT_FALSE(read_json("// " + many + "\n[1]"));
}

TEST(JsonDocument, WhatIsNoneIsRefusedInTheParsersWords) {
    const auto refused = read_json("{\"a\": }");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().find("line 1, column 7"), std::string::npos) << refused.error();
    EXPECT_FALSE(read_json(""));
    EXPECT_FALSE(read_json("\"\\"));
}

}  // namespace
}  // namespace vgpu::text
