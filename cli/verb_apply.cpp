// SPDX-License-Identifier: MIT
//
// vgpuctl apply FILE: changes the VFs to those of a configuration. A job of vgpud makes all changes
// or none. A plan with a disruption (VFs lose the content of their VRAM) requires --yes.
#include "cli/desired_document.h"
#include "cli/job_wait.h"

#include <fmt/format.h>

namespace vgpu::cli {

namespace {

/// --yes is required if the plan that vgpuctl shows has a disruption. The job plans again when it
/// begins, and fails if the new plan has more disruption than the shown plan. Exits with 1 if --yes
/// is missing, else with the exit code for the job's error. --json: vgpuctl-apply-1.
class ApplyVerb final : public Verb {
public:
    ApplyVerb()
        : Verb({Group::Configurations, "apply", "change the VFs to those of a configuration",
                "apply vgpu.json --yes"}) {}
    void describe(CLI::App& command) override {
        document_.describe(command);
        command.add_flag("--yes", is_sure_, "even if VFs lose the content of their VRAM");
        command.add_flag("--force", force_, "even if VFs are open or claimed");
        command.add_flag("--no-wait", no_wait_, "do not wait for the job; print it");
    }

    ExitCode run(Invocation& invocation) override {
        const std::string text = document_.read(invocation.service);
        const PlanJson plan = parse_plan(invocation.service.plan(text, document_.options()));
        if (!invocation.is_json) invocation.out << plan_text(plan);
        if (is_empty_plan(plan)) return finish(invocation, plan, {{"State", std::string("done")}});
        if (disruption_of(plan) != "none" && !is_sure_) {
            invocation.err << fmt::format(
                "vgpuctl: nothing was done: VFs would lose the content of their VRAM ({}); apply "
                "with --yes to accept this\n",
                disruption_of(plan));
            if (invocation.is_json)
                print_json(invocation, plan, {{"State", std::string("refused")}});
            return ExitCode::Failed;
        }
        Options options = document_.options();
        if (force_) options["force"] = true;
        options["disruption"] = disruption_of(plan);
        const std::string job = invocation.service.apply(text, options);
        if (no_wait_)
            return finish(invocation, plan, {{"Path", job}, {"State", std::string("running")}});
        Properties last = wait_for_job(invocation, job);
        last["Path"] = job;
        return finish(invocation, plan, last);
    }

private:
    /// The path of the job; empty if no job was begun.
    static std::string path_of(const Properties& job) {
        return job.contains("Path") ? std::get<std::string>(job.at("Path")) : "";
    }

    static void print_json(Invocation& invocation, const PlanJson& plan, const Properties& job) {
        const bool has_error = job.contains("Error") && text_of(job, "Error") != "-";
        invocation.out << document_text("vgpuctl-apply-1",
                                        {{"result", text_of(job, "State")},
                                         {"job", path_of(job)},
                                         {"job_id", job_number(path_of(job))},
                                         {"error", has_error ? text_of(job, "Error") : ""},
                                         {"plan", plan_members(plan)}});
    }

    /// Prints the result. Returns the exit code; for a failed job without --json, throws the job's
    /// error. `job` has the property State, also Path if there is a job, and also Error and
    /// ErrorName if the job failed or was cancelled.
    static ExitCode finish(Invocation& invocation, const PlanJson& plan, const Properties& job) {
        const std::string state = text_of(job, "State");
        const bool is_well = state == "done" || state == "running";
        if (invocation.is_json)
            print_json(invocation, plan, job);
        else if (state == "running")
            invocation.out << fmt::format(
                "job {}: 'vgpuctl jobs' shows it, 'vgpuctl jobs --cancel {}' cancels it\n{}\n",
                job_number(path_of(job)), job_number(path_of(job)), path_of(job));
        else if (is_well && !is_empty_plan(plan))
            invocation.out << fmt::format("configuration '{}' is applied\n",
                                          plan.at("label").get<std::string>());
        if (is_well) return ExitCode::Ok;
        const ServiceError error(text_of(job, "ErrorName"), text_of(job, "Error"));
        if (!invocation.is_json) throw error;
        // the printed document contains the error
        invocation.err << "vgpuctl: " << error.what() << "\n";
        return error.exit_code();
    }

    DesiredDocument document_;
    bool is_sure_ = false, force_ = false, no_wait_ = false;
};

}  // namespace

const MakeVerb make_apply_verb = make_verb<ApplyVerb>;

}  // namespace vgpu::cli
