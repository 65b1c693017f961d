// SPDX-License-Identifier: MIT
#include "cli/app.h"

#include "cli/format.h"
#include "cli/interruption.h"
#include "cli/number_options.h"
#include "cli/pages.h"
#include "cli/verbs.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

namespace vgpu::cli {

namespace {

int number_of(ExitCode code) {
    return static_cast<int>(code);
}

/// The default of --bus. The environment variable VGPUCTL_BUS may set it, for test buses.
std::string default_bus() {
    const char* bus = std::getenv("VGPUCTL_BUS");
    return bus != nullptr ? bus : "system";
}

/// The words that a user may write in the place of a verb. "help" is not a verb, but vgpuctl
/// replaces it by --help before CLI11 sees it.
std::vector<std::string> names_of(const std::vector<std::unique_ptr<Verb>>& verbs) {
    std::vector<std::string> names{"help"};
    for (const auto& verb : verbs) names.push_back(verb->name());
    return names;
}

/// "; did you mean 'list'?" or "".
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
    return did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()));
}

/// The first word that is not an option and not the value of a common option (--bus, --timeout);
/// null if there is none.
const std::string* verb_word(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--bus" || words[i] == "--timeout") {
            ++i;
            continue;
        }
        if (!words[i].starts_with('-')) return &words[i];
    }
    return nullptr;
}

/// Replaces "help VERB" by "VERB --help", and "help" by "--help".
std::vector<std::string> without_help_verb(std::vector<std::string> words) {
    const auto help = std::find(words.begin(), words.end(), "help");
    if (help == words.end() || verb_word(words) != &*help) return words;
    words.erase(help);
    words.emplace_back("--help");
    return words;
}

/// Quotes a word as valid UTF-8: "caf\ufffd" for "caf\xe9".
std::string quoted(const std::string& word) {
    return nlohmann::json(text::as_utf8(word)).dump();
}

bool has_json_flag(const std::vector<std::string>& words) {
    const auto options_end = std::find(words.begin(), words.end(), "--");
    return std::find(words.begin(), options_end, "--json") != options_end;
}

/// Reports a failure: writes a message and, with --json, a document. Returns the exit status.
int fail(const Streams& streams, bool is_json, const ServiceError& error,
         const std::string& hint = "") {
    streams.err << "vgpuctl: " << error.what() << "\n" << hint;
    if (is_json) streams.out << error_document(error);
    return number_of(error.exit_code());
}

ServiceError usage_error(const std::string& what) {
    return {"vgpuctl.WrongUsage", what};
}

/// The error text if a word is wrong for every verb; else "". An empty word or an empty value after
/// '=' is wrong, because it usually comes from a shell variable that is not set. CLI11 2.1 would
/// ignore an empty word, and would take the word after "--option=" as the value.
std::string word_error(const std::vector<std::string>& words) {
    for (const std::string& word : words)
        if (!wrong_in_utf8(word).empty())
            return fmt::format("argument {} is not UTF-8 text", quoted(word));
    for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
        if (words[i].starts_with("--") && words[i].find('=') == words[i].size() - 1)
            return fmt::format("'{}' has no value; is a variable not set?", words[i]);
        if (words[i].empty())
            return fmt::format("the argument after '{}' is empty; is a variable not set?",
                               i == 0 ? "vgpuctl" : words[i - 1]);
    }
    return "";
}

/// The verbs and their parser. Common options may come before or after the verb.
struct CommandLine {
    CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    const std::vector<std::unique_ptr<Verb>> verbs = all_verbs();
    CLI::App app{"vgpuctl shares SR-IOV GPUs between virtual machines.", "vgpuctl"};
    std::string bus = default_bus();
    bool is_json = false;
    std::optional<unsigned> timeout_s;
};

CommandLine::CommandLine() {
    // in the order of Group; CLI11 hides verbs whose group is ""
    constexpr std::array kGroups{"State",    "VFs", "Configurations", "Guests", "libvirt",
                                 "Diagnose", ""};
    app.formatter_fn([](const CLI::App* page, const std::string&, CLI::AppFormatMode) {
        return help_page(*page);
    });
    app.set_help_flag("-h,--help", "show how to use vgpuctl or a verb");
    app.add_option("--bus", bus, "system, session or an address (env VGPUCTL_BUS)");
    app.add_flag("--json", is_json, "print a JSON document with a schema id, also on errors");
    app.add_option("--timeout", timeout_s, "longest wait for an answer of vgpud or for a job")
        ->type_name("SECONDS")
        ->transform(whole_within(1, 600));
    app.set_version_flag("--version", "vgpuctl " VGPU_VERSION)->description("show the version");
    app.require_subcommand(1);
    // with fallthrough(), a common option such as --json may follow the verb
    app.fallthrough();
    for (const auto& verb : verbs) {
        const About& about = verb->about();
        CLI::App& command = *app.add_subcommand(about.name, about.summary);
        verb->describe(command);
        const std::string remark = command.get_footer();
        command.group(kGroups.at(static_cast<std::size_t>(about.group)))
            ->footer(fmt::format("Example: vgpuctl {}{}{}", about.example,
                                 remark.empty() ? "" : "\n\n", remark));
    }
}

int run_verb(const CommandLine& line, const Connect& connect, const Streams& streams) {
    const auto connected = [&connect, &line] {
        auto service = connect(line.bus);
        if (line.timeout_s) service->limit_calls(std::chrono::seconds(*line.timeout_s));
        return service;
    };
    const VerbContext context{.connect = connected,
                              .out = streams.out,
                              .err = streams.err,
                              .is_json = line.is_json,
                              .is_terminal = streams.is_terminal,
                              .uses_colour = streams.uses_colour,
                              .columns = std::min(streams.columns, kColumns)};
    const CLI::App* command = line.app.get_subcommands().front();
    const auto verb =
        std::find_if(line.verbs.begin(), line.verbs.end(),
                     [command](const auto& known) { return known->name() == command->get_name(); });
    try {
        return number_of((*verb)->start(context));
    } catch (const ServiceError& error) {
        if (error.exit_code() != ExitCode::Unreachable) return fail(streams, line.is_json, error);
        const std::string what = std::string("vgpud does not answer on this bus: ") + error.what();
        return fail(streams, line.is_json, {error.name(), what});
    }
}

/// The error text for an unknown option, which suggests the most similar known option; "" if all
/// options are known.
std::string unknown_option(const CLI::App& app, const std::vector<std::string>& words) {
    const std::string* verb = verb_word(words);
    std::vector<std::string> known;
    const auto add = [&known](const CLI::App& command) {
        for (const CLI::Option* option : command.get_options())
            for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    };
    add(app);
    for (const CLI::App* command : app.get_subcommands({}))
        if (verb != nullptr && command->get_name() == *verb) add(*command);
    for (const std::string& word : words) {
        const std::string name = word.substr(0, word.find('='));
        if (!name.starts_with("--") || name.size() == 2) continue;
        if (std::find(known.begin(), known.end(), name) == known.end())
            return fmt::format("there is no option '{}'{}", name, suggestion(name, known));
    }
    return "";
}

/// Reports that CLI11 refused the words. Returns the exit status.
int refuse(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
           const Streams& streams) {
    const std::string* verb = verb_word(words);
    std::string what = unknown_option(app, words);
    if (what.empty())
        what =
            verb == nullptr && error.get_name() == "RequiredError" ? "name a verb" : error.what();
    return fail(streams, has_json_flag(words), usage_error(what),
                "See 'vgpuctl help" + (verb != nullptr ? " " + *verb : "") + "'.\n");
}

/// The document that the hidden option --manual or --completion requests, for the build and the
/// packages; none for any other words.
std::optional<Document> requested_document(const std::vector<std::string>& words) {
    if (words == std::vector<std::string>{"--manual"}) return Document::ManualPage;
    if (words == std::vector<std::string>{"--completion", "bash"}) return Document::BashCompletion;
    if (words == std::vector<std::string>{"--completion", "zsh"}) return Document::ZshCompletion;
    return {};
}

/// Parses `words` into `line`. After help or an error, returns the exit status; none if the caller
/// must run the verb.
std::optional<int> parse_words(CommandLine& line, std::vector<std::string> words,
                               const Streams& streams) {
    const bool is_json = has_json_flag(words);
    if (const std::string complaint = word_error(words); !complaint.empty())
        return fail(streams, is_json, usage_error(complaint));
    const std::vector<std::string> given = without_help_verb(std::move(words));
    const auto names = names_of(line.verbs);
    const std::string* word = verb_word(given);
    if (word != nullptr && std::find(names.begin(), names.end(), *word) == names.end())
        return fail(
            streams, is_json,
            usage_error(fmt::format("there is no verb '{}'{}", *word, suggestion(*word, names))),
            "See 'vgpuctl help'.\n");
    // CLI11 expects reverse order
    std::vector<std::string> reversed(given.rbegin(), given.rend());
    try {
        line.app.parse(reversed);
        return {};
    } catch (const CLI::ParseError& error) {
        // help is a ParseError with exit code 0
        if (error.get_exit_code() != 0) return refuse(line.app, error, given, streams);
        return line.app.exit(error, streams.out, streams.err);
    }
}

int run_words(std::vector<std::string> words, const Connect& connect, const Streams& streams) {
    if (const auto document = requested_document(words)) {
        streams.out << make_document(*document);
        return number_of(ExitCode::Ok);
    }
    CommandLine line;
    if (const auto ended = parse_words(line, std::move(words), streams)) return *ended;
    return run_verb(line, connect, streams);
}

}  // namespace

std::string make_document(Document document) {
    const CommandLine line;
    if (document == Document::ManualPage) return man_page(line.app);
    return document == Document::BashCompletion ? bash_completion(line.app)
                                                : zsh_completion(line.app);
}

std::string wrong_usage(std::vector<std::string> words) {
    if (requested_document(words)) return "";
    CommandLine line;
    std::ostringstream out, err;
    const auto ended = parse_words(line, std::move(words), {.out = out, .err = err});
    return ended.value_or(0) == 0 ? "" : err.str();
}

/// A failed write, as on a full disk, is an error. A closed pipe is not.
int run_cli(std::vector<std::string> words, const Connect& connect, const Streams& streams) {
    const int status = run_words(std::move(words), connect, streams);
    errno = 0;
    streams.out.flush();
    const int reason = errno;  // 0 if an earlier write failed
    if (streams.out || is_reader_gone()) return status;
    streams.err << "vgpuctl: cannot write the output"
                << (reason != 0 ? fmt::format(": {}", std::strerror(reason)) : "") << "\n";
    return status == number_of(ExitCode::Ok) ? number_of(ExitCode::Failed) : status;
}

}  // namespace vgpu::cli
