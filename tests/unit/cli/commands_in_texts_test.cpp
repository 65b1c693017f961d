// SPDX-License-Identifier: MIT
//
// Every command line of vgpuctl that a document, an error or a help text shows is one that vgpuctl
// takes: placeholders are filled in, nothing is run.
#include "cli/app.h"
#include "cli/verbs.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace vgpu::cli {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = VGPU_SOURCE_DIR;

using Typed = std::vector<std::string>;

/// A command as somebody would type it, and where it stands.
struct Shown {
    std::string place;
    std::string words;  ///< behind "vgpuctl"
};

std::vector<fs::path> files_below(const std::string& folder, const std::string& extension) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
        if (entry.path().extension() == extension) files.push_back(entry.path());
    return files;
}

/// What `pattern` finds outside of comments, of commands that are not shown for their failing; its
/// first group is what stands behind "vgpuctl".
void add_defined(const fs::path& file, const std::regex& pattern, std::vector<Shown>& shown) {
    std::ifstream stream(file);
    int number = 0;
    for (std::string line; std::getline(stream, line);) {
        ++number;
        const bool is_comment = line.find_first_not_of(' ') == line.find("//");
        if (is_comment || line.find("echo $?") != std::string::npos) continue;
        for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at)
            shown.push_back({file.lexically_relative(kRoot).string() + ":" + std::to_string(number),
                             (*at)[1].str()});
    }
}

/// In the place of "{0}", "DOMAIN" and "$GPU" stands a 1, which is a number, a file and a name.
Typed typed(std::string words) {
    words = std::regex_replace(words, std::regex("\\{[^}]*\\}|\\$\\{?\\w+\\}?"), "1");
    words = words.substr(0, words.find_first_of("|<>;&#"));
    Typed all;
    std::istringstream stream(words);
    for (std::string word; stream >> word;) {
        std::erase_if(word, [](char letter) { return letter == '"' || letter == '\''; });
        if (word == "\\" || word == "…" || word == "...") continue;
        if (word == "VERB") word = "list";
        all.push_back(std::regex_replace(word, std::regex("^[A-Z][A-Z-]*$"), "1"));
    }
    return all;
}

/// A verb alone is also its name: "see `vgpuctl trace`".
bool is_name(const Typed& words) {
    static const auto verbs = all_verbs();
    return words.size() == 1 && std::ranges::any_of(verbs, [&words](const auto& verb) {
               return verb->name() == words.front();
           });
}

/// Each command once: that costs a parser.
void expect_taken(const std::vector<Shown>& shown, bool (*is_passed_over)(const Typed&)) {
    std::map<Typed, std::string> commands;
    for (const Shown& one : shown) commands.emplace(typed(one.words), one.place);
    for (const auto& [words, place] : commands) {
        if (words.empty() || is_passed_over(words)) continue;
        EXPECT_EQ(wrong_usage(words), "") << place << ": " << ::testing::PrintToString(words);
    }
}

TEST(CommandsInTexts, OfDocumentsAreTaken) {
    std::vector<Shown> shown;
    auto files = files_below("docs", ".md");
    files.push_back(kRoot / "README.md");
    for (const fs::path& file : files) {
        if (file.filename() == "changelog.md") continue;
        add_defined(file, std::regex("`vgpuctl ([^`]+)`"), shown);
        add_defined(file, std::regex("^\\$ (?:sudo )?vgpuctl (.+)$"), shown);
    }
    EXPECT_GE(shown.size(), 50u);
    expect_taken(shown, is_name);
}

TEST(CommandsInTexts, OfErrorsAndAdviceAreTaken) {
    std::vector<Shown> shown;
    for (const char* folder : {"cli", "daemon"})
        for (const char* extension : {".cpp", ".def"})
            for (const fs::path& file : files_below(folder, extension))
                add_defined(file, std::regex("'vgpuctl ([^'\"]+)'"), shown);
    EXPECT_GE(shown.size(), 20u);
    expect_taken(shown, [](const Typed&) { return false; });
}

TEST(CommandsInTexts, OfTheManualPageAreTaken) {
    std::string page = make_document(Document::ManualPage);
    page = std::regex_replace(page, std::regex("\\\\-"), "-");
    const std::regex command("\nExample: vgpuctl (.+)");
    int checked = 0;
    for (std::sregex_iterator at(page.begin(), page.end(), command), end; at != end; ++at) {
        EXPECT_EQ(wrong_usage(typed((*at)[1].str())), "") << (*at)[0];
        ++checked;
    }
    EXPECT_GE(checked, 20);
}

}  // namespace
}  // namespace vgpu::cli
