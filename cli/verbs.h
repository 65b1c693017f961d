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

/// Text is for people; scripts should ask for JSON, whose documents name their schema.
enum class Output { Text, Json };

/// Arguments of Verb::run(), with vgpud connected; references are valid during run().
struct Invocation {
    Service& service;
    std::ostream& out;
    Output output = Output::Text;
    bool is_terminal = false;  ///< `out` is a terminal
    std::ostream& err;         ///< for warnings and progress, not for results
    bool uses_colour = false;
    std::size_t columns = kColumns;  ///< of the terminal, kColumns at most
};

/// Arguments of Verb::start(), before vgpud is connected.
/// References must outlive Verb::start(), which keeps none.
struct Setting {
    /// Throws ServiceError if there is no such bus.
    std::function<std::unique_ptr<Service>()> connect;
    std::ostream& out;
    std::ostream& err;
    Output output = Output::Text;
    bool is_terminal = false;
    bool uses_colour = false;
    std::size_t columns = kColumns;
};

/// One object runs one command line: describe(), the parsing, then start(). Options live in the
/// object's members, so it must outlive the CLI::App.
class Verb {
public:
    virtual ~Verb() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    /// For --help, the manual page and completion: lower case, without a full stop.
    [[nodiscard]] virtual std::string summary() const = 0;
    /// Adds options and positionals to the subcommand; no work and no output.
    virtual void describe(CLI::App& command) = 0;
    /// Does the work of the verb, with vgpud connected. Most verbs override this.
    virtual ExitCode run(Invocation& invocation);
    /// Connects, then calls run(). Verbs that also work without vgpud override this.
    virtual ExitCode start(const Setting& setting);
};

/// Each is in verb_NAME.cpp, except pause and stop (verb_leave.cpp) and self-test, quiesce and thaw
/// (verb_agent.cpp), which differ only in a table row.
std::unique_ptr<Verb> make_list_verb();
std::unique_ptr<Verb> make_show_verb();
std::unique_ptr<Verb> make_create_verb();
std::unique_ptr<Verb> make_destroy_verb();
std::unique_ptr<Verb> make_set_verb();
std::unique_ptr<Verb> make_claim_verb();
std::unique_ptr<Verb> make_release_verb();
std::unique_ptr<Verb> make_attach_xml_verb();
std::unique_ptr<Verb> make_hook_verb();
std::unique_ptr<Verb> make_top_verb();
std::unique_ptr<Verb> make_plan_verb();
std::unique_ptr<Verb> make_apply_verb();
std::unique_ptr<Verb> make_assert_verb();
std::unique_ptr<Verb> make_export_verb();
std::unique_ptr<Verb> make_jobs_verb();
std::unique_ptr<Verb> make_reset_verb();
std::unique_ptr<Verb> make_pause_verb();
std::unique_ptr<Verb> make_resume_verb();
std::unique_ptr<Verb> make_stop_verb();
std::unique_ptr<Verb> make_self_test_verb();
std::unique_ptr<Verb> make_quiesce_verb();
std::unique_ptr<Verb> make_thaw_verb();
std::unique_ptr<Verb> make_version_verb();
std::unique_ptr<Verb> make_simulate_verb();
std::unique_ptr<Verb> make_trace_verb();
std::unique_ptr<Verb> make_events_verb();
std::unique_ptr<Verb> make_metrics_verb();
std::unique_ptr<Verb> make_doctor_verb();
std::unique_ptr<Verb> make_report_verb();

/// In the order in which --help shows them.
std::vector<std::unique_ptr<Verb>> all_verbs();

/// The VF or GPU with this object path in `list`; ServiceError if it is gone.
/// The error is NoSuchVf for GPUs as well. The result points into `list`.
const Properties& with_path(const std::vector<Properties>& list, const std::string& path);

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
