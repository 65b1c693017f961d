// SPDX-License-Identifier: MIT
#include "text/utf8.h"

#include <gtest/gtest.h>
#include <random>

namespace vgpu::text {
namespace {

TEST(Utf8, LettersOfAllLanguagesArePrintable) {
    for (const char* name :
         {"Büro 1", "数据库服务器", "Сервер", "שרת", "जाँच", "naïve e\u0301", "🚀"})
        EXPECT_EQ(printable(name), name);
}

TEST(Utf8, WhatTellsATerminalSomethingIsReplaced) {
    EXPECT_EQ(printable("a\x1b[2Jb\x7f\r\n"), "a?[2Jb???");
    EXPECT_EQ(printable("a\u009b2J"), "a?2J") << "C1";
    EXPECT_EQ(printable("a\u202eb\u2066c\u200f"), "a?b?c?") << "directions";
    EXPECT_EQ(printable("a\u2028b\ufeff"), "a?b?");
    EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

TEST(Utf8, ABrokenByteIsReplacedAndTheRestStays) {
    EXPECT_EQ(printable("caf\xe9"), "caf?");
    EXPECT_EQ(printable("\xc0\xaf|\xed\xa0\x80|\xf5\x80|\xe6\x95"), "??|???|??|??")
        << "overlong, surrogate, too large, cut";
    EXPECT_EQ(as_utf8("caf\xe9 é"), "caf\ufffd é");
    EXPECT_EQ(wrong_in_utf8("é\xff"), "byte 3 (0xff) belongs to no character");
    EXPECT_EQ(wrong_in_utf8("é"), "");
}

TEST(Utf8, NothingThatComesOutIsBroken) {
    std::mt19937 random(1);
    for (int i = 0; i < 2000; ++i) {
        std::string text(random() % 20, '\0');
        for (char& letter : text) letter = static_cast<char>(random());
        EXPECT_EQ(wrong_in_utf8(as_utf8(text)), "");
        const std::string shown = printable(text);
        EXPECT_EQ(wrong_in_utf8(shown), "");
        EXPECT_EQ(printable(shown), shown);
    }
}

TEST(Utf8, WidthsAreThoseOfATerminal) {
    EXPECT_EQ(width_of("Büro 1"), 6u);
    EXPECT_EQ(width_of("数据库服务器"), 12u);
    EXPECT_EQ(width_of("e\u0301"), 1u) << "a mark stands on its letter";
    EXPECT_EQ(width_of("🚀"), 2u);
    EXPECT_EQ(width_of(""), 0u);
}

TEST(Utf8, CutsBetweenCharacters) {
    EXPECT_EQ(fitting("数据库", 5), "数据");
    EXPECT_EQ(fitting("数据库", 6), "数据库");
    EXPECT_EQ(fitting("ae\u0301b", 2), "ae\u0301") << "with the mark";
    EXPECT_EQ(fitting("abc", 0), "");
    EXPECT_EQ(start_of("é", 1), "");
    EXPECT_EQ(start_of("éa", 2), "é");
}

}  // namespace
}  // namespace vgpu::text
