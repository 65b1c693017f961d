// SPDX-License-Identifier: MIT
//
// vgpuctl plan FILE: prints the steps to the VFs of a configuration; changes nothing.
#include "cli/wanted_document.h"

namespace vgpu::cli {

namespace {

/// Manager.Plan. Ends with 0 with or without steps; 'assert' distinguishes them.
/// --json: vgpuctl-plan-1.
class PlanVerb final : public Verb {
public:
    [[nodiscard]] std::string name() const override { return "plan"; }
    [[nodiscard]] std::string summary() const override {
        return "steps from the VFs there are to a configuration";
    }
    void describe(CLI::App& command) override { document_.describe(command); }

    ExitCode run(Invocation& invocation) override {
        const std::string text = document_.read(invocation.service);
        const PlanJson plan = parse_plan(invocation.service.plan(text, document_.options()));
        if (invocation.output == Output::Json)
            invocation.out << document_text("vgpuctl-plan-1", plan_members(plan));
        else
            invocation.out << plan_text(plan);
        return ExitCode::Ok;
    }

private:
    WantedDocument document_;
};

}  // namespace

std::unique_ptr<Verb> make_plan_verb() {
    return std::make_unique<PlanVerb>();
}

}  // namespace vgpu::cli
