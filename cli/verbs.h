// SPDX-License-Identifier: MIT
//
// Verb is the interface of vgpuctl's verbs. Each verb has one file with its options, its work and
// its output. Output goes to the given stream, as text or (--json) as one JSON document with a
// schema id. This is the only list of all verbs; run_cli() in app.cpp is the only caller.
#pragma once

#include "cli/format.h"
#include "cli/service.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace vgpu::cli {

/// Arguments of Verb::start(), before vgpud is connected.
/// References must outlive Verb::start(), which keeps none.
struct Setting {
    /// Throws ServiceError if there is no such bus.
    std::function<std::unique_ptr<Service>()> connect;
    std::ostream& out;
    std::ostream& err;         ///< for warnings and progress, not for results
    bool is_json = false;      ///< for scripts: results are documents that name their schema
    bool is_terminal = false;  ///< `out` is a terminal
    bool uses_colour = false;
    std::size_t columns = kColumns;  ///< of the terminal, kColumns at most

    /// Prints a result: `text`, or with --json the document.
    void print(std::string_view schema, nlohmann::ordered_json members,
               const std::string& text) const;
};

/// Arguments of Verb::run(), with vgpud connected; references are valid during run().
struct Invocation : Setting {
    Service& service;
};

/// Sections of --help, in their order; it does not show the last one.
enum class Group { Look, Vfs, Configurations, Guests, Libvirt, Diagnose, Hidden };

/// Facts of a verb for --help, the manual page and completion.
struct About {
    Group group;
    const char* name;
    const char* summary;  ///< what it does: lower case, without a full stop
    const char* example;  ///< a command line without "vgpuctl"
};

/// One object runs one command line: describe(), the parsing, then start(). Options live in the
/// object's members, so it must outlive the CLI::App.
class Verb {
public:
    explicit Verb(const About& about) : about_(about) {}
    virtual ~Verb() = default;
    [[nodiscard]] const About& about() const { return about_; }
    [[nodiscard]] std::string name() const { return about_.name; }
    /// Adds options and positionals to the subcommand; no work and no output.
    virtual void describe(CLI::App&) {}
    /// Does the work of the verb, with vgpud connected. Most verbs override this.
    virtual ExitCode run(Invocation& invocation);
    /// Connects, then calls run(). Verbs that also work without vgpud override this.
    virtual ExitCode start(const Setting& setting);

private:
    const About about_;
};

/// Makes a verb; one that shares its class with others gets its row.
template <typename V, const auto&... row> std::unique_ptr<Verb> make_verb() {
    return std::make_unique<V>(row...);
}
using MakeVerb = std::unique_ptr<Verb> (*)();

/// Each is in verb_NAME.cpp, except destroy, reset, pause and stop (verb_act.cpp) and self-test,
/// quiesce and thaw (verb_agent.cpp), which differ only in a table row.
extern const MakeVerb make_list_verb, make_show_verb, make_top_verb, make_events_verb,
    make_metrics_verb, make_version_verb, make_create_verb, make_set_verb, make_destroy_verb,
    make_claim_verb, make_release_verb, make_reset_verb, make_pause_verb, make_stop_verb,
    make_resume_verb, make_plan_verb, make_apply_verb, make_assert_verb, make_export_verb,
    make_jobs_verb, make_self_test_verb, make_quiesce_verb, make_thaw_verb, make_attach_xml_verb,
    make_hook_verb, make_doctor_verb, make_report_verb, make_trace_verb, make_simulate_verb;

/// In the order in which --help shows them, group by group.
std::vector<std::unique_ptr<Verb>> all_verbs();

/// Adds the required argument TARGET, which names a VF.
CLI::Option* add_vf(CLI::App& command, std::string& target);

/// A GPU's object path has no part "/vf/".
bool is_vf_path(const std::string& path);

/// Resolves `target` and refuses GPUs, naming `verb`.
/// ServiceError NoSuchVf (exit status 3) for a GPU; the error of resolve() for an unknown name.
std::string resolve_vf(Service& service, const std::string& target, const std::string& verb);

/// Asks the agent of the VF `target`, for verb `verb`, and prints its report:
/// "gpu0/vf3: self-test passed: TEXT (1200 ms)" or {"schema": …, "target": …, "act": …, "ok": …, …}
/// Ok if the agent reports success; Failed if it reports a failure, which is output, not an error.
ExitCode ask_agent(Invocation& invocation, const std::string& target, const std::string& verb,
                   AgentAct act, const Options& options);

/// "gpu0/vf3: paused" or {"schema": …, "target": …, "done": …}
void print_done(Invocation& invocation, const std::string& target, const std::string& done);

}  // namespace vgpu::cli
