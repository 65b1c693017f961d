// SPDX-License-Identifier: MIT
#include "daemon/backend/xe/busy_time.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace vgpu::daemon::xe {

namespace {

/// DRM_XE_ENGINE_CLASS_RENDER and _COMPUTE of the uapi of xe. The fields for the GT and the engine
/// instance stay 0, because only instance 0 of GT 0 is counted.
constexpr std::array<std::uint64_t, 2> kEngineClasses{0, 4};

}  // namespace

/// The number after `prefix` in the text of a file, such as "event=0x02". The first number if the
/// text has a range, such as "config:44-59".
Result<std::uint64_t> BusyTime::number_in(const std::string& file, std::string_view prefix) {
    TRY(const std::string text, sriov::checked(files_.read(file)));
    if (!text.starts_with(prefix))
        return fail(ErrorId::PfRefused,
                    fmt::format("{} reads '{}', but '{}NUMBER' was expected", file, text, prefix));
    const std::string_view number = std::string_view(text).substr(prefix.size());
    return sriov::parse_number(file, number.substr(0, number.find('-')));
}

Result<BusyTime::Pmu> BusyTime::find_pmu() {
    std::string name = address_;
    std::replace(name.begin(), name.end(), ':', '_');
    const std::string folder = fmt::format("/sys/bus/event_source/devices/xe_{}/", name);
    if (!files_.has(folder + "format/function"))
        return fail(ErrorId::NotOffered,
                    fmt::format("there is no {}format/function, so this kernel does not count the "
                                "busy time of VFs",
                                folder));
    Pmu pmu;
    TRY(const std::uint64_t type,
        sriov::read_number(files_, folder + "type", std::uint64_t{UINT32_MAX}));
    pmu.type = static_cast<std::uint32_t>(type);
    TRY(const std::uint64_t cpu, number_in(folder + "cpumask", ""));
    pmu.cpu = static_cast<int>(cpu);
    TRY(pmu.active, number_in(folder + "events/engine-active-ticks", "event="));
    TRY(pmu.total, number_in(folder + "events/engine-total-ticks", "event="));
    constexpr std::uint64_t kLastBit = 63;
    TRY(const std::uint64_t engine_class, number_in(folder + "format/engine_class", "config:"));
    TRY(const std::uint64_t function, number_in(folder + "format/function", "config:"));
    pmu.engine_class = static_cast<unsigned>(std::min(engine_class, kLastBit));
    pmu.function = static_cast<unsigned>(std::min(function, kLastBit));
    return pmu;
}

Result<BusyTime::Vf> BusyTime::open(std::uint32_t vf) {
    Vf opened{.engines = {}, .busy = {}, .read_at = clock_.now()};
    int error = ENOENT;
    for (const std::uint64_t engine_class : kEngineClasses) {
        const std::uint64_t engine = engine_class << pmu_->engine_class | std::uint64_t{vf}
                                                                              << pmu_->function;
        const auto active = perf_->open(pmu_->type, pmu_->active | engine, pmu_->cpu);
        const auto total = perf_->open(pmu_->type, pmu_->total | engine, pmu_->cpu);
        if (active && total) {
            opened.engines.push_back({.active = *active, .total = *total});
            continue;
        }
        error = active ? total.error() : active.error();
        if (active) perf_->close(*active);
        if (total) perf_->close(*total);
    }
    if (!opened.engines.empty()) return opened;
    return fail(
        ErrorId::PfRefused,
        fmt::format("the counters of vf{} cannot be opened ({}); vgpud needs CAP_PERFMON and "
                    "the system call perf_event_open",
                    vf, std::strerror(error)));
}

/// Adds the busy time since the last read to `vf.busy`. `ticks_per_total` is Σ q / q: the ticks of
/// the engine for each tick of engine-total-ticks. If VFs were disabled since the last read, the
/// counters have begun again, and the interval does not count.
Result<> BusyTime::read(Vf& vf, double ticks_per_total) {
    double busiest = 0;
    for (Engine& engine : vf.engines) {
        const auto active = perf_->read(engine.active);
        const auto total = perf_->read(engine.total);
        if (!active || !total)
            return fail(ErrorId::PfRefused,
                        fmt::format("a counter of the busy time cannot be read ({})",
                                    std::strerror(active ? total.error() : active.error())));
        // the kernel adds differences, so a counter that begins again goes backwards modulo 2^64
        const auto busy = static_cast<std::int64_t>(*active - engine.active_before);
        const auto share = static_cast<std::int64_t>(*total - engine.total_before);
        const double all = static_cast<double>(share) * ticks_per_total;
        if (busy > 0 && all > 0)
            busiest = std::max(busiest, std::min(1.0, static_cast<double>(busy) / all));
        engine.active_before = *active;
        engine.total_before = *total;
    }
    const Nanoseconds now = clock_.now();
    const auto elapsed = static_cast<double>((now - vf.read_at).count());
    vf.busy += Nanoseconds(std::llround(elapsed * busiest));
    vf.read_at = now;
    return {};
}

void BusyTime::update(const std::map<std::uint32_t, Timing>& timings) {
    double sum = 0;
    for (const auto& [function, timing] : timings) sum += timing.quantum_ms;
    // a quantum of 0 is unlimited, and the ratio of the quanta is then unknown
    const bool have_quanta = std::ranges::all_of(
        timings, [](const auto& function) { return function.second.quantum_ms != 0; });
    std::erase_if(vfs_, [&](const auto& vf) {
        if (have_quanta && timings.contains(vf.first)) return false;
        close(vf.second);
        return true;
    });
    if (!have_quanta) return;
    const auto count = [&](std::uint32_t vf, std::uint32_t quantum_ms) -> Result<> {
        if (!pmu_) {
            TRY(pmu_, find_pmu());
        }
        if (!vfs_.contains(vf)) {
            TRY(vfs_[vf], open(vf));
        }
        return read(vfs_.at(vf), sum / quantum_ms);
    };
    for (const auto& [function, timing] : timings) {
        if (function == 0) continue;
        const auto counted = count(function, timing.quantum_ms);
        if (counted) continue;
        close();
        if (last_problem_ != counted.error().cause) problem_ = counted.error().cause;
        last_problem_ = counted.error().cause;
        return;
    }
}

void BusyTime::close(const Vf& vf) {
    for (const Engine& engine : vf.engines) {
        perf_->close(engine.active);
        perf_->close(engine.total);
    }
}

void BusyTime::close() {
    for (const auto& [number, vf] : vfs_) close(vf);
    vfs_.clear();
    pmu_.reset();
}

std::optional<Nanoseconds> BusyTime::of(std::uint32_t vf) const {
    const auto found = vfs_.find(vf);
    if (found == vfs_.end()) return {};
    return found->second.busy;
}

}  // namespace vgpu::daemon::xe
