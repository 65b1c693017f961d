// SPDX-License-Identifier: MIT
#include "cli/remedies.h"

#include "cli/format.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <string_view>

namespace vgpu::cli {

namespace {

/// " --owner OWNER" for a claimed VF, because without this option vgpud refuses to destroy or reset
/// the VF; "" for an unclaimed VF.
std::string owner_option(const Properties& vf) {
    if (number_of(vf, "OwnerGeneration") == 0) return "";
    return " --owner " + shell_word(text_of(vf, "Owner"));
}

}  // namespace

std::string recovery_command(const Properties& vf) {
    const std::string state = text_of(vf, "State"), target = text_of(vf, "Target");
    if (state == "quarantined") return fmt::format("vgpuctl resume {} --clear-quarantine", target);
    if (state == "mismatch") return fmt::format("vgpuctl reset {}{}", target, owner_option(vf));
    return "";
}

std::string drop_command(const Properties& vf) {
    return fmt::format("vgpuctl destroy {}{}", text_of(vf, "Target"), owner_option(vf));
}

std::string end_claim_command(const Properties& vf) {
    return fmt::format("vgpuctl release {}{} --generation {} --scrub", text_of(vf, "Target"),
                       owner_option(vf), number_of(vf, "OwnerGeneration"));
}

std::string shell_word(const std::string& word) {
    const bool is_plain = std::ranges::all_of(word, [](char letter) {
        constexpr std::string_view kPlain = "-_.:/,@%+=";
        return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
               kPlain.find(letter) != std::string_view::npos;
    });
    if (is_plain && !word.empty()) return word;
    std::string quoted = "'";
    for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
    return quoted + "'";
}

}  // namespace vgpu::cli
