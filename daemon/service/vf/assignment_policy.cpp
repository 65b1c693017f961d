// SPDX-License-Identifier: MIT
#include "daemon/service/vf/assignment_policy.h"

#include "daemon/service/input/word_choice.h"

#include <array>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

constexpr std::array kAssignmentModes{
#define ASSIGNMENT_MODE(name, word, meaning) Word{word, AssignmentMode::name},
#include "daemon/ports/assignment_mode.def"
#undef ASSIGNMENT_MODE
};
constexpr std::array kScrubs{Word{"request", ScrubPolicy::Request},
                             Word{"release", ScrubPolicy::Release}};

}  // namespace

void apply(const AssignmentPolicyChange& change, VfAssignmentPolicy& assignment_policy) {
    assignment_policy.assignment_mode =
        change.assignment_mode.value_or(assignment_policy.assignment_mode);
    assignment_policy.scrub = change.scrub.value_or(assignment_policy.scrub);
}

AssignmentPolicyChange change_to(const VfAssignmentPolicy& assignment_policy) {
    return {.assignment_mode = assignment_policy.assignment_mode, .scrub = assignment_policy.scrub};
}

std::string_view name_of(ScrubPolicy scrub) {
    return name_among(kScrubs, scrub);
}

std::vector<std::string_view> assignment_policy_names() {
    return {"assignment_mode", "scrub"};
}

Result<AssignmentPolicyChange> read_assignment_policy(const OptionReader& options) {
    AssignmentPolicyChange change;
    TRY(change.assignment_mode, word_option(options, "assignment_mode", kAssignmentModes));
    TRY(change.scrub, word_option(options, "scrub", kScrubs));
    return change;
}

void read_assignment_mode(JsonSection& section, VfAssignmentPolicy& assignment_policy) {
    read_word(section, "assignment_mode", kAssignmentModes, assignment_policy.assignment_mode);
}

void read_scrub(JsonSection& section, VfAssignmentPolicy& assignment_policy) {
    read_word(section, "scrub", kScrubs, assignment_policy.scrub);
}

nlohmann::ordered_json assignment_policy_json(const VfAssignmentPolicy& assignment_policy) {
    nlohmann::ordered_json json = whole_assignment_policy_json(assignment_policy);
    if (assignment_policy.assignment_mode == AssignmentMode::Default) json.erase("assignment_mode");
    if (assignment_policy.scrub == ScrubPolicy::Request) json.erase("scrub");
    return json;
}

nlohmann::ordered_json whole_assignment_policy_json(const VfAssignmentPolicy& assignment_policy) {
    return {{"assignment_mode", name_of(assignment_policy.assignment_mode)},
            {"scrub", name_of(assignment_policy.scrub)}};
}

VfAssignmentPolicy assignment_policy_of(const nlohmann::json& json) {
    return {.assignment_mode =
                word_of(json, "assignment_mode", kAssignmentModes, AssignmentMode::Default),
            .scrub = word_of(json, "scrub", kScrubs, ScrubPolicy::Request)};
}

}  // namespace vgpu::daemon
