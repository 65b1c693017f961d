// SPDX-License-Identifier: MIT
#include "text/size.h"

#include <gtest/gtest.h>
#include <random>

namespace vgpu::text {
namespace {

TEST(Size, IsReadWithEveryUnitInEverySpelling) {
    for (const char* text : {"256M", "256MiB", "256 MiB", "256 M", "268435456", "268435456B",
                             "268435456 B", "268435456 bytes", "262144K", "262144 KiB"})
        EXPECT_EQ(parse_size(text), 256u << 20) << text;
    EXPECT_EQ(parse_size("1G"), 1u << 30);
    EXPECT_EQ(parse_size("3 TiB"), 3ull << 40);
    EXPECT_EQ(parse_size("12345678901G"), 12345678901ull << 30);
    EXPECT_EQ(parse_size("0"), 0u);
}

TEST(Size, IsNothingElse) {
    for (const char* text :
         {"", "M", "-1M", "+1M", "1.5G", "1m", "1 mib", "256  MiB", "256 ", " 256", "256 MiB ",
          "256MB", "1P", "99999999999999999999", "18446744073709551615K", "0x10"})
        EXPECT_FALSE(parse_size(text)) << "'" << text << "'";
}

TEST(Size, IsPrintedExactlyOrToATenthOfAUnit) {
    EXPECT_EQ(size_text(0), "0 B");
    EXPECT_EQ(size_text(100), "100 B");
    EXPECT_EQ(size_text(1536), "1536 B");
    EXPECT_EQ(size_text(2560), "2.5 KiB");
    EXPECT_EQ(size_text(128u << 20), "128 MiB");
    EXPECT_EQ(size_text((5ull << 29) + 1), "2.5 GiB");
    EXPECT_EQ(size_text(1ull << 40), "1 TiB");
}

TEST(Size, WhatIsPrintedExactlyIsReadAgain) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t bytes = (random() >> 44) << (10 * (random() % 4));
        const std::string printed = size_text(bytes);
        if (printed.find('.') == std::string::npos) {
            EXPECT_EQ(parse_size(printed), bytes) << printed;
        }
        EXPECT_EQ(parse_size(exact_size_text(bytes)), bytes) << exact_size_text(bytes);
    }
}

}  // namespace
}  // namespace vgpu::text
