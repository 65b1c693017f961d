// SPDX-License-Identifier: MIT
#include "cli/verbs.h"

#include "cli/progress.h"

#include <fmt/format.h>

namespace vgpu::cli {

std::vector<std::unique_ptr<Verb>> all_verbs() {
    std::vector<std::unique_ptr<Verb>> verbs;
    verbs.push_back(make_list_verb());
    verbs.push_back(make_show_verb());
    verbs.push_back(make_top_verb());
    verbs.push_back(make_plan_verb());
    verbs.push_back(make_apply_verb());
    verbs.push_back(make_assert_verb());
    verbs.push_back(make_export_verb());
    verbs.push_back(make_jobs_verb());
    verbs.push_back(make_create_verb());
    verbs.push_back(make_set_verb());
    verbs.push_back(make_destroy_verb());
    verbs.push_back(make_claim_verb());
    verbs.push_back(make_release_verb());
    verbs.push_back(make_attach_xml_verb());
    verbs.push_back(make_hook_verb());
    verbs.push_back(make_reset_verb());
    verbs.push_back(make_pause_verb());
    verbs.push_back(make_resume_verb());
    verbs.push_back(make_stop_verb());
    verbs.push_back(make_self_test_verb());
    verbs.push_back(make_quiesce_verb());
    verbs.push_back(make_thaw_verb());
    verbs.push_back(make_simulate_verb());
    verbs.push_back(make_trace_verb());
    verbs.push_back(make_events_verb());
    verbs.push_back(make_metrics_verb());
    verbs.push_back(make_doctor_verb());
    verbs.push_back(make_report_verb());
    verbs.push_back(make_version_verb());
    return verbs;
}

ExitCode Verb::run(Invocation&) {
    return ExitCode::Failed;
}

ExitCode Verb::start(const Setting& setting) {
    const auto service = setting.connect();
    Invocation invocation{.service = *service,
                          .out = setting.out,
                          .output = setting.output,
                          .is_terminal = setting.is_terminal,
                          .err = setting.err,
                          .uses_colour = setting.uses_colour,
                          .columns = setting.columns};
    return run(invocation);
}

const Properties& with_path(const std::vector<Properties>& list, const std::string& path) {
    for (const Properties& one : list)
        if (text_of(one, "Path") == path) return one;
    throw ServiceError("org.vgpu1.Error.NoSuchVf", "it has gone in the meantime");
}

bool is_vf_path(const std::string& path) {
    return path.find("/vf/") != std::string::npos;
}

std::string resolve_vf(Service& service, const std::string& target, const std::string& verb) {
    std::string path = service.resolve(target);
    if (is_vf_path(path)) return path;
    throw ServiceError(
        "org.vgpu1.Error.NoSuchVf",
        fmt::format("{} is a GPU; {} wants a VF, such as {}/vf1", target, verb, target));
}

ExitCode ask_agent(Invocation& invocation, const std::string& target, const std::string& verb,
                   AgentAct act, const Options& options) {
    const std::string path = resolve_vf(invocation.service, target, verb);
    const Properties report = [&] {
        const Waiting waiting(invocation, verb + " " + target);
        return invocation.service.ask_agent(path, act, options);
    }();
    const bool is_ok = flag_of(report, "ok");
    const std::uint64_t ms = number_of(report, "duration_ms");
    if (invocation.output == Output::Json)
        invocation.out << document_text("vgpuctl-agent-1", {{"target", target},
                                                            {"act", verb},
                                                            {"ok", is_ok},
                                                            {"text", text_of(report, "text")},
                                                            {"duration_ms", ms}});
    else
        invocation.out << fmt::format("{}: {} {}: {} ({} ms)\n", target, verb,
                                      is_ok ? "passed" : "failed", text_of(report, "text"), ms);
    return is_ok ? ExitCode::Ok : ExitCode::Failed;
}

void print_done(Invocation& invocation, const std::string& target, const std::string& done) {
    if (invocation.output == Output::Json)
        invocation.out << document_text("vgpuctl-done-1", {{"target", target}, {"done", done}});
    else
        invocation.out << target << ": " << done << "\n";
}

}  // namespace vgpu::cli
