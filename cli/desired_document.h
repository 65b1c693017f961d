// SPDX-License-Identifier: MIT
//
// DesiredDocument: the configuration for plan, apply and assert: FILE, -f FILE, "-" (standard
// input), or --auto N (made by vgpud). Also functions that print plans.
#pragma once

#include "cli/table.h"
#include "cli/verbs.h"

#include <optional>
#include <string>

namespace vgpu::cli {

/// The content of a file; "-": standard input. BadConfiguration (exit status 2) if it is
/// unreadable.
std::string content_of(const std::string& file);

/// Reads the document as text. vgpud checks its content.
class DesiredDocument {
public:
    /// Adds FILE, -f and --auto, which exclude each other, and --label, --even, --gpu.
    void describe(CLI::App& command);

    /// Call once, because it consumes standard input. Unwraps the output of export --json.
    [[nodiscard]] std::string read(Service& service) const;
    /// The options for Manager.Plan and Apply.
    [[nodiscard]] Options options() const;

private:
    std::string file_, label_, gpu_;
    std::optional<unsigned> auto_vfs_;
    bool is_even_ = false;
};

/// A plan as vgpud writes it (schema id vgpu-plan-1).
using PlanJson = nlohmann::ordered_json;

/// Parses a plan. VersionMismatch for other text. The functions below trust its members.
PlanJson parse_plan(const std::string& text);
/// True if nothing changes. VFs may still be out of service.
bool is_empty_plan(const PlanJson& plan);
/// True if all VFs are in service, and none is only defined.
bool is_in_service(const PlanJson& plan);
/// Number of steps that change something.
std::size_t step_count(const PlanJson& plan);
/// The disruption of the plan: "none", "vf-restart" or "vf-loss".
std::string disruption_of(const PlanJson& plan);
std::vector<Column> plan_columns();
/// A table of the steps, remarks on them, quanta and VRAM of each GPU, and a count. Only the table
/// if `table` is plain.
std::string plan_text(const PlanJson& plan, const TableOptions& table = {});
/// The members of the document for --json, for plan and assert.
nlohmann::ordered_json plan_members(const PlanJson& plan);

}  // namespace vgpu::cli
