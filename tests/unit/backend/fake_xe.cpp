// SPDX-License-Identifier: MIT
#include "tests/unit/backend/fake_xe.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <optional>

namespace vgpu::daemon::testing {

namespace {

constexpr std::uint64_t kBarAt = 0x60'0000'0000;

std::optional<std::uint64_t> number_of(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return value;
}

}  // namespace

FakeXe::FakeXe(FakeBus& bus, XeKernel kernel, unsigned total_vfs)
    : pf(bus, {.address = "0000:03:00.0",
               .driver = "xe",
               .host_vf_driver = "xe",
               .device = "0xe212",
               .pci_class = "0x030000",
               .total_vfs = total_vfs}),
      files_(bus.files()),
      kernel_(kernel),
      total_vfs_(total_vfs) {
    files_.add(pf.path("tile0/gt0/id"), "0");
    const std::string no_bar = "0x0000000000000000 0x0000000000000000 0x0000000000000000";
    files_.add(pf.path("resource"),
               fmt::format("0x00000000a0000000 0x00000000a0ffffff 0x0000000000140204\n{}\n"
                           "{:#018x} {:#018x} 0x000000000014220c\n{}",
                           no_bar, kBarAt, kBarAt + vram_total - 1, no_bar));
    pf.on_enable = [this](unsigned count) { return on_enable(count); };
    pf.on_disabled = [this] { release_all(); };
    pf.on_reset = [this](unsigned vf) {
        dirty_vram_.erase(vf);
        functions_[vf].stops = 0;
    };
    if (kernel_ == XeKernel::k617) return;
    for (unsigned number = 0; number <= total_vfs; ++number) add_profile(number);
    files_.add(path(".bulk_profile/sched_priority"),
               {.mode = kWriteOnly, .store = [this](const std::string& text) {
                    if (text != "low" && text != "normal") return EINVAL;
                    is_strict = text == "normal";
                    return 0;
                }});
}

std::string FakeXe::profile(unsigned function, const std::string& file) const {
    return path(function == 0 ? "pf/profile/" + file
                              : fmt::format("vf{}/profile/{}", function, file));
}

void FakeXe::add_profile(unsigned number) {
    constexpr std::uint64_t kMaxMs = 100'000, kMaxUs = 100'000'000;
    add_value(number, "exec_quantum_ms", &Function::quantum_ms, kMaxMs);
    add_value(number, "preempt_timeout_us", &Function::timeout_us, kMaxUs);
    add_priority(number, number == 0 ? kReadWrite : kReadOnly);
    if (number == 0) return;
    if (has_vram_quota()) add_vram(number);
    const auto stop = [this, number](const std::string& text) {
        if (number > enabled_) return EPERM;
        functions_[number].stops += text == "1" ? 1 : 0;
        return text == "0" || text == "1" ? 0 : EINVAL;
    };
    files_.add(path(fmt::format("vf{}/stop", number)), {.mode = kWriteOnly, .store = stop});
}

void FakeXe::add_value(unsigned number, const std::string& file, std::uint64_t Function::*member,
                       std::uint64_t max) {
    const auto show = [this, number, member] {
        return fmt::format("{}", functions_[number].*member);
    };
    const auto store = [this, number, member, max](const std::string& text) {
        const auto value = number_of(text);
        if (!value) return EINVAL;
        if (*value > UINT32_MAX) return ERANGE;
        functions_[number].*member = std::min(*value, max);
        return 0;
    };
    files_.add(profile(number, file), {.mode = kReadWrite, .show = show, .store = store});
}

void FakeXe::add_priority(unsigned number, unsigned mode) {
    const auto show = [this] { return std::string(is_strict ? "low [normal]" : "[low] normal"); };
    files_.add(profile(number, "sched_priority"), {.mode = mode, .show = show, .store = {}});
}

void FakeXe::add_vram(unsigned vf) {
    const auto show = [this, vf] { return fmt::format("{}", functions_[vf].vram); };
    const auto store = [this, vf](const std::string& text) { return store_vram(vf, text); };
    files_.add(profile(vf, "vram_quota"), {.mode = kReadWrite, .show = show, .store = store});
}

int FakeXe::store_vram(unsigned vf, const std::string& text) {
    const auto value = number_of(text);
    if (!value) return EINVAL;
    constexpr std::uint64_t kUnit = 2 * kMiB;
    const std::uint64_t rounded = (*value + kUnit - 1) / kUnit * kUnit;
    if (vram_given() - functions_[vf].vram + rounded > vram_total) return ENOSPC;
    functions_[vf].vram = rounded;
    if (rounded > 0) dirty_vram_.insert(vf);
    return 0;
}

std::uint64_t FakeXe::vram_given() const {
    std::uint64_t sum = 0;
    for (const auto& [number, function] : functions_) sum += function.vram;
    return sum;
}

bool FakeXe::has_any(unsigned count, std::uint64_t Function::*member) const {
    return std::any_of(functions_.begin(), functions_.end(), [&](const auto& entry) {
        return entry.first <= count && entry.second.*member != 0;
    });
}

int FakeXe::on_enable(unsigned count) {
    const bool has_timing =
        has_any(count, &Function::quantum_ms) || has_any(count, &Function::timeout_us);
    if (kernel_ == XeKernel::k619 && has_timing) return EUCLEAN;
    if (!has_any(count, &Function::vram)) {
        const std::uint64_t share = std::bit_floor(vram_total / (count + 1));
        for (unsigned vf = 1; vf <= count; ++vf) functions_[vf].vram = share;
    }
    constexpr std::uint64_t kDefaultMs = 16, kDefaultUs = 16'000;
    if (kernel_ == XeKernel::k702 && !has_timing)
        for (unsigned number = 0; number <= count; ++number) {
            functions_[number].quantum_ms = kDefaultMs;
            functions_[number].timeout_us = kDefaultUs;
        }
    for (unsigned vf = 1; vf <= count; ++vf)
        if (functions_[vf].vram > 0) dirty_vram_.insert(vf);
    enabled_ = count;
    return 0;
}

/// Values of VFs that were not enabled stay.
void FakeXe::release_all() {
    for (unsigned number = 0; number <= enabled_; ++number) functions_[number] = {};
    is_strict = false;
    enabled_ = 0;
}

void FakeXe::reload() {
    static_cast<void>(pf.set_count(0));
    enabled_ = total_vfs_;
    release_all();
}

}  // namespace vgpu::daemon::testing
