// SPDX-License-Identifier: MIT
#include "daemon/service/vf/custody.h"

#include "daemon/service/input/word_choice.h"

#include <array>
#include <nlohmann/json.hpp>

namespace vgpu::daemon {

namespace {

constexpr std::array kHandovers{
#define HANDOVER(name, word, meaning) Word{word, Handover::name},
#include "daemon/ports/handover.def"
#undef HANDOVER
};
constexpr std::array kScrubs{Word{"request", ScrubPolicy::Request},
                             Word{"release", ScrubPolicy::Release}};

}  // namespace

void apply(const CustodyChange& change, VfCustody& custody) {
    custody.handover = change.handover.value_or(custody.handover);
    custody.scrub = change.scrub.value_or(custody.scrub);
}

CustodyChange change_to(const VfCustody& custody) {
    return {.handover = custody.handover, .scrub = custody.scrub};
}

std::string_view name_of(ScrubPolicy scrub) {
    return name_among(kScrubs, scrub);
}

std::vector<std::string_view> custody_names() {
    return {"handover", "scrub"};
}

Result<CustodyChange> read_custody(const OptionReader& options) {
    CustodyChange change;
    TRY(change.handover, word_option(options, "handover", kHandovers));
    TRY(change.scrub, word_option(options, "scrub", kScrubs));
    return change;
}

void read_handover(JsonSection& section, VfCustody& custody) {
    read_word(section, "handover", kHandovers, custody.handover);
}

void read_scrub(JsonSection& section, VfCustody& custody) {
    read_word(section, "scrub", kScrubs, custody.scrub);
}

nlohmann::ordered_json custody_json(const VfCustody& custody) {
    nlohmann::ordered_json json = whole_custody_json(custody);
    if (custody.handover == Handover::Default) json.erase("handover");
    if (custody.scrub == ScrubPolicy::Request) json.erase("scrub");
    return json;
}

nlohmann::ordered_json whole_custody_json(const VfCustody& custody) {
    return {{"handover", name_of(custody.handover)}, {"scrub", name_of(custody.scrub)}};
}

VfCustody custody_of(const nlohmann::json& json) {
    return {.handover = word_of(json, "handover", kHandovers, Handover::Default),
            .scrub = word_of(json, "scrub", kScrubs, ScrubPolicy::Request)};
}

}  // namespace vgpu::daemon
