// SPDX-License-Identifier: MIT
//
// The verbs that compare the VFs with a configuration and change nothing:
//   vgpuctl plan FILE     prints the steps to the configuration
//   vgpuctl assert FILE   checks that no change is needed, and that all VFs are in service
#include "cli/desired_document.h"

#include <fmt/format.h>

namespace vgpu::cli {

namespace {

/// Requires no privilege. --json: vgpuctl-plan-1.
class PlanVerb : public Verb {
public:
    PlanVerb()
        : PlanVerb({Group::Configurations, "plan",
                    "print the steps from the present VFs to a configuration", "plan vgpu.json"}) {}
    void describe(CLI::App& command) override {
        document_.describe(command);
        table_.describe(command, {plan_columns()});
    }

    ExitCode run(Invocation& invocation) override {
        const std::string text = document_.read(invocation.service);
        return print(invocation, parse_plan(invocation.service.plan(text, document_.options())));
    }

protected:
    explicit PlanVerb(const About& about) : Verb(about) {}
    virtual ExitCode print(const Invocation& invocation, const PlanJson& plan) const {
        invocation.print("vgpuctl-plan-1", plan_members(plan), plan_text(plan, table_));
        return ExitCode::Ok;
    }

    DesiredDocument document_;
    TableOptions table_;
};

/// Exits with 1 if a step other than "keep" is needed, or if a VF is out of service.
/// --json: vgpuctl-assert-1, with "holds".
class AssertVerb final : public PlanVerb {
public:
    AssertVerb()
        : PlanVerb({Group::Configurations, "assert",
                    "check whether the VFs are those of a configuration", "assert vgpu.json"}) {}
    void describe(CLI::App& command) override {
        PlanVerb::describe(command);
        command.footer(
            "Exits with 0 if the configuration holds and all its VFs are in service.\n"
            "Otherwise prints the plan and exits with 1.");
    }

private:
    ExitCode print(const Invocation& invocation, const PlanJson& plan) const override {
        const bool holds = is_empty_plan(plan) && is_in_service(plan);
        nlohmann::ordered_json members{{"holds", holds}};
        members.update(plan_members(plan));
        invocation.print(
            "vgpuctl-assert-1", std::move(members),
            holds && !table_.is_plain()
                ? fmt::format("configuration '{}' holds\n", plan.at("label").get<std::string>())
                : plan_text(plan, table_));
        return holds ? ExitCode::Ok : ExitCode::Failed;
    }
};

}  // namespace

const MakeVerb make_plan_verb = make_verb<PlanVerb>;
const MakeVerb make_assert_verb = make_verb<AssertVerb>;

}  // namespace vgpu::cli
