// SPDX-License-Identifier: MIT
//
// WantedDocument is the configuration for plan, apply and assert: FILE or -f FILE, "-" for standard
// input, or --auto N for one that vgpud makes. The functions below print plans for people. Used by
// those verbs; content_of() also by simulate and trace.
#pragma once

#include "cli/table.h"
#include "cli/verbs.h"

#include <optional>
#include <string>

namespace vgpu::cli {

/// Content of a file, or of standard input for "-"; ServiceError if it cannot be read.
/// The error is BadConfiguration: exit status 2.
std::string content_of(const std::string& file);

/// One per verb, holding its options; vgpud parses the document.
class WantedDocument {
public:
    /// Adds FILE, -f, --label, --auto, --even and --gpu; FILE, -f and --auto exclude each other.
    void describe(CLI::App& command);

    /// Text of the document; ServiceError if it cannot be read. Call it once: it consumes standard
    /// input. From the output of export --json, returns the configuration in it.
    [[nodiscard]] std::string read(Service& service) const;
    /// Options of Manager.Plan and Apply that go with the document.
    [[nodiscard]] Options options() const;

private:
    std::string file_, label_, gpu_;
    std::optional<unsigned> auto_vfs_;
    bool is_even_ = false;
};

/// A plan as vgpud writes it (schema id vgpu-plan-1).
using PlanJson = nlohmann::ordered_json;

/// ServiceError if `text` is not such a plan: vgpuctl and vgpud are of different releases.
/// The functions below take its result and trust its members.
PlanJson parse_plan(const std::string& text);
/// True if no step changes anything; it may still contain VFs that are out of service.
bool is_empty_plan(const PlanJson& plan);
/// True if every wanted VF is in service: none is only defined.
bool is_in_service(const PlanJson& plan);
/// Number of steps that change something.
std::size_t step_count(const PlanJson& plan);
/// "none", "vf-restart" or "vf-loss"
std::string disruption_of(const PlanJson& plan);
/// Columns of the table of steps.
std::vector<Column> plan_columns();
/// A table of steps, remarks on steps that did not fit or that disturb a VF, the VRAM of each GPU,
/// and a line that counts.
std::string plan_text(const PlanJson& plan, const TableOptions& table = {});
/// The members that plan and assert print with --json.
nlohmann::ordered_json plan_members(const PlanJson& plan);

}  // namespace vgpu::cli
