// SPDX-License-Identifier: MIT
#include "daemon/service/manager.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>

namespace vgpu::daemon {

namespace {

constexpr Range kWeights{scheduler::kMinWeight, scheduler::kMaxWeight};
constexpr Range kQuanta{scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs};
constexpr Range kGaps{kMinGapMs, kMaxGapMs};

/// The digits of `text` as a VF number; nothing if it is no number.
std::optional<std::uint32_t> number_of(std::string_view text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return number;
}

Result<std::optional<std::uint32_t>> number32(const OptionReader& reader, const std::string& name,
                                              Range range) {
    range.most = std::min<std::uint64_t>(range.most, UINT32_MAX);
    TRY(const auto number, reader.number(name, range));
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

/// 0 stands for "the GPU's own".
Result<std::optional<std::uint32_t>> vf_quantum(const OptionReader& reader) {
    TRY(const auto zero_or_more, number32(reader, "quantum_us", {0, kQuanta.most}));
    if (zero_or_more && *zero_or_more == 0) return zero_or_more;
    return number32(reader, "quantum_us", kQuanta);
}

Result<std::optional<std::string>> name_option(const OptionReader& reader) {
    TRY(auto name, reader.text("name"));
    if (name && !is_valid_name(*name))
        return fail(ErrorId::InvalidName,
                    fmt::format("'{}' is no name for a VF", name->substr(0, 64)));
    return name;
}

Result<CreateRequest> create_request(const Options& options) {
    constexpr std::array<std::string_view, 6> kKnown{"name",       "vram_bytes", "weight",
                                                     "quantum_us", "cu_mask",    "doorbell_pages"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto name, name_option(reader));
    TRY(const auto vram_bytes, reader.number("vram_bytes", {1, 1ull << 50}));
    TRY(const auto weight, number32(reader, "weight", kWeights));
    TRY(const auto quantum_us, vf_quantum(reader));
    TRY(const auto cu_mask, reader.number("cu_mask", {}));
    TRY(const auto doorbell_pages, number32(reader, "doorbell_pages", {}));
    return CreateRequest{.name = name.value_or(""),
                         .vram_bytes = vram_bytes,
                         .weight = weight.value_or(scheduler::kDefaultWeight),
                         .quantum_us = quantum_us.value_or(0),
                         .cu_mask = cu_mask.value_or(0),
                         .doorbell_pages = doorbell_pages.value_or(0)};
}

}  // namespace

GpuModel* Manager::find_gpu(const std::string& id) const {
    const auto at = std::find_if(gpus_.begin(), gpus_.end(),
                                 [&id](const auto& gpu) { return gpu->id() == id; });
    return at == gpus_.end() ? nullptr : at->get();
}

void Manager::step() {
    for (const auto& gpu : gpus_) gpu->step();
}

Result<Target> Manager::resolve(const std::string& text) const {
    if (find_gpu(text) != nullptr) return Target{.gpu = text};
    const std::size_t slash = text.find("/vf");
    if (slash != std::string::npos) {
        const GpuModel* gpu = find_gpu(text.substr(0, slash));
        const auto vf = number_of(std::string_view(text).substr(slash + 3));
        if (gpu != nullptr && vf && gpu->has_vf(*vf)) return Target{.gpu = gpu->id(), .vf = *vf};
    }
    const auto uuid = parse_uuid(text);
    std::vector<std::string> names;
    for (const auto& gpu : gpus_) {
        names.push_back(gpu->id());
        for (const std::uint32_t vf : gpu->vfs()) {
            const VfRecord& record = gpu->record(vf);
            if (record.name == text || (uuid && record.uuid == *uuid))
                return Target{.gpu = gpu->id(), .vf = vf};
            names.push_back(record.name);
            names.push_back(fmt::format("{}/vf{}", gpu->id(), vf));
        }
    }
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string shown = text.substr(0, 64);
    return fail(ErrorId::NoSuchVf,
                fmt::format("there is no GPU or VF '{}'{}", shown, did_you_mean(shown, known)));
}

Result<GpuModel*> Manager::gpu_of(const Target& target) const {
    GpuModel* gpu = find_gpu(target.gpu);
    if (gpu == nullptr)
        return fail(ErrorId::NoSuchGpu,
                    fmt::format("there is no GPU '{}'", target.gpu.substr(0, 64)));
    return gpu;
}

Result<> Manager::name_is_free(const std::string& name, const Target& but) const {
    for (const auto& gpu : gpus_) {
        if (gpu->id() == name) return fail(ErrorId::NameTaken, fmt::format("'{}' is a GPU", name));
        if (name.starts_with(gpu->id() + "-vf") && name != fmt::format("{}-vf{}", but.gpu, but.vf))
            return fail(ErrorId::NameTaken,
                        fmt::format("'{}' is kept for VFs without a name of their own", name));
        for (const auto& [vf, record] : store_.gpu(gpu->id()).vfs)
            if (record.name == name && Target{gpu->id(), vf} != but)
                return fail(ErrorId::NameTaken,
                            fmt::format("'{}' is the name of {}/vf{}", name, gpu->id(), vf));
    }
    return {};
}

/// The GPU named, or the one with the most VRAM left for a VF.
Result<GpuModel*> Manager::gpu_for(const std::string& gpu) const {
    if (!gpu.empty()) return gpu_of({.gpu = gpu});
    GpuModel* best = nullptr;
    for (const auto& one : gpus_) {
        if (one->state() != GpuState::Ok) continue;
        if (best == nullptr || one->vram_available() > best->vram_available()) best = one.get();
    }
    if (best != nullptr) return best;
    return fail(ErrorId::PfLost, "no GPU is in service now");
}

Result<Target> Manager::create(const std::string& gpu, const Options& options) {
    TRY(const CreateRequest request, create_request(options));
    TRY(GpuModel * chosen, gpu_for(gpu));
    if (!request.name.empty()) TRY_VOID(name_is_free(request.name, {}));
    TRY(const std::uint32_t vf, chosen->create(request));
    return Target{.gpu = chosen->id(), .vf = vf};
}

Result<> Manager::set_vf(const Target& target, const Options& options) {
    constexpr std::array<std::string_view, 3> kKnown{"name", "weight", "quantum_us"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto name, name_option(reader));
    TRY(const auto weight, number32(reader, "weight", kWeights));
    TRY(const auto quantum_us, vf_quantum(reader));
    TRY(GpuModel * gpu, gpu_of(target));
    if (name) TRY_VOID(name_is_free(*name, target));
    return gpu->change(target.vf, {.name = name, .weight = weight, .quantum_us = quantum_us});
}

Result<> Manager::set_gpu(const Target& target, const Options& options) {
    constexpr std::array<std::string_view, 2> kKnown{"quantum_us", "max_gap_ms"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto quantum_us, number32(reader, "quantum_us", kQuanta));
    TRY(const auto max_gap_ms, number32(reader, "max_gap_ms", kGaps));
    TRY(GpuModel * gpu, gpu_of(target));
    return gpu->change_gpu({.quantum_us = quantum_us, .max_gap_ms = max_gap_ms});
}

Result<std::uint32_t> Manager::destroy(const Target& target) {
    TRY(GpuModel * gpu, gpu_of(target));
    const std::uint32_t generation =
        gpu->has_vf(target.vf) ? gpu->view(target.vf).live.generation : 0;
    TRY_VOID(gpu->destroy(target.vf));
    return generation;
}

Result<> Manager::control(const Target& target, vgpu_pf_control_action action,
                          const Options& options) {
    constexpr std::array<std::string_view, 1> kKnown{"force"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const bool force, reader.flag("force"));
    TRY(GpuModel * gpu, gpu_of(target));
    return gpu->control(target.vf, action, force ? Force::Yes : Force::No);
}

std::vector<Notice> Manager::take_notices() {
    std::vector<Notice> all;
    for (const auto& gpu : gpus_)
        for (Notice& notice : gpu->take_notices()) all.push_back(std::move(notice));
    return all;
}

}  // namespace vgpu::daemon
