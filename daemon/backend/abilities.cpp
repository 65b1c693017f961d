// SPDX-License-Identifier: MIT
#include "daemon/backend/abilities.h"

#include <fmt/format.h>

namespace vgpu::daemon {

namespace {

struct NeedsRow {
    std::string_view name;
    std::string_view text;
};
/// One row for each value of Needs, in their order.
constexpr std::array kNeeds{NeedsRow{"nothing", ""},
                            NeedsRow{"vf-idle", "needs the VF idle"},
                            NeedsRow{"all-idle", "needs all VFs idle"},
                            NeedsRow{"reload", "needs a reload of the driver"},
                            NeedsRow{"reboot", "needs a restart of the host"},
                            NeedsRow{"never", "is not offered"}};

struct ChangeRow {
    std::string_view key;
    std::string_view words;
};
constexpr std::array kRows{
#define ABILITY(name, key, words) ChangeRow{#key, words},
#include "daemon/backend/abilities.def"
#undef ABILITY
};

std::string of_vf(std::string_view whose) {
    return whose.empty() ? "" : fmt::format(" of {}", whose);
}

}  // namespace

std::string_view name_of(Needs needs) {
    return kNeeds.at(static_cast<std::size_t>(needs)).name;
}

std::string_view text_of(Needs needs) {
    return kNeeds.at(static_cast<std::size_t>(needs)).text;
}

std::string_view key_of(Change change) {
    return kRows.at(static_cast<std::size_t>(change)).key;
}

std::string_view words_of(Change change) {
    return kRows.at(static_cast<std::size_t>(change)).words;
}

std::string describe(const std::string& gpu, const Abilities& abilities) {
    return fmt::format("{} (driver {})", gpu, abilities.driver);
}

Result<> check_offered(const std::string& gpu, const Abilities& abilities, Change change,
                       std::string_view whose) {
    const Needs needs = abilities[change].needs;
    if (needs <= Needs::AllIdle) return {};
    if (abilities.is_observing)
        return fail(ErrorId::Observed,
                    fmt::format("vgpud only watches {} and does not change {}{}",
                                describe(gpu, abilities), words_of(change), of_vf(whose)));
    if (abilities[change].is_approximate)
        return fail(ErrorId::NotOffered,
                    fmt::format("{} can only approximate {}{}; to allow that, set \"contracts\": "
                                "\"approximate\" in the configuration of the GPU",
                                describe(gpu, abilities), words_of(change), of_vf(whose)));
    return fail(ErrorId::NotOffered,
                needs == Needs::Never
                    ? fmt::format("{} cannot change {}{}", describe(gpu, abilities),
                                  words_of(change), of_vf(whose))
                    : fmt::format("{}: {}{} {}, which vgpud does not do", describe(gpu, abilities),
                                  words_of(change), of_vf(whose), text_of(needs)));
}

Result<> check_value(const std::string& gpu, const Abilities& abilities, Change change,
                     std::uint64_t value, std::string_view whose) {
    TRY_VOID(check_offered(gpu, abilities, change, whose));
    const Ability& ability = abilities[change];
    const std::string what = fmt::format("{}: {}{}: {}", describe(gpu, abilities), words_of(change),
                                         of_vf(whose), value);
    if (value < ability.min || value > ability.max)
        return fail(ErrorId::OutOfRange,
                    fmt::format("{} is not in {} to {}", what, ability.min, ability.max));
    const std::uint64_t below = value / ability.unit * ability.unit;
    if (below == value) return {};
    return fail(ErrorId::OutOfRange, fmt::format("{} is not a multiple of {}; {} or {} would fit",
                                                 what, ability.unit, below, below + ability.unit));
}

}  // namespace vgpu::daemon
