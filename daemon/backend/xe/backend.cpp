// SPDX-License-Identifier: MIT
#include "daemon/backend/xe/backend.h"

#include <fmt/format.h>
#include <algorithm>

namespace vgpu::daemon::xe {

namespace {

constexpr std::uint64_t kQuantumUnitUs = 1000;

std::string name_of_function(std::uint32_t function) {
    return function == 0 ? "the PF" : fmt::format("vf{}", function);
}

}  // namespace

Result<> XeBackend::connect() {
    settings_ = {};
    quanta_ = {};
    in_force_.clear();
    largest_vram_bar_.reset();
    if (busy_) busy_->close();
    return SriovBackend::connect();
}

void XeBackend::add_abilities(Abilities& abilities) const {
    const Level level = admin_.level();
    if (level == Level::None) return;
    abilities.pf_quantum_ms = link().config.pf_quantum_ms;
    for (const Change change :
         {Change::Weight, Change::MinPct, Change::LatencyMs, Change::MaxGapMs})
        abilities[change] = {
            .needs = link().config.accepts_approximations ? Needs::Nothing : Needs::Never,
            .is_approximate = true};
    abilities[Change::QuantumUs] = {
        .needs = Needs::Nothing, .unit = kQuantumUnitUs, .max = kMaxQuantumMs * kQuantumUnitUs};
    abilities[Change::PreemptTimeoutMs].needs = Needs::Nothing;
    abilities[Change::Stop].needs = Needs::Nothing;
    if (level != Level::Vram) return;
    const std::uint64_t unit = admin_.vram_unit();
    abilities[Change::VramBytes] = {.needs = Needs::VfIdle, .unit = unit, .min = unit};
}

void XeBackend::plan_vram(std::uint32_t vf, std::uint64_t bytes) {
    settings_.vram_bytes.erase(vf);
    if (bytes != 0) settings_.vram_bytes[vf] = bytes;
}

/// If a VF has a planned quota, xe would give the VFs without one no VRAM.
Result<> XeBackend::keep_vram(std::span<const std::uint32_t> vfs) {
    if (settings_.vram_bytes.empty()) return {};
    for (const std::uint32_t vf : vfs) {
        if (settings_.vram_bytes.contains(vf)) continue;
        TRY(const auto now, admin_.vram(vf));
        const std::uint64_t bytes = now.value_or(0);
        if (bytes == 0)
            return fail(ErrorId::PfRefused,
                        fmt::format("vf{} would lose its VRAM, because the driver does not say how "
                                    "much it has; first give the VF a VRAM size",
                                    vf));
        settings_.kept_vram_bytes[vf] = bytes;
    }
    return {};
}

/// Writes the quota only if another quota is in force, so that an open VF with the requested quota
/// can be taken over.
Result<> XeBackend::set_resources(const vgpu_pf_provision& requested, const sriov::VfFunction& vf) {
    TRY(const auto now, admin_.vram(vf.vf));
    if (requested.vram_bytes == 0 && now && *now == 0 && !link().config.is_observing)
        return fail(ErrorId::OutOfRange,
                    fmt::format("vf{} requires a VRAM size, because other VFs have one, and the "
                                "driver then gives it no VRAM by default: set a multiple of {} "
                                "bytes",
                                vf.vf, admin_.vram_unit()));
    if (requested.vram_bytes == 0) return {};
    if (now != requested.vram_bytes) {
        if (vf.use != sriov::VfUse::Closed)
            return fail(ErrorId::VfsInUse,
                        fmt::format("the VRAM of a VF changes only while it is closed, but {}",
                                    describe_use(vf)));
        TRY_VOID(link().pf->reset(vf.vf, [&]() -> Result<> {
            TRY_VOID(admin_.set_vram(vf.vf, requested.vram_bytes));
            return {};
        }));
    }
    settings_.vram_bytes[vf.vf] = requested.vram_bytes;
    return {};
}

Result<> XeBackend::free_resources(std::uint32_t vf) {
    settings_.timings.erase(vf);
    const bool has_quota = settings_.vram_bytes.erase(vf) + settings_.kept_vram_bytes.erase(vf) > 0;
    if (!has_quota || admin_.level() != Level::Vram) return {};
    TRY_VOID(admin_.set_vram(vf, 0));
    return {};
}

Result<> XeBackend::set_shares(std::span<const VfShare> vfs) {
    if (admin_.level() == Level::None) return SriovBackend::set_shares(vfs);
    // Write nothing if vgpud has no VFs, so that kernels from 7.2 on can set their defaults: they
    // do so only while no function has a value.
    if (vfs.empty()) {
        settings_.timings.clear();
        return {};
    }
    TRY(quanta_, quanta_of(vfs, link().config.pf_quantum_ms));
    settings_.timings = {{0, {quanta_.pf_quantum_ms, quanta_.pf_preempt_timeout_us}}};
    for (const VfQuantum& vf : quanta_.vfs)
        settings_.timings[vf.vf] = {
            .quantum_ms = vf.quantum_ms,
            .preempt_timeout_us = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(vf.preempt_timeout_us, kMaxPreemptTimeoutUs))};
    for (const auto& [function, timing] : settings_.timings) {
        drift_.forget(name_of_function(function));
        TRY_VOID(admin_.set_timing(function, timing));
    }
    return {};
}

Result<GpuFacts> XeBackend::get_info() {
    TRY(GpuFacts facts, SriovBackend::get_info());
    if (admin_.level() == Level::Vram) {
        TRY(facts.vram, vram_facts(facts));
    }
    read_timings(facts.enabled_vfs);
    if (busy_ && in_force_.size() == functions_) count_busy_time();
    if (!link().config.is_observing) check_drift();
    return facts;
}

void XeBackend::count_busy_time() {
    busy_->update(in_force_);
    if (const std::string problem = busy_->take_problem(); !problem.empty())
        add_notice(0, NoticeKind::DriverChanged,
                   fmt::format("the busy time of VFs of {} is unknown: {}", link().config.address,
                               problem));
}

Result<VfFacts> XeBackend::get_vf(std::uint32_t vf) {
    TRY(VfFacts facts, SriovBackend::get_vf(vf));
    if (const auto busy = busy_ ? busy_->of(vf) : std::nullopt; busy && facts.generation != 0)
        facts.service_ns = static_cast<std::uint64_t>(busy->count());
    return facts;
}

/// VRAM that is given to a VF is not free, even if the VF does not belong to vgpud.
Result<VramFacts> XeBackend::vram_facts(const GpuFacts& facts) {
    VramFacts vram{.bytes = link().config.vram_bytes};
    if (vram.bytes == 0) {
        if (!largest_vram_bar_) {
            TRY(largest_vram_bar_, admin_.largest_vram_bar());
        }
        vram.bytes = *largest_vram_bar_;
    }
    std::uint64_t given = 0;
    for (std::uint32_t vf = 1; vf <= facts.enabled_vfs; ++vf) {
        TRY(const auto bytes, admin_.vram(vf));
        given += bytes.value_or(0);
    }
    vram.free_bytes = vram.largest_free = vram.bytes - std::min(vram.bytes, given);
    return vram;
}

/// Reads the timings in force. Leaves out a function whose timing cannot be read now; the next call
/// tries again.
void XeBackend::read_timings(std::uint32_t vfs) {
    in_force_.clear();
    functions_ = vfs + 1;
    if (admin_.level() == Level::None) return;
    for (std::uint32_t function = 0; function <= vfs; ++function)
        if (const auto now = admin_.timing(function)) in_force_[function] = *now;
}

std::optional<DriverTiming> XeBackend::driver_timing_of(std::uint32_t vf) const {
    const auto own = in_force_.find(vf);
    if (own == in_force_.end()) return {};
    DriverTiming facts{.quantum_us = std::uint64_t{own->second.quantum_ms} * kQuantumUnitUs,
                       .preempt_timeout_us = own->second.preempt_timeout_us};
    if (in_force_.size() != functions_) return facts;
    std::uint64_t wait_us = in_force_.size() * std::uint64_t{kSwitchUs};
    for (const auto& [function, other] : in_force_) {
        if (function == vf) continue;
        if (other.quantum_ms == 0 || other.preempt_timeout_us == 0) return facts;
        wait_us += std::uint64_t{other.quantum_ms} * kQuantumUnitUs + other.preempt_timeout_us;
    }
    facts.worst_wait_us = wait_us;
    return facts;
}

void XeBackend::check_drift() {
    for (const auto& [function, requested] : settings_.timings) check_drift(function, requested);
}

void XeBackend::check_drift(std::uint32_t function, const Timing& requested) {
    using Verdict = sriov::DriftGuard::Verdict;
    const auto now = in_force_.find(function);
    if (now == in_force_.end() || now->second == requested) return;
    const std::string name = name_of_function(function);
    const Verdict verdict = drift_.on_difference(name, clock_.now());
    const std::string what = fmt::format(
        "another program gave {} of {} a quantum of {} ms and a preempt time-out of {} us", name,
        link().config.address, now->second.quantum_ms, now->second.preempt_timeout_us);
    if (verdict == Verdict::Abandon)
        add_notice(
            function, NoticeKind::DriverChanged,
            fmt::format(
                "{}, again; vgpud no longer restores it. Stop the other program, or set the VF "
                "again",
                what));
    if (verdict != Verdict::Restore) return;
    const auto back = admin_.set_timing(function, requested);
    add_notice(function, NoticeKind::DriverChanged,
               back ? fmt::format("{}; vgpud wrote {} ms and {} us again", what,
                                  requested.quantum_ms, requested.preempt_timeout_us)
                    : fmt::format("{}; {}", what, back.error().cause));
}

}  // namespace vgpu::daemon::xe
