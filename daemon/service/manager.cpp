// SPDX-License-Identifier: MIT
#include "daemon/service/manager.h"

#include "text/number.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <utility>

namespace vgpu::daemon {

namespace {

constexpr Range kQuanta{scheduler::kMinQuantumUs, scheduler::kMaxQuantumUs};
constexpr Range kGaps{kMinGapMs, kMaxGapMs};

/// Options of control actions. `force` pauses or stops a VF that a client has open, or resets a VF
/// that is claimed. `owner` names the owner on whose behalf a VF is reset.
constexpr std::array<std::string_view, 1> kStopOptions{"force"};
constexpr std::array<std::string_view, 2> kResetOptions{"force", "owner"};
constexpr std::array<std::string_view, 0> kNoOptions{};

std::span<const std::string_view> options_of(vgpu_pf_control_action action) {
    if (action == VGPU_PF_RESET) return kResetOptions;
    if (action == VGPU_PF_PAUSE || action == VGPU_PF_STOP) return kStopOptions;
    return kNoOptions;
}

/// The value of the option `name`; none if the option is absent. OutOfRange if the value is outside
/// `range` or does not fit in 32 bits.
Result<std::optional<std::uint32_t>> number32(const OptionReader& reader, const std::string& name,
                                              Range range) {
    range.max = std::min<std::uint64_t>(range.max, UINT32_MAX);
    TRY(const auto number, reader.number(name, range));
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

Result<std::optional<std::string>> name_option(const OptionReader& reader) {
    TRY(auto name, reader.text("name"));
    if (name && !is_valid_name(*name))
        return fail(ErrorId::InvalidName,
                    fmt::format("'{}' is not a valid name for a VF", name->substr(0, 64)));
    return name;
}

/// Returns `names` and the keys of all settings of a VF.
std::vector<std::string_view> with_settings(std::span<const std::string_view> names) {
    std::vector<std::string_view> all(names.begin(), names.end());
    const auto settings = setting_keys();
    all.insert(all.end(), settings.begin(), settings.end());
    return all;
}

Result<Requester> read_requester(const OptionReader& reader) {
    TRY(const bool is_forced, reader.flag("force"));
    TRY(const auto owner, reader.text("owner"));
    return Requester{.owner = owner.value_or(""), .force = is_forced ? Force::Yes : Force::No};
}

Result<CreateRequest> create_request(const Options& options) {
    constexpr std::array<std::string_view, 4> kKnown{"name", "vram_bytes", "cu_mask",
                                                     "doorbell_pages"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(with_settings(kKnown)));
    TRY(const auto name, name_option(reader));
    TRY(const auto vram_bytes, reader.number("vram_bytes", {1, 1ull << 50}));
    TRY(const auto cu_mask, reader.number("cu_mask", {}));
    TRY(const auto doorbell_pages, number32(reader, "doorbell_pages", {}));
    TRY(const VfChange settings, read_settings(reader));
    CreateRequest request{.spec = {.name = name.value_or(""),
                                   .resources = {.vram_bytes = vram_bytes.value_or(0),
                                                 .cu_mask = cu_mask.value_or(0),
                                                 .doorbell_pages = doorbell_pages.value_or(0)}}};
    apply(settings, request.spec);
    return request;
}

}  // namespace

std::string path_of(const Target& target) {
    return fmt::format("{}/vf{}", target.gpu, target.vf);
}

tl::unexpected<Error> ambiguous(std::string_view name, std::span<const Target> found) {
    std::vector<std::string> paths;
    for (const Target& target : found) paths.push_back(path_of(target));
    return fail(ErrorId::AmbiguousName, fmt::format("'{}' is the name of {} VFs: {}", name,
                                                    found.size(), fmt::join(paths, ", ")));
}

GpuHost* Manager::find_gpu(const std::string& id) const {
    const auto at = std::find_if(gpus_.begin(), gpus_.end(),
                                 [&id](const auto& gpu) { return gpu->id() == id; });
    return at == gpus_.end() ? nullptr : at->get();
}

void Manager::finish() {
    for (const auto& gpu : gpus_) gpu->finish();
    find_clashes();
}

std::string Manager::clash_of(const std::string& name, const Target& own,
                              const StateStore::Names& names) const {
    const std::string advice =
        fmt::format("; use {}/vf{} until one of them has another name", own.gpu, own.vf);
    if (find_gpu(name) != nullptr)
        return fmt::format("its name '{}' is also the name of a GPU{}", name, advice);
    std::vector<std::string> others;
    const auto [begin, end] = names.equal_range(name);
    for (auto at = begin; at != end; ++at)
        if (const Target other{at->second.first, at->second.second}; other != own)
            others.push_back(path_of(other));
    if (others.empty()) return "";
    return fmt::format("its name '{}' is also the name of {}{}", name, fmt::join(others, ", "),
                       advice);
}

/// Finds VFs whose names are not unique, and emits an event for each VF that it did not find in the
/// last search. Two VFs can have one name because, for example, vgpud could not read the state file
/// of one VF when it gave the name to the other VF, or an operator restored or copied a state file.
void Manager::find_clashes() {
    if (clashes_version_ == store_.names_version()) return;
    clashes_version_ = store_.names_version();
    const StateStore::Names names = store_.names();
    std::map<Target, std::string> found;
    for (const auto& [name, gpu_and_vf] : names) {
        const Target own{gpu_and_vf.first, gpu_and_vf.second};
        const std::string clash = clash_of(name, own, names);
        if (clash.empty() || find_gpu(own.gpu) == nullptr) continue;
        if (!clashes_.contains(own)) emit(own, EventKind::NameClash, clash);
        found[own] = clash;
    }
    if (found == clashes_) return;
    clashes_ = std::move(found);
    for (const auto& gpu : gpus_) {
        std::map<std::uint32_t, std::string> own;
        for (const auto& [target, clash] : clashes_)
            if (target.gpu == gpu->id()) own[target.vf] = clash;
        gpu->ask<void>(
            [own](GpuModel& model) -> Result<> {
                model.set_name_clashes(own);
                return {};
            },
            [](const Result<>&) {});
    }
}

/// Tries GPU ids and paths before names. A path contains '/', which no VF name may contain. Finds
/// only VFs in the GPUs' snapshots, so VFs of an absent GPU are not found.
Result<Target> Manager::resolve(const std::string& text) const {
    if (find_gpu(text) != nullptr) return Target{.gpu = text};
    const std::size_t slash = text.find("/vf");
    if (slash != std::string::npos) {
        const GpuHost* gpu = find_gpu(text.substr(0, slash));
        const auto vf = text::number_in<std::uint32_t>(std::string_view(text).substr(slash + 3));
        if (gpu != nullptr && vf && gpu->snapshot()->has_vf(*vf))
            return Target{.gpu = gpu->id(), .vf = *vf};
    }
    const auto uuid = parse_uuid(text);
    std::vector<std::string> names;
    std::vector<Target> found;
    for (const auto& gpu : gpus_) {
        names.push_back(gpu->id());
        const auto seen = gpu->snapshot();
        for (const auto& [vf, view] : seen->vfs) {
            const Target target{.gpu = gpu->id(), .vf = vf};
            if (view.record.spec.name == text || (uuid && view.record.spec.uuid == *uuid))
                found.push_back(target);
            names.push_back(view.record.spec.name);
            names.push_back(path_of(target));
        }
    }
    if (found.size() == 1) return found.front();
    const std::string shown = text.substr(0, 64);
    if (!found.empty()) return ambiguous(shown, found);
    const std::vector<std::string_view> known(names.begin(), names.end());
    return fail(ErrorId::NoSuchVf,
                fmt::format("there is no GPU or VF '{}'{}", shown, did_you_mean(shown, known)));
}

std::set<std::string> Manager::known_gpus() const {
    const std::vector<std::string> recorded = store_.gpus();
    std::set<std::string> ids(recorded.begin(), recorded.end());
    for (const auto& gpu : gpus_) ids.insert(gpu->id());
    return ids;
}

std::vector<std::string> Manager::gpu_ids() const {
    std::vector<std::string> ids;
    for (const auto& gpu : gpus_) ids.push_back(gpu->id());
    return ids;
}

Result<GpuHost*> Manager::gpu_of(const std::string& id) const {
    if (GpuHost* gpu = find_gpu(id)) return gpu;
    const std::vector<std::string> ids = gpu_ids();
    const std::vector<std::string_view> known(ids.begin(), ids.end());
    const std::string shown = id.substr(0, 64);
    return fail(ErrorId::NoSuchGpu,
                fmt::format("there is no GPU '{}'{}", shown, did_you_mean(shown, known)));
}

Result<> Manager::name_is_free(const std::string& name, const Target& except) const {
    for (const std::string& gpu : known_gpus()) {
        if (gpu == name) return fail(ErrorId::NameTaken, fmt::format("'{}' is a GPU", name));
        // Refuse all names that begin with "GPU-vf", except that VF N may have its default name
        // "GPU-vfN".
        if (name.starts_with(gpu + "-vf") && name != fmt::format("{}-vf{}", except.gpu, except.vf))
            return fail(ErrorId::NameTaken,
                        fmt::format("'{}' is reserved for VFs without a name", name));
    }
    const StateStore::Names names = store_.names();
    const auto [begin, end] = names.equal_range(name);
    for (auto at = begin; at != end; ++at) {
        const Target other{at->second.first, at->second.second};
        if (other == except) continue;
        const std::string_view absent_note =
            find_gpu(other.gpu) == nullptr ? ", on an absent GPU" : "";
        return fail(ErrorId::NameTaken,
                    fmt::format("'{}' is the name of {}{}", name, path_of(other), absent_note));
    }
    if (locked_names_.contains(name))
        return fail(ErrorId::NameTaken,
                    fmt::format("the name '{}' is locked by {}", name, holder_));
    if (pending_names_.contains(name))
        return fail(ErrorId::NameTaken,
                    fmt::format("another request is giving a VF the name '{}'", name));
    return {};
}

/// Refuses a name that a request under way is giving to a VF, because that request may add a record
/// with the name while the holder plans.
Result<> Manager::lock(const std::string& holder, const std::vector<std::string>& gpus,
                       const std::vector<std::string>& names) {
    if (!holder_.empty()) return fail(ErrorId::Busy, fmt::format("{} is under way", holder_));
    for (const std::string& name : names)
        if (pending_names_.contains(name))
            return fail(ErrorId::NameTaken,
                        fmt::format("another request is giving a VF the name '{}'", name));
    // If an apply is on record, the holder is its recovery (apply_recovery.h), which also needs the
    // claims that ended during the first run of the apply.
    if (!store_.apply()) ended_claims_.clear();
    holder_ = holder;
    locked_gpus_ = {gpus.begin(), gpus.end()};
    locked_names_ = {names.begin(), names.end()};
    return {};
}

void Manager::lock_names(const std::vector<std::string>& names) {
    locked_names_.insert(names.begin(), names.end());
}

/// Lets a GPU's thread write the file, because the main loop must not wait for the disk. Any GPU
/// will do: takes the first one in state Ok, or else the first one.
void Manager::commit_apply(const std::optional<ApplyIntent>& apply, const Done<>& done) {
    const auto serving = std::find_if(gpus_.begin(), gpus_.end(), [](const auto& gpu) {
        return gpu->snapshot()->gpu.state == GpuState::Ok;
    });
    if (gpus_.empty()) return done(store_.commit_apply(apply));
    GpuHost& gpu = serving == gpus_.end() ? *gpus_.front() : **serving;
    gpu.ask<void>([this, apply](GpuModel&) { return store_.commit_apply(apply); }, done);
}

void Manager::unlock() {
    holder_.clear();
    locked_gpus_.clear();
    locked_names_.clear();
}

Result<> Manager::not_locked(const std::string& gpu) const {
    if (!locked_gpus_.contains(gpu)) return {};
    return fail(ErrorId::Busy, fmt::format("{} is being changed by {}", gpu, holder_));
}

/// Adds `claim` to ended_claims_ if its GPU is locked and the claim is no longer on record. Ignores
/// a claim that is newer than the apply's plan, because the apply recreates no VF with such a
/// claim.
void Manager::record_end(const EndedClaim& claim) {
    if (!locked_gpus_.contains(claim.gpu)) return;
    for (const auto& [vf, record] : store_.gpu(claim.gpu).vfs)
        if (record.owner.generation == claim.generation) return;  // the claim has not ended
    const auto apply = store_.apply();
    if (apply && !claims_before(*apply, claim.gpu, claim.owner).contains(claim.generation)) return;
    ended_claims_.insert(claim);
}

/// Does nothing if no apply is on record: then no apply has destroyed a VF, and start_release()
/// records which of the owner's claims end.
void Manager::end_claims(const std::string& owner) {
    const auto apply = store_.apply();
    if (!apply) return;
    for (const std::string& gpu : locked_gpus_)
        for (const std::uint64_t generation :
             claims_before(*apply, gpu, owner, Claims::NotPersistent))
            record_end({.gpu = gpu, .owner = owner, .generation = generation});
}

bool Manager::has_ended(const std::string& gpu, const OwnerRecord& claim) const {
    return std::any_of(ended_claims_.begin(), ended_claims_.end(), [&](const EndedClaim& ended) {
        return ended.gpu == gpu && ended.generation == claim.generation &&
               is_same_owner(ended.owner, claim.name);
    });
}

/// Reserves `name`. Returns a callback that frees the name, then calls `done`.
template <typename T> Done<T> Manager::reserve_name(const std::string& name, Done<T> done) {
    if (name.empty()) return done;
    // The main loop keeps these names, because each GPU's thread sees only the requests to its GPU.
    pending_names_.insert(name);
    return [this, name, done = std::move(done)](Result<T> result) {
        pending_names_.erase(name);
        done(std::move(result));
    };
}

/// The GPU for a new VF: `gpu`, or NoSuchGpu. If `gpu` is empty: of the GPUs in state Ok that are
/// not locked and have a writable state file, the one that can give a VF the most VRAM. If there is
/// none: Busy if a GPU is locked, StateReadOnly or StateNewer if the state file of a GPU is not
/// writable, else PfLost.
Result<GpuHost*> Manager::gpu_for_new_vf(const std::string& gpu) const {
    if (!gpu.empty()) return gpu_of(gpu);
    GpuHost* best = nullptr;
    std::uint64_t max = 0;
    for (const auto& one : gpus_) {
        const auto seen = one->snapshot();
        if (seen->gpu.state != GpuState::Ok || store_.is_read_only(one->id()) ||
            !not_locked(one->id()))
            continue;
        if (best != nullptr && seen->vram_available <= max) continue;
        best = one.get();
        max = seen->vram_available;
    }
    if (best != nullptr) return best;
    for (const auto& one : gpus_) TRY_VOID(not_locked(one->id()));
    for (const auto& one : gpus_) TRY_VOID(store_.writable(one->id()));
    return fail(ErrorId::PfLost, "no GPU is in service now");
}

Result<> Manager::start_release(const Target& target, const std::string& owner,
                                std::uint64_t generation, AfterRelease after, const Done<>& done) {
    TRY_VOID(check_owner_name(owner));
    TRY(GpuHost * gpu, gpu_of(target.gpu));
    gpu->ask<void>([vf = target.vf, owner, generation,
                    after](GpuModel& model) { return model.release(vf, owner, generation, after); },
                   [this, gpu = target.gpu, owner, generation, done](const Result<>& released) {
                       // NoSuchVf: an apply may have destroyed the VF, and may recreate it
                       if (released || released.error().id == ErrorId::NoSuchVf)
                           record_end({.gpu = gpu, .owner = owner, .generation = generation});
                       done(released);
                   });
    return {};
}

void Manager::create(const std::string& gpu, const Options& options, Done<Target> done) {
    or_refuse(done, [&]() -> Result<> {
        TRY(const CreateRequest request, create_request(options));
        TRY(GpuHost * chosen, gpu_for_new_vf(gpu));
        TRY_VOID(not_locked(chosen->id()));
        const std::string& name = request.spec.name;
        if (!name.empty()) TRY_VOID(name_is_free(name, {}));
        // The lambda captures by value, because it runs later, in the GPU's thread.
        chosen->ask<Target>(
            [request, id = chosen->id()](GpuModel& model) -> Result<Target> {
                TRY(const std::uint32_t vf, model.create(request));
                return Target{.gpu = id, .vf = vf};
            },
            reserve_name(name, done));
        return {};
    });
}

void Manager::set_vf(const Target& target, const Options& options, Done<> done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 3> kKnown{"name", "owner", "force"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(with_settings(kKnown)));
        TRY(const auto name, name_option(reader));
        TRY(VfChange change, read_settings(reader));
        TRY(const Requester requester, read_requester(reader));
        TRY(GpuHost * gpu, gpu_of(target.gpu));
        TRY_VOID(not_locked(target.gpu));
        if (name) {
            TRY_VOID(name_is_free(*name, target));
            change.to.name = *name;
            change.given.insert("name");
        }
        gpu->ask<void>([change, vf = target.vf,
                        requester](GpuModel& model) { return model.change(vf, change, requester); },
                       reserve_name(name.value_or(""), done));
        return {};
    });
}

void Manager::set_gpu(const Target& target, const Options& options, Done<> done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 2> kKnown{"quantum_us", "max_gap_ms"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY(const auto quantum_us, number32(reader, "quantum_us", kQuanta));
        TRY(const auto max_gap_ms, number32(reader, "max_gap_ms", kGaps));
        TRY(GpuHost * gpu, gpu_of(target.gpu));
        TRY_VOID(not_locked(target.gpu));
        const GpuChange change{.quantum_us = quantum_us, .max_gap_ms = max_gap_ms};
        gpu->ask<void>([change](GpuModel& model) { return model.change_gpu(change); }, done);
        return {};
    });
}

void Manager::destroy(const Target& target, const Options& options, Done<std::uint32_t> done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 2> kKnown{"force", "owner"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY(const Requester requester, read_requester(reader));
        TRY(GpuHost * gpu, gpu_of(target.gpu));
        TRY_VOID(not_locked(target.gpu));
        gpu->ask<std::uint32_t>(
            [vf = target.vf, requester](GpuModel& model) -> Result<std::uint32_t> {
                const std::uint32_t generation =
                    model.has_vf(vf) ? model.view(vf).active.generation : 0;
                TRY_VOID(model.destroy(vf, requester.force, requester.owner));
                return generation;
            },
            done);
        return {};
    });
}

void Manager::control(const Target& target, vgpu_pf_control_action action, const Options& options,
                      Done<> done) {
    or_refuse(done, [&]() -> Result<> {
        const OptionReader reader(options);
        TRY_VOID(reader.only(options_of(action)));
        TRY(const Requester requester, read_requester(reader));
        TRY(GpuHost * gpu, gpu_of(target.gpu));
        gpu->ask<void>(
            [vf = target.vf, action, requester](GpuModel& model) {
                return model.control(vf, action, requester.force, requester.owner);
            },
            done);
        return {};
    });
}

void Manager::claim(const Target& target, const std::string& owner, const Options& options,
                    const Done<std::uint64_t>& done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 3> kKnown{"generation", "lease_s", "persistent"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY_VOID(check_owner_name(owner));
        TRY(const auto generation, reader.number("generation", {}));
        TRY(const auto lease_s, number32(reader, "lease_s", {0, kMaxLeaseS}));
        TRY(GpuHost * gpu, gpu_of(target.gpu));
        ClaimRequest request{
            .owner = owner, .generation = generation, .lease_s = lease_s.value_or(0)};
        if (options.contains("persistent")) {
            TRY(request.is_persistent, reader.flag("persistent"));
        }
        gpu->ask<std::uint64_t>(
            [vf = target.vf, request](GpuModel& model) { return model.claim(vf, request); }, done);
        return {};
    });
}

void Manager::release(const Target& target, const std::string& owner, std::uint64_t generation,
                      const Options& options, const Done<>& done) {
    or_refuse(done, [&]() -> Result<> {
        constexpr std::array<std::string_view, 1> kKnown{"scrub"};
        const OptionReader reader(options);
        TRY_VOID(reader.only(kKnown));
        TRY(const bool scrubs, reader.flag("scrub"));
        return start_release(target, owner, generation,
                             scrubs ? AfterRelease::Scrub : AfterRelease::Keep, done);
    });
}

void Manager::release_after_stop(const Target& target, const std::string& owner,
                                 std::uint64_t generation, const Done<>& done) {
    or_refuse(done, [&] {
        return start_release(target, owner, generation, AfterRelease::OwnerStopped, done);
    });
}

void Manager::emit(EventKind kind, std::string text) {
    admin_events_.push_back({.gpu = "vgpud", .vf = 0, .kind = kind, .text = std::move(text)});
}

void Manager::emit(const Target& target, EventKind kind, std::string text) {
    admin_events_.push_back(
        {.gpu = target.gpu, .vf = target.vf, .kind = kind, .text = std::move(text)});
}

std::vector<AdminEvent> Manager::take_admin_events() {
    std::vector<AdminEvent> all = std::exchange(admin_events_, {});
    for (const auto& gpu : gpus_)
        for (AdminEvent& admin_event : gpu->take_admin_events())
            all.push_back(std::move(admin_event));
    return all;
}

}  // namespace vgpu::daemon
