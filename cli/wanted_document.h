// SPDX-License-Identifier: MIT
//
// WantedDocument: the configuration that plan, apply and assert are given: FILE or -f FILE, "-" for
// standard input, or --auto N for one of vgpud's own. And plans as people read them. Used by those
// verbs; content_of() also by simulate.
#pragma once

#include "cli/verbs.h"

#include <optional>
#include <string>

namespace vgpu::cli {

/// Of a file, or of standard input if it is "-"; ServiceError if it cannot be read.
/// The error is BadConfiguration: exit status 2.
std::string content_of(const std::string& file);

/// One per verb, as its options; vgpud parses what is read here.
class WantedDocument {
public:
    /// Adds FILE, -f, --label, --auto, --even and --gpu; FILE, -f and --auto exclude each other.
    void describe(CLI::App& command);

    /// Its text; ServiceError if it cannot be read. Once: standard input is used up.
    /// Of a document that export --json printed, the configuration in it.
    [[nodiscard]] std::string read(Service& service) const;
    /// Options of Manager.Plan and Apply that belong to it.
    [[nodiscard]] Options options() const;

private:
    std::string file_, label_, gpu_;
    std::optional<unsigned> auto_vfs_;
    bool is_even_ = false;
};

/// A plan as vgpud writes it (schema id vgpu-plan-1).
using PlanJson = nlohmann::ordered_json;

/// ServiceError if `text` is no such plan: vgpuctl and vgpud are of different releases.
/// The other functions take its result: they trust its members.
PlanJson parse_plan(const std::string& text);
/// True if no step does anything; VFs that are defined and out of service may still be in it.
bool is_empty_plan(const PlanJson& plan);
/// Every VF that is wanted is in service: none is only defined.
bool is_in_service(const PlanJson& plan);
/// Steps that do something.
std::size_t step_count(const PlanJson& plan);
/// "none", "vf-restart" or "vf-loss"
std::string disruption_of(const PlanJson& plan);
/// A table of steps, what did not fit into it or is not without cost, what VRAM each GPU has and
/// gives, and a line that counts.
std::string plan_text(const PlanJson& plan);
/// The members that plan and assert print with --json.
nlohmann::ordered_json plan_members(const PlanJson& plan);

}  // namespace vgpu::cli
