// SPDX-License-Identifier: MIT
//
// errors.def as a table: well-formed and documented. Each row is raised by the real vgpud in
// tests/scenario/dbus/error_paths_test.cpp.
#include "daemon/ports/result.h"

#include <gmock/gmock.h>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

namespace vgpu::daemon {
namespace {

using ::testing::EndsWith;
namespace fs = std::filesystem;

constexpr std::array kIds{
#define DAEMON_ERROR(name, number, fix) ErrorId::name,
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
};

std::string text_of_file(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

const fs::path kRoot = VGPU_SOURCE_DIR;

/// True if `word` stands in `text` and no letter or digit goes on behind it.
bool has_word(const std::string& text, const std::string& word) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if (end == text.size() || std::isalnum(static_cast<unsigned char>(text[end])) == 0)
            return true;
    }
    return false;
}

TEST(ErrorTable, NumbersRiseAndNamesAreUnique) {
    std::set<std::string_view> names;
    int last = 0;
    for (const ErrorId id : kIds) {
        const ErrorRow& row = row_of(id);
        EXPECT_EQ(row.id, id);
        EXPECT_GT(row.number, last) << row.name;
        last = row.number;
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
    }
}

TEST(ErrorTable, EveryRowSaysWhatMendsIt) {
    for (const ErrorId id : kIds) {
        const ErrorRow& row = row_of(id);
        EXPECT_THAT(std::string(row.fix), EndsWith(".")) << row.name;
        const char first = row.fix.front();
        EXPECT_TRUE(std::isupper(static_cast<unsigned char>(first)) != 0 || first == '\'' ||
                    row.fix.starts_with("vgpu"))
            << row.name << ": a sentence begins with a capital, a command or a program";
        EXPECT_EQ(text_of(Error{id, "cause"}),
                  "VGPU-" + std::to_string(row.number) + ": cause. " + std::string(row.fix));
    }
}

TEST(ErrorTable, CausesAreUtf8WhateverTheyQuote) {
    EXPECT_EQ(as_utf8("plain \"text\"\n"), "plain \"text\"\n");
    EXPECT_EQ(as_utf8("caf\u00e9 \U0001f600"), "caf\u00e9 \U0001f600");
    EXPECT_EQ(as_utf8("cut \xc3"), "cut \ufffd");
    EXPECT_EQ(as_utf8("latin \xe9t\xe9"), "latin \ufffdt\ufffd");
    EXPECT_EQ(as_utf8("surrogate \xed\xa0\x80").find('\xed'), std::string::npos);
    EXPECT_EQ(fail(ErrorId::System, "\xff").value().cause, "\ufffd");
}

TEST(ErrorTable, EveryRowIsInTheDocument) {
    const std::string document = text_of_file(kRoot / "docs/dbus-api.md");
    for (const ErrorId id : kIds)
        EXPECT_TRUE(has_word(document, std::string(row_of(id).name))) << row_of(id).name;
}

}  // namespace
}  // namespace vgpu::daemon
