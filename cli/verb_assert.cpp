// SPDX-License-Identifier: MIT
//
// vgpuctl assert FILE: checks whether the VFs are those of a configuration, and in service. Exit
// code 0: yes; 1: no, and it prints the missing steps or why VFs are out of service.
#include "cli/wanted_document.h"

#include <fmt/format.h>

namespace vgpu::cli {

namespace {

/// For scripts and timers: changes nothing, and Manager.Plan needs no privilege. Also fails for a
/// VF that is defined as wanted but out of service. --json: vgpuctl-assert-1, with "holds".
class AssertVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "assert"; }
    [[nodiscard]] std::string summary() const override {
        return "exit with 0 if the VFs are as wanted";
    }
    void describe(CLI::App& command) override {
        document_.describe(command);
        command.footer("Exit code 0: they are; 1: they are not, and how they differ is printed.");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string text = document_.read(invocation.service);
        const PlanJson plan = parse_plan(invocation.service.plan(text, document_.options()));
        const bool holds = is_empty_plan(plan) && is_in_service(plan);
        if (invocation.output == Output::Json) {
            nlohmann::ordered_json members{{"holds", holds}};
            members.update(plan_members(plan));
            invocation.out << document_text("vgpuctl-assert-1", std::move(members));
        } else if (holds) {
            invocation.out << fmt::format("configuration '{}' holds\n",
                                          plan.at("label").get<std::string>());
        } else {
            invocation.out << plan_text(plan);
        }
        return holds ? ExitCode::Ok : ExitCode::Failed;
    }

private:
    WantedDocument document_;
};

}  // namespace

std::unique_ptr<Verb> make_assert_verb() {
    return std::make_unique<AssertVerb>();
}

}  // namespace vgpu::cli
