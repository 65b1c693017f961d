// SPDX-License-Identifier: MIT
//
// Verb: the base class of vgpuctl's verbs, such as `list`. A verb prints to the streams in its
// VerbContext, as text or (--json) as JSON documents with a schema id. Only run_cli() runs verbs.
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

/// Argument of Verb::start(). Verbs must not keep a reference to it.
struct VerbContext {
    /// Connects to the bus of vgpud. Throws ServiceError if there is no bus.
    std::function<std::unique_ptr<Service>()> connect;
    std::ostream& out;
    std::ostream& err;               ///< warnings and errors, no results
    bool is_json = false;            ///< true if results are documents with a schema id
    bool is_terminal = false;        ///< true if `out` is a terminal
    bool uses_colour = false;        ///< true if `out` gets colours
    std::size_t columns = kColumns;  ///< width of the terminal, at most kColumns

    /// Prints `text` or, with --json, the document with this schema id and these members.
    void print(std::string_view schema, nlohmann::ordered_json members,
               const std::string& text) const;
};

/// A VerbContext with a connected service, for Verb::run(). Valid until run() returns.
struct Invocation : VerbContext {
    Service& service;
};

/// Groups of verbs, in the order of --help, which omits Hidden.
enum class Group { State, Vfs, Configurations, Guests, Libvirt, Diagnose, Hidden };

/// The texts for --help, manual page and completion.
struct About {
    Group group;
    const char* name;
    const char* summary;  ///< lower case, no full stop
    const char* example;  ///< without "vgpuctl"
};

/// One verb. The caller calls describe(), parses the command line, and calls start(), once each.
/// The verb must outlive the CLI::App, which refers to members of the verb.
class Verb {
public:
    explicit Verb(const About& about) : about_(about) {}
    virtual ~Verb() = default;
    [[nodiscard]] const About& about() const { return about_; }
    [[nodiscard]] std::string name() const { return about_.name; }
    /// Adds options and positionals, and may set a footer with remarks.
    virtual void describe(CLI::App&) {}
    /// Runs the verb with a connection to vgpud. Most verbs override this.
    virtual ExitCode run(Invocation& invocation);
    /// Connects and calls run(). Verbs that work without vgpud override this.
    virtual ExitCode start(const VerbContext& context);

private:
    const About about_;
};

/// Makes a verb of class V. `row`: the constructor's argument if V implements several verbs; else
/// empty.
template <typename V, const auto&... row> std::unique_ptr<Verb> make_verb() {
    return std::make_unique<V>(row...);
}
using MakeVerb = std::unique_ptr<Verb> (*)();

/// make_NAME_verb is defined in verb_NAME.cpp, except the verbs that share a file: destroy, reset,
/// pause and stop (verb_act.cpp), self-test, quiesce and thaw (verb_agent.cpp), assert
/// (verb_plan.cpp).
extern const MakeVerb make_list_verb, make_show_verb, make_top_verb, make_events_verb,
    make_metrics_verb, make_version_verb, make_create_verb, make_set_verb, make_destroy_verb,
    make_claim_verb, make_release_verb, make_reset_verb, make_pause_verb, make_stop_verb,
    make_resume_verb, make_plan_verb, make_apply_verb, make_assert_verb, make_export_verb,
    make_jobs_verb, make_self_test_verb, make_quiesce_verb, make_thaw_verb, make_attach_xml_verb,
    make_hook_verb, make_doctor_verb, make_report_verb, make_trace_verb, make_simulate_verb;

/// All verbs, in the order of --help.
std::vector<std::unique_ptr<Verb>> all_verbs();

/// Adds the required positional TARGET, which names a VF.
CLI::Option* add_vf(CLI::App& command, std::string& target);

/// True if `path` is the object path of a VF. The object path of a GPU has no part "/vf/".
bool is_vf_path(const std::string& path);

/// The object path of the VF `target`. Throws NoSuchVf (exit status 3) if `target` is a GPU; the
/// message names `verb`.
std::string resolve_vf(Service& service, const std::string& target, const std::string& verb);

/// Prints "gpu0/vf3: paused" or {"schema": …, "target": …, "done": …}.
void print_done(Invocation& invocation, const std::string& target, const std::string& done);

}  // namespace vgpu::cli
