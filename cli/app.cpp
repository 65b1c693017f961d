// SPDX-License-Identifier: MIT
#include "cli/app.h"

#include "cli/verbs.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>

namespace vgpu::cli {

namespace {

int number_of(ExitCode code) {
    return static_cast<int>(code);
}

std::string default_bus() {
    const char* bus = std::getenv("VGPUCTL_BUS");
    return bus != nullptr ? bus : "system";
}

std::vector<std::string> names_of(const std::vector<std::unique_ptr<Verb>>& verbs) {
    std::vector<std::string> names{"help"};
    for (const auto& verb : verbs) names.push_back(verb->name());
    return names;
}

/// The first word that is neither an option nor the argument of one.
const std::string* verb_word(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--bus") {
            ++i;
            continue;
        }
        if (!words[i].starts_with('-')) return &words[i];
    }
    return nullptr;
}

/// "help VERB" is "VERB --help", "help" is "--help".
std::vector<std::string> without_help_verb(std::vector<std::string> words) {
    const auto help = std::find(words.begin(), words.end(), "help");
    if (help == words.end() || verb_word(words) != &*help) return words;
    words.erase(help);
    words.emplace_back("--help");
    return words;
}

struct CommonOptions {
    std::string bus = default_bus();
    bool is_json = false;
};

void describe(CLI::App& app, CommonOptions& common,
              const std::vector<std::unique_ptr<Verb>>& verbs) {
    app.add_option("--bus", common.bus, "system, session or an address (env VGPUCTL_BUS)");
    app.add_flag("--json", common.is_json, "print one JSON document with a schema id");
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(
        "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not authorised,\n"
        "5 vgpud not reachable, 6 no capacity, 7 GPU or vgpu-pf lost, 8 state read-only.");
    for (const auto& verb : verbs)
        verb->describe(*app.add_subcommand(verb->name(), verb->summary()));
}

ExitCode run_verb(const CLI::App& app, const CommonOptions& common,
                  const std::vector<std::unique_ptr<Verb>>& verbs, const Connect& connect,
                  const Streams& streams) {
    try {
        const auto service = connect(common.bus);
        Invocation invocation{.service = *service,
                              .out = streams.out,
                              .output = common.is_json ? Output::Json : Output::Text,
                              .is_terminal = streams.is_terminal};
        for (const auto& verb : verbs)
            if (app.got_subcommand(verb->name())) return verb->run(invocation);
        return ExitCode::Usage;
    } catch (const ServiceError& error) {
        const bool is_unreachable = error.exit_code() == ExitCode::Unreachable;
        streams.err << "vgpuctl: " << (is_unreachable ? "vgpud does not answer on this bus: " : "")
                    << error.what() << "\n";
        return error.exit_code();
    }
}

}  // namespace

int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams) {
    const auto verbs = all_verbs();
    const auto names = names_of(verbs);
    const std::string* word = verb_word(words);
    if (word != nullptr && std::find(names.begin(), names.end(), *word) == names.end()) {
        streams.err << "vgpuctl: there is no verb '" << *word << "'" << did_you_mean(*word, names)
                    << "\nSee 'vgpuctl help'.\n";
        return number_of(ExitCode::Usage);
    }
    CLI::App app("vgpuctl shares SR-IOV GPUs between virtual machines.", "vgpuctl");
    CommonOptions common;
    describe(app, common, verbs);
    words = without_help_verb(std::move(words));
    std::reverse(words.begin(), words.end());
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        const bool is_help = error.get_exit_code() == 0;
        app.exit(error, streams.out, streams.err);
        return number_of(is_help ? ExitCode::Ok : ExitCode::Usage);
    }
    return number_of(run_verb(app, common, verbs, connect, streams));
}

}  // namespace vgpu::cli
