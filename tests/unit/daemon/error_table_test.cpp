// SPDX-License-Identifier: MIT
//
// errors.def as a table: well-formed, documented, and each row raised by a test. What raises a row
// is found in the sources of the tests: a test that expects it by its id, its D-Bus name or its
// number.
#include "daemon/ports/result.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

namespace vgpu::daemon {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
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

/// Sources of tests in which vgpud's errors are expected.
std::vector<std::string> test_sources() {
    std::vector<std::string> sources;
    for (const char* folder : {"tests/unit/daemon", "tests/scenario/dbus", "tests/unit/cli"})
        for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
            if (entry.path().string().ends_with("_test.cpp") &&
                entry.path().filename() != "error_table_test.cpp")
                sources.push_back(text_of_file(entry.path()));
    return sources;
}

/// True if `word` stands in `text` and no letter or digit goes on behind it.
bool has_word(const std::string& text, const std::string& word) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if (end == text.size() || std::isalnum(static_cast<unsigned char>(text[end])) == 0)
            return true;
    }
    return false;
}

/// Lines in which a test expects the error of `row`, without the functions that only make one.
bool is_expected_in(const std::string& source, const ErrorRow& row) {
    const std::string name(row.name);
    const std::array<std::string, 4> words{"ErrorId::" + name, "Error." + name,
                                           "VGPU-" + std::to_string(row.number),
                                           "\"" + name + "\""};
    std::size_t at = 0;
    while (at < source.size()) {
        const std::size_t end = std::min(source.find('\n', at), source.size());
        const std::string line = source.substr(at, end - at);
        at = end + 1;
        if (line.find("return fail(") != std::string::npos) continue;
        for (const std::string& word : words)
            if (has_word(line, word)) return true;
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

TEST(ErrorTable, EveryRowIsInTheDocument) {
    const std::string document = text_of_file(kRoot / "docs/dbus-api.md");
    for (const ErrorId id : kIds)
        EXPECT_TRUE(has_word(document, std::string(row_of(id).name))) << row_of(id).name;
}

TEST(ErrorTable, EveryRowIsRaisedByATest) {
    const std::vector<std::string> sources = test_sources();
    ASSERT_GE(sources.size(), 15u);
    for (const ErrorId id : kIds) {
        const ErrorRow& row = row_of(id);
        const bool is_expected =
            std::any_of(sources.begin(), sources.end(),
                        [&row](const std::string& source) { return is_expected_in(source, row); });
        EXPECT_TRUE(is_expected) << row.name << ": no test expects it; write one that raises it";
    }
}

TEST(ErrorTable, ANameThatNobodyRaisesIsFound) {
    const ErrorRow nobody{.id = ErrorId::System, .number = 99999, .name = "NoSuchRow", .fix = "."};
    for (const std::string& source : test_sources()) EXPECT_FALSE(is_expected_in(source, nobody));
}

}  // namespace
}  // namespace vgpu::daemon
