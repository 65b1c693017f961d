// SPDX-License-Identifier: MIT
//
// Completion scripts and manual page against what --help shows, and the bash script at work, with
// a vgpuctl of the test in PATH.
#include "cli/verbs.h"
#include "tests/unit/cli/cli_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <utility>

namespace vgpu::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

class HelpPages : public testing::Cli {
protected:
    /// Names of the verbs in the help.
    Words verbs() {
        EXPECT_EQ(run({"help"}), 0);
        const std::string text = out.str();
        Words names;
        const std::regex line("\n  ([a-z][a-z-]*)  +\\S");
        const std::string list = text.substr(0, text.find("\nOptions of all verbs:"));
        for (std::sregex_iterator at(list.begin(), list.end(), line), end; at != end; ++at)
            names.push_back((*at)[1]);
        return names;
    }
    /// Options in the help of `words`.
    std::set<std::string> options(const Words& words) {
        EXPECT_EQ(run(words), 0);
        const std::string text = out.str();
        std::set<std::string> names;
        const std::regex option("\n  (?:-[a-zA-Z], )?(--[a-z][a-z-]*)");
        for (std::sregex_iterator at(text.begin(), text.end(), option), end; at != end; ++at)
            names.insert((*at)[1]);
        return names;
    }
    static bool has(const std::string& text, const std::string& option) {
        return std::regex_search(text, std::regex(option + "(?![a-z-])"));
    }
};

TEST_F(HelpPages, EveryVerbAndOptionOfHelpIsInBothScriptsAndInTheManualPage) {
    const std::string bash = make_document(Document::BashCompletion);
    const std::string zsh = make_document(Document::ZshCompletion);
    std::string page = make_document(Document::ManualPage);
    page = std::regex_replace(page, std::regex("\\\\-"), "-");
    const Words names = verbs();
    EXPECT_THAT(names, IsSupersetOf({"list", "create", "events", "doctor", "report", "metrics"}));
    int checked = 0;
    for (const std::string& name : names) {
        EXPECT_THAT(bash, HasSubstr("\n        " + name + ") words="));
        EXPECT_THAT(zsh, HasSubstr("\n        " + name + ") _arguments"));
        const std::size_t section = page.find(".SS " + name + "\n");
        ASSERT_NE(section, std::string::npos) << name;
        const std::string own = page.substr(section, page.find(".SS ", section + 1) - section);
        for (const std::string& option : options({"help", name})) {
            EXPECT_TRUE(has(bash, option)) << option;
            EXPECT_TRUE(has(zsh, option)) << option;
            EXPECT_TRUE(has(own, option)) << name << " " << option;
            ++checked;
        }
    }
    EXPECT_GT(checked, 40);
    for (const std::string& option : options({"help"}))
        EXPECT_TRUE(has(bash, option) && has(zsh, option) && has(page, option)) << option;
}

TEST_F(HelpPages, EveryExitCodeIsInHelpAndInTheManualPage) {
    EXPECT_EQ(run({"help"}), 0);
    const std::string page = make_document(Document::ManualPage);
    for (const char* words : {"0 ok", "5 vgpud not", "8 state read-only, 130"})
        EXPECT_THAT(out.str(), HasSubstr(words));
    EXPECT_THAT(page, HasSubstr(".TP\n5\nvgpud not reachable\n"));
    EXPECT_THAT(page, HasSubstr(".TP\n8\nstate read\\-only\n"));
}

TEST_F(HelpPages, HiddenOptionsAndVerbsAreNowhere) {
    for (const Document document :
         {Document::BashCompletion, Document::ZshCompletion, Document::ManualPage})
        EXPECT_THAT(make_document(document), Not(AnyOf(HasSubstr("pci-dump"), HasSubstr("hook"))));
    EXPECT_THAT(verbs(), Not(Contains("hook")));
    EXPECT_EQ(run({"help", "hook"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("Usage: vgpuctl hook GUEST OP [SUBOP] [EXTRA]\n"));
}

TEST_F(HelpPages, EachVerbSaysWhatItDoesAndShowsOneCommandThatIsTaken) {
    for (const auto& verb : all_verbs()) {
        EXPECT_EQ(run({"help", verb->name()}), 0);
        const std::string text = out.str(), sentence = text.substr(0, text.find('\n'));
        expect_80_columns();
        EXPECT_TRUE(std::isupper(sentence.front()) != 0 && sentence.back() == '.') << sentence;
        EXPECT_EQ(text.find("\n\nUsage: vgpuctl " + verb->name()), sentence.size());
        const std::string example = verb->about().example;
        EXPECT_THAT(text, HasSubstr("\nExample: vgpuctl " + example + "\n\n"));
        std::istringstream stream(example);
        const Words words(std::istream_iterator<std::string>(stream), {});
        EXPECT_EQ(words.front(), verb->name());
        EXPECT_EQ(wrong_usage(words), "");
        for (const char* noise : {" TEXT ", " UINT", " FLOAT", "REQUIRED", "Excludes", "Needs",
                                  "  --bus", "  --json", "  --timeout ", "--help"})
            EXPECT_THAT(text, Not(HasSubstr(noise))) << verb->name();
    }
}

TEST_F(HelpPages, OptionsThatAreRequiredStandInTheUsage) {
    EXPECT_EQ(run({"claim", "-h"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("Usage: vgpuctl claim TARGET --owner OWNER [OPTIONS]\n"));
    EXPECT_EQ(run({"help", "trace"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("--format chrome|svg|scenario"));
    EXPECT_EQ(run({"help", "top"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("time between refreshes (100..60000, default 1000)"));
}

TEST_F(HelpPages, AMistypedOptionIsGuessed) {
    EXPECT_EQ(run({"set", "gpu0/vf1", "--wieght", "7"}), 2);
    EXPECT_EQ(err.str(),
              "vgpuctl: there is no option '--wieght'; did you mean '--weight'?\n"
              "See 'vgpuctl help set'.\n");
    EXPECT_EQ(run({"list", "--frobnicate=3"}), 2);
    EXPECT_EQ(err.str(), "vgpuctl: there is no option '--frobnicate'\nSee 'vgpuctl help list'.\n");
}

TEST_F(HelpPages, TargetsAreListedOneALine) {
    EXPECT_EQ(run({"list", "--targets"}), 0);
    EXPECT_THAT(out.str(), HasSubstr("gpu0\ngpu1\ngpu0/vf1\ntrain\ngpu0/vf2\n"));
    const std::string all = std::exchange(out, {}).str();
    EXPECT_EQ(run({"list", "--targets", "-o", "VF"}), 0);
    EXPECT_EQ(out.str(), all) << "whatever the columns of a table";
}

/// Output of a shell command.
std::string output_of(const std::string& command) {
    const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
    const std::unique_ptr<std::FILE, decltype(close)> pipe(::popen(command.c_str(), "r"), close);
    std::string text;
    for (int letter = 0; pipe && (letter = std::fgetc(pipe.get())) != EOF;)
        text += static_cast<char>(letter);
    return text;
}

class Bash : public ::testing::Test {
protected:
    Bash() {
        std::string pattern = fs::temp_directory_path() / "vgpu-bash-XXXXXX";
        directory = ::mkdtemp(pattern.data());
        std::ofstream(directory / "script") << make_document(Document::BashCompletion);
        be_vgpuctl("echo \"$@\" >>\"$0.log\"; printf 'gpu0\\ngpu0/vf1\\ntrain\\n'");
    }
    ~Bash() override { fs::remove_all(directory); }

    /// What the completion calls.
    void be_vgpuctl(const std::string& body) const {
        const fs::path program = directory / "vgpuctl";
        std::ofstream(program) << "#!/bin/sh\n" << body << "\n";
        fs::permissions(program, fs::perms(0755));
    }
    /// What is offered for the last of `words`.
    [[nodiscard]] Words offered(const std::string& words, int count) const {
        const std::string text = output_of(fmt::format(
            "PATH={0}:$PATH bash -c 'source {0}/script; COMP_WORDS=({1}); COMP_CWORD={2}; "
            "_vgpuctl; printf \"%s\\n\" \"${{COMPREPLY[@]}}\"' 2>&1",
            directory.string(), words, count - 1));
        Words all;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            if (!line.empty()) all.push_back(line);
        return all;
    }
    [[nodiscard]] std::string asked() const {
        std::ifstream file(directory / "vgpuctl.log");
        return {std::istreambuf_iterator<char>(file), {}};
    }

    fs::path directory;
};

TEST_F(Bash, OffersVerbsByTheirBeginning) {
    EXPECT_THAT(offered("vgpuctl re", 2), IsSupersetOf({"reset", "resume", "report"}));
    EXPECT_THAT(offered("vgpuctl doc", 2), UnorderedElementsAre("doctor"));
    EXPECT_THAT(offered("vgpuctl help doc", 3), UnorderedElementsAre("doctor"));
    EXPECT_THAT(asked(), IsEmpty()) << "nobody has to be asked for verbs";
}

TEST_F(Bash, OffersTheOptionsOfTheVerb) {
    EXPECT_THAT(offered("vgpuctl create --vr", 3), UnorderedElementsAre("--vram"));
    EXPECT_THAT(offered("vgpuctl --json list --g", 4), UnorderedElementsAre("--gpus"));
    EXPECT_THAT(offered("vgpuctl --timeout 5 list --g", 5), UnorderedElementsAre("--gpus"));
    EXPECT_THAT(offered("vgpuctl --b", 2), UnorderedElementsAre("--bus"));
    EXPECT_THAT(offered("vgpuctl --v", 2), UnorderedElementsAre("--version"));
}

TEST_F(Bash, OffersTargetsOfTheBusInUse) {
    EXPECT_THAT(offered("vgpuctl show \"\"", 3), UnorderedElementsAre("gpu0", "gpu0/vf1", "train"));
    EXPECT_THAT(offered("vgpuctl --bus session pause t", 5), UnorderedElementsAre("train"));
    EXPECT_EQ(asked(), "list --targets\n--bus session list --targets\n");
}

TEST_F(Bash, AfterAnOptionWithAValueOffersNoOptions) {
    EXPECT_THAT(offered("vgpuctl create --weight \"\"", 4), IsEmpty());
    EXPECT_THAT(offered("vgpuctl create --gpu gpu", 4), UnorderedElementsAre("gpu0", "gpu0/vf1"));
}

TEST_F(Bash, OffersWhatAChoiceIsAmong) {
    EXPECT_THAT(offered("vgpuctl trace re", 3), UnorderedElementsAre("record", "replay"));
    EXPECT_THAT(offered("vgpuctl trace export x --format s", 6),
                UnorderedElementsAre("svg", "scenario"));
    const std::string file = (directory / "script").string();
    EXPECT_THAT(offered("vgpuctl trace show " + file.substr(0, file.size() - 2), 4),
                UnorderedElementsAre(file));
}

TEST_F(Bash, IsQuietAndQuickWithoutVgpud) {
    be_vgpuctl("echo 'vgpuctl: vgpud does not answer on this bus' >&2; exit 5");
    EXPECT_THAT(offered("vgpuctl show \"\"", 3), IsEmpty());
    be_vgpuctl("exec sleep 60");
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT(offered("vgpuctl show \"\"", 3), IsEmpty());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Zsh, TheScriptParses) {
    if (output_of("command -v zsh").empty()) GTEST_SKIP() << "zsh is not installed";
    std::string file = fs::temp_directory_path() / "vgpu-zsh-XXXXXX";
    ASSERT_GE(::mkstemp(file.data()), 0);
    std::ofstream(file) << make_document(Document::ZshCompletion);
    EXPECT_EQ(output_of("zsh -n " + file + " 2>&1; echo $?"), "0\n");
    fs::remove(file);
}

TEST(Man, ThePageFormatsWithoutAWarning) {
    if (output_of("command -v man").empty()) GTEST_SKIP() << "man is not installed";
    std::string file = fs::temp_directory_path() / "vgpu-man-XXXXXX";
    ASSERT_GE(::mkstemp(file.data()), 0);
    std::ofstream(file) << make_document(Document::ManualPage);
    EXPECT_EQ(
        output_of("LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z " +
                  file + " 2>&1 >/dev/null"),
        "");
    fs::remove(file);
}

}  // namespace
}  // namespace vgpu::cli
