// SPDX-License-Identifier: MIT
#include "daemon/backend/xe/admin.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <sstream>

namespace vgpu::daemon::xe {

namespace {

constexpr std::uint64_t kTileUnit = 2ull << 20;
constexpr int kVramBar = 2;
constexpr std::string_view kQuantum = "exec_quantum_ms", kTimeout = "preempt_timeout_us",
                           kVram = "vram_quota", kPriority = "sched_priority";

/// The word in brackets: "low" for "[low] normal high"; empty if there is none.
std::string_view chosen_in(std::string_view text) {
    const std::size_t begin = text.find('['), end = text.find(']');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
    return text.substr(begin + 1, end - begin - 1);
}

}  // namespace

std::string_view name_of(Level level) {
    constexpr std::array<std::string_view, 3> kNames{"none", "schedule", "vram"};
    return kNames.at(static_cast<std::size_t>(level));
}

std::string XeAdmin::path(std::string_view file) const {
    return sriov::device_path(address_, fmt::format("sriov_admin/{}", file));
}

std::string XeAdmin::profile_path(std::uint32_t function, std::string_view file) const {
    return path(function == 0 ? fmt::format("pf/profile/{}", file)
                              : fmt::format("vf{}/profile/{}", function, file));
}

Level XeAdmin::level() const {
    if (!files_.is_writable(profile_path(1, kQuantum))) return Level::None;
    return files_.is_writable(profile_path(1, kVram)) ? Level::Vram : Level::Schedule;
}

std::uint64_t XeAdmin::vram_unit() const {
    std::uint64_t tiles = 0;
    while (files_.has(sriov::device_path(address_, fmt::format("tile{}", tiles)))) ++tiles;
    return kTileUnit * std::max<std::uint64_t>(1, tiles);
}

/// `resource` has a line "FIRST LAST FLAGS" for each BAR, with its first and last address. VRAM is
/// behind BAR 2 (drivers/gpu/drm/xe/regs/xe_bars.h).
Result<std::uint64_t> XeAdmin::vram_bar() const {
    const std::string file = sriov::device_path(address_, "resource");
    TRY(const std::string text, sriov::checked(files_.read(file)));
    std::istringstream lines(text);
    std::string line, first, last;
    for (int bar = 0; bar <= kVramBar; ++bar) std::getline(lines, line);
    std::istringstream(line) >> first >> last;
    TRY(const std::uint64_t begin, sriov::parse_number(file, first));
    TRY(const std::uint64_t end, sriov::parse_number(file, last));
    return end > begin ? end - begin + 1 : 0;
}

/// `resource2_resize`, which only a resizable BAR has, is a mask in hexadecimal: bit n is set if
/// the BAR can have 2^n MiB.
Result<std::uint64_t> XeAdmin::largest_vram_bar() const {
    constexpr unsigned kMiBShift = 20;
    TRY(const std::uint64_t now, vram_bar());
    const std::string file =
        sriov::device_path(address_, fmt::format("resource{}_resize", kVramBar));
    if (!files_.has(file)) return now;
    TRY(const std::string text, sriov::checked(files_.read(file)));
    TRY(const std::uint64_t sizes, sriov::parse_number(file, "0x" + text, UINT64_MAX >> kMiBShift));
    return std::max(now, std::bit_floor(sizes) << kMiBShift);
}

Result<std::uint64_t> XeAdmin::read(const std::string& file, std::uint64_t max) const {
    TRY(const std::string text, sriov::checked(files_.read_slow(file)));
    return sriov::parse_number(file, text, max);
}

Result<> XeAdmin::write_checked(const std::string& file, std::uint64_t requested) {
    TRY(const std::uint64_t before, read(file, UINT64_MAX));
    if (before == requested) return {};
    TRY_VOID(sriov::checked(files_.write(file, fmt::format("{}", requested))));
    TRY(const std::uint64_t now, read(file, UINT64_MAX));
    if (now == requested) return {};
    return fail(ErrorId::PfRefused, fmt::format("{} reads {} after {} was written; the driver "
                                                "limits it, or another program writes it",
                                                file, now, requested));
}

Result<std::optional<std::uint64_t>> XeAdmin::vram(std::uint32_t vf) const {
    const std::string file = profile_path(vf, kVram);
    if (!files_.has(file)) return std::optional<std::uint64_t>();
    TRY(const std::uint64_t bytes, read(file, UINT64_MAX));
    return std::optional(bytes);
}

Result<std::uint64_t> XeAdmin::set_vram(std::uint32_t vf, std::uint64_t bytes) {
    if (level() != Level::Vram)
        return fail(ErrorId::NotOffered,
                    fmt::format("there is no writable {}, so the VFs of {} have equal shares of "
                                "VRAM, or none of their own",
                                profile_path(vf, kVram), address_));
    const std::uint64_t unit = vram_unit(), requested = (bytes + unit - 1) / unit * unit;
    TRY_VOID(write_checked(profile_path(vf, kVram), requested));
    return requested;
}

Result<> XeAdmin::free_vram_above(std::uint32_t count) {
    for (std::uint32_t vf = count + 1; files_.has(profile_path(vf, kVram)); ++vf)
        TRY_VOID(write_checked(profile_path(vf, kVram), 0));
    return {};
}

Result<Timing> XeAdmin::timing(std::uint32_t function) const {
    Timing out;
    TRY(const auto quantum, read(profile_path(function, kQuantum), UINT32_MAX));
    TRY(const auto timeout, read(profile_path(function, kTimeout), UINT32_MAX));
    out.quantum_ms = static_cast<std::uint32_t>(quantum);
    out.preempt_timeout_us = static_cast<std::uint32_t>(timeout);
    return out;
}

Result<> XeAdmin::set_timing(std::uint32_t function, const Timing& requested) {
    TRY_VOID(write_checked(profile_path(function, kQuantum), requested.quantum_ms));
    return write_checked(profile_path(function, kTimeout), requested.preempt_timeout_us);
}

Result<bool> XeAdmin::is_strict() const {
    const std::string file = profile_path(1, kPriority);
    TRY(const std::string text, sriov::checked(files_.read_slow(file)));
    const std::string_view chosen = chosen_in(text);
    if (chosen == "normal" || chosen == "low") return chosen == "normal";
    return fail(ErrorId::PfRefused,
                fmt::format("{} reads '{}', but '[low] normal' or 'low [normal]' was expected",
                            file, text));
}

Result<> XeAdmin::end_strict() {
    TRY(const bool is_now, is_strict());
    if (!is_now) return {};
    return sriov::checked(files_.write(path(fmt::format(".bulk_profile/{}", kPriority)), "low"));
}

Result<> XeAdmin::stop(std::uint32_t vf) {
    return sriov::checked(files_.write(path(fmt::format("vf{}/stop", vf)), "1"));
}

}  // namespace vgpu::daemon::xe
