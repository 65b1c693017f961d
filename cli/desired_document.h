// SPDX-License-Identifier: MIT
//
// DesiredDocument: the configuration for plan, apply and assert. The user names a file (FILE or -f
// FILE; "-": standard input), or vgpud generates the configuration (--auto N). This header also
// declares functions that format plans.
#pragma once

#include "cli/table.h"
#include "cli/verbs.h"

#include <optional>
#include <string>

namespace vgpu::cli {

/// The content of `file`, or of standard input for "-". Throws BadConfiguration (exit status 2) if
/// `file` is unreadable.
std::string content_of(const std::string& file);

/// The options of plan, apply and assert that name the configuration. Reads the configuration as
/// text; vgpud checks the content.
class DesiredDocument {
public:
    /// Adds FILE, -f and --auto, which exclude each other, and --label, --even, --gpu.
    void describe(CLI::App& command);

    /// Returns the configuration. If FILE is the output of export --json, returns only the
    /// configuration in this output. Call read() once, because standard input can be read only
    /// once. Throws BadConfiguration if the text is not UTF-8 or is nested too deeply, or if the
    /// user named no source.
    [[nodiscard]] std::string read(Service& service) const;
    /// The options for Manager.Plan and Manager.Apply.
    [[nodiscard]] Options options() const;

private:
    std::string file_, label_, gpu_;
    std::optional<unsigned> auto_vfs_;
    bool is_even_ = false;
};

/// A plan as vgpud writes it (schema id vgpu-plan-1).
using PlanJson = nlohmann::ordered_json;

/// Parses a plan. Throws VersionMismatch if `text` is not a plan of this schema. The functions
/// below require a plan that parse_plan() returned.
PlanJson parse_plan(const std::string& text);
/// True if the plan changes nothing. VFs may still be out of service.
bool is_empty_plan(const PlanJson& plan);
/// True if all VFs of the plan are in service. The step of a VF that is not in service has a
/// "condition", which gives the reason.
bool is_in_service(const PlanJson& plan);
/// Number of steps that change something.
std::size_t step_count(const PlanJson& plan);
/// The disruption of the plan: "none", "vf-restart" or "vf-loss".
std::string disruption_of(const PlanJson& plan);
/// The columns of the table of steps.
std::vector<Column> plan_columns();
/// The plan as text: a table of the steps, remarks on steps, the quanta and VRAM of each GPU, and
/// the number of steps. Only the table if table.is_plain().
std::string plan_text(const PlanJson& plan, const TableOptions& table = {});
/// The members of the plan, without "schema", for the --json documents of plan, apply and assert.
nlohmann::ordered_json plan_members(const PlanJson& plan);

}  // namespace vgpu::cli
