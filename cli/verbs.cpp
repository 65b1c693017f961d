// SPDX-License-Identifier: MIT
#include "cli/verbs.h"

#include <fmt/format.h>
#include <utility>

namespace vgpu::cli {

std::vector<std::unique_ptr<Verb>> all_verbs() {
    std::vector<std::unique_ptr<Verb>> verbs;
    for (const auto make :
         {make_list_verb,      make_show_verb,    make_top_verb,     make_events_verb,
          make_metrics_verb,   make_version_verb, make_create_verb,  make_set_verb,
          make_destroy_verb,   make_claim_verb,   make_release_verb, make_reset_verb,
          make_pause_verb,     make_stop_verb,    make_resume_verb,  make_plan_verb,
          make_apply_verb,     make_assert_verb,  make_export_verb,  make_jobs_verb,
          make_self_test_verb, make_quiesce_verb, make_thaw_verb,    make_attach_xml_verb,
          make_hook_verb,      make_doctor_verb,  make_report_verb,  make_trace_verb,
          make_simulate_verb})
        verbs.push_back(make());
    return verbs;
}

void VerbContext::print(std::string_view schema, nlohmann::ordered_json members,
                        const std::string& text) const {
    out << (is_json ? document_text(schema, std::move(members)) : text);
}

ExitCode Verb::run(Invocation&) {
    return ExitCode::Failed;
}

ExitCode Verb::start(const VerbContext& context) {
    const auto service = context.connect();
    Invocation invocation{context, *service};
    return run(invocation);
}

CLI::Option* add_vf(CLI::App& command, std::string& target) {
    return command.add_option("TARGET", target, "gpu0/vf3, a VF's name or UUID")->required();
}

bool is_vf_path(const std::string& path) {
    return path.find("/vf/") != std::string::npos;
}

std::string resolve_vf(Service& service, const std::string& target, const std::string& verb) {
    std::string path = service.resolve(target);
    if (is_vf_path(path)) return path;
    throw ServiceError(
        "org.vgpu1.Error.NoSuchVf",
        fmt::format("{} is a GPU; {} requires a VF, such as {}/vf1", target, verb, target));
}

void print_done(Invocation& invocation, const std::string& target, const std::string& done) {
    invocation.print("vgpuctl-done-1", {{"target", target}, {"done", done}},
                     target + ": " + done + "\n");
}

}  // namespace vgpu::cli
