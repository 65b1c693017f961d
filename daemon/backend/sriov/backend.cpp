// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/backend.h"

#include "daemon/backend/sriov/discovery.h"
#include "daemon/backend/vf_limit.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <optional>

namespace vgpu::daemon::sriov {

namespace {

/// Checks that vgpud may drive this PF, and that the card is of the expected model, if the
/// configuration names one.
Result<> check_card(const SriovConfig& config, const PfFunction& facts) {
    const PfKind kind = kind_of(facts.driver);
    if (kind == PfKind::None)
        return fail(ErrorId::PfLost, fmt::format("{} cannot have VFs: {}", config.address,
                                                 fixed_count_reason(facts.driver)));
    if (kind == PfKind::Own)
        return fail(ErrorId::PfLost,
                    fmt::format("{} belongs to vgpu_pf; configure 'attach' with its /dev/vgpu-pfN "
                                "instead of 'pci'",
                                config.address));
    if (!config.model ||
        (config.model->vendor == facts.ids.vendor && config.model->device == facts.ids.device))
        return {};
    return fail(ErrorId::PfLost,
                fmt::format("{} is {}, but the configuration expects {:04x}:{:04x} (\"ids\"). "
                            "Nothing was written",
                            config.address, describe(facts.ids), config.model->vendor,
                            config.model->device));
}

}  // namespace

SriovLink::SriovLink(std::shared_ptr<Sysfs> writable_files, SriovConfig gpu_config)
    : files(std::move(writable_files)), config(std::move(gpu_config)) {
    if (config.is_observing) files = std::make_shared<ReadOnlySysfs>(files);
}

Result<SriovPf*> SriovLink::connected() {
    if (pf) return &*pf;
    return fail(ErrorId::PfLost, fmt::format("vgpud is not connected to {}", config.address));
}

/// Only reads files, and opens the uevent socket. If the configuration names no model, the first
/// connect() accepts any card; later ones accept only that card with that driver.
Result<> SriovBackend::connect() {
    disconnect();
    provisioned_.clear();
    scrubbed_.clear();
    foreign_change_.clear();
    TRY(const PfFunction facts, SriovPf::inspect(*link_->files, link_->config.address));
    TRY_VOID(check_card(link_->config, facts));
    const PfIdentity found{
        .address = link_->config.address, .ids = facts.ids, .driver = facts.driver};
    if (!link_->identity) link_->identity = found;
    SriovPf pf(*link_->files, *link_->identity);
    TRY_VOID(pf.check_identity(found));
    link_->pf.emplace(*link_->files, *link_->identity);
    // without uevents the service only polls, once a second
    if (link_->uevents && link_->uevents->fd() < 0) static_cast<void>(link_->uevents->open());
    count_ = facts.vfs.size();
    return {};
}

bool SriovBackend::take_changes() {
    if (!link_->uevents) return false;
    const UeventSocket::Batch batch = link_->uevents->read();
    if (std::ranges::any_of(batch.events, [this](const Uevent& event) {
            return changes_driver_of(event, link_->config.address);
        }))
        disconnect();
    return batch.has_lost || !batch.events.empty();
}

/// Reports if another program has changed the number of VFs.
void SriovBackend::check_count(const PfFunction& facts) {
    const std::size_t before = std::exchange(count_, facts.vfs.size()).value_or(facts.vfs.size());
    if (before == facts.vfs.size()) return;
    foreign_change_ = fmt::format("another program changed the number of VFs of {} from {} to {}",
                                  link_->config.address, before, facts.vfs.size());
    add_notice(0, NoticeKind::VfCountChanged, foreign_change_);
}

/// Reads the PF and its VFs. Fails and ends the connection if the card or its driver has changed.
Result<PfFunction> SriovBackend::inspect() {
    TRY(SriovPf * pf, link_->connected());
    auto facts = pf->inspect();
    if (!facts && facts.error().id == ErrorId::PfLost) disconnect();
    return facts;
}

Abilities SriovBackend::abilities_of(const PfFunction& facts) const {
    Abilities abilities(facts.driver);
    abilities.is_observing = link_->config.is_observing;
    if (abilities.is_observing) {
        abilities[Change::ScrubOnRelease].needs = Needs::Never;
        return abilities;
    }
    if (fixed_count_reason(facts.driver).empty())
        abilities[Change::Vfs] = {.needs = Needs::AllIdle,
                                  .min = std::min(link_->config.vfs, facts.total_vfs),
                                  .max = facts.total_vfs};
    if (keeps_its_vfs(facts.driver)) {
        abilities[Change::ScrubOnRelease].needs = Needs::Never;
        return abilities;
    }
    abilities[Change::AssignmentMode].needs = Needs::VfIdle;
    abilities[Change::Reset].needs = Needs::VfIdle;
    add_abilities(abilities);
    return abilities;
}

Result<GpuFacts> SriovBackend::get_info() {
    TRY(const PfFunction facts, inspect());
    if (const std::string pending = link_->files->pending(); !pending.empty())
        return fail(ErrorId::DriverBusy, fmt::format("the kernel has not finished: {}", pending));
    check_count(facts);
    return GpuFacts{.abilities = abilities_of(facts),
                    .address = link_->config.address,
                    .total_vfs = std::min(facts.total_vfs, kMaxVfsPerGpu),
                    .enabled_vfs = static_cast<std::uint32_t>(facts.vfs.size()),
                    .other_users = other_users(facts)};
}

std::vector<std::string> SriovBackend::other_users(const PfFunction& facts) const {
    std::vector<std::string> users;
    for (const VfFunction& vf : facts.vfs)
        if (vf.use != VfUse::Closed && !provisioned_.contains(vf.vf))
            users.push_back(describe_use(vf));
    return users;
}

Result<VfFacts> SriovBackend::get_vf(std::uint32_t vf) {
    TRY(SriovPf * pf, link_->connected());
    TRY(const auto found, pf->inspect(vf));
    const auto record = provisioned_.find(vf);
    VfFacts facts{.vf = vf};
    if (!found) return facts;
    facts.is_attached = found->use != VfUse::Closed;
    if (record == provisioned_.end()) return facts;
    facts.state = record->second.is_scrubbed  ? VGPU_PF_VF_SCRUBBING
                  : record->second.is_stopped ? VGPU_PF_VF_STOPPED
                                              : VGPU_PF_VF_PROVISIONED;
    facts.generation = record->second.generation;
    facts.address = found->address;
    facts.vgpu_type = found->vgpu_type;
    facts.uuid = record->second.uuid;
    facts.driver_timing = driver_timing_of(vf);
    TRY(facts.vram_bytes, vram_of(vf));
    return facts;
}

/// If the VF does not exist, first disables all VFs, enables more VFs, and binds the drivers again.
/// Then takes the VF over.
Result<> SriovBackend::provision(const vgpu_pf_provision& requested) {
    TRY(const PfFunction facts, inspect());
    if (requested.vf == 0 || requested.vf > facts.total_vfs)
        return fail(ErrorId::NoFreeVf,
                    fmt::format("{} has VFs 1 to {}", link_->config.address, facts.total_vfs));
    const VfSize size{.vf = requested.vf, .vram_bytes = requested.vram_bytes};
    if (facts.find(requested.vf) == nullptr)
        TRY_VOID(enable(requested.vf, std::span(&size, 1), facts));
    TRY(const auto vf, link_->pf->inspect(requested.vf));
    if (!vf)
        return fail(ErrorId::PfRefused, fmt::format("vf{} of {} vanished while it was provisioned",
                                                    requested.vf, link_->config.address));
    scrubbed_.erase(requested.vf);
    TRY_VOID(set_resources(requested, *vf));
    // a VF without a driver has no user, but may hold data of its last user
    if (vf->driver.empty() && !link_->config.is_observing) TRY_VOID(link_->pf->reset(requested.vf));
    ProvisionedVf record{.generation = ++generation_};
    std::copy(std::begin(requested.uuid), std::end(requested.uuid), record.uuid.begin());
    provisioned_[requested.vf] = record;
    return {};
}

Result<> SriovBackend::check_growth(std::uint32_t count, const PfFunction& facts) const {
    const std::string what = fmt::format("{} has {} VFs", link_->config.address, facts.vfs.size());
    if (link_->config.is_observing)
        return fail(
            ErrorId::Observed,
            fmt::format("{}, and vgpud only watches it, so there will be no vf{}", what, count));
    if (const auto why = fixed_count_reason(facts.driver); !why.empty())
        return fail(ErrorId::NotOffered,
                    fmt::format("{}, and vgpud cannot change their number: {}", what, why));
    if (foreign_change_.empty()) return {};
    return fail(ErrorId::PfRefused,
                fmt::format("{}: {}, and vgpud does not compete. Stop the other program, then "
                            "restart vgpud, which recreates its VFs",
                            what, foreign_change_));
}

Result<> SriovBackend::enable_vfs(std::uint32_t count, std::span<const VfSize> sizes) {
    TRY(const PfFunction facts, inspect());
    return facts.vfs.size() >= count ? Result<>() : enable(count, sizes, facts);
}

Result<> SriovBackend::enable(std::uint32_t count, std::span<const VfSize> sizes,
                              const PfFunction& facts) {
    TRY_VOID(check_growth(count, facts));
    std::vector<std::uint32_t> in_service;
    for (const VfFunction& vf : facts.vfs) {
        link_->modes.try_emplace(vf.vf, mode_of(vf));
        const auto own = provisioned_.find(vf.vf);
        if (own != provisioned_.end() && !own->second.is_scrubbed) in_service.push_back(vf.vf);
    }
    for (const VfSize& size : sizes) {
        plan_vram(size.vf, size.vram_bytes);
        scrubbed_.erase(size.vf);  // scrub_absent() must free the new VRAM, too
    }
    const std::uint32_t min_count = std::min(link_->config.vfs, facts.total_vfs);
    Result<> done = keep_vram(in_service);
    if (done) done = link_->pf->set_count(std::max(count, min_count), enable_steps());
    if (done) done = restore_modes();
    count_.reset();
    if (!done) free_new_vfs(sizes, facts);
    return done;
}

/// After enable() has failed, frees the VRAM of the VFs in `sizes` that are not provisioned. Keeps
/// the VRAM of VFs that existed `before`, because they may hold data.
void SriovBackend::free_new_vfs(std::span<const VfSize> sizes, const PfFunction& before) {
    for (const VfSize& size : sizes) {
        if (provisioned_.contains(size.vf)) continue;
        const auto now = link_->pf->inspect(size.vf);
        const bool is_closed = now && *now && (*now)->use == VfUse::Closed;
        if (is_closed && before.find(size.vf) == nullptr)
            static_cast<void>(free_resources(size.vf));
        plan_vram(size.vf, 0);
    }
}

/// Sets the mode of a VF again after it was enabled. Also resets the VF, because the memory of a VF
/// that was just enabled may hold data of other VFs. bind() includes the reset.
Result<> SriovBackend::restore_mode(std::uint32_t vf, AssignmentMode mode) {
    TRY(const auto found, link_->pf->inspect(vf));
    if (!found) return {};
    const bool is_driverless = mode == AssignmentMode::None || mode == AssignmentMode::Default;
    return is_driverless ? link_->pf->reset(vf) : link_->pf->bind(vf, mode);
}

/// Sets the modes of SriovLink::modes again, and returns the first failure. Replaces an id such as
/// VfsInUse, which means that nothing has changed, by PfRefused.
Result<> SriovBackend::restore_modes() {
    std::optional<Error> first;
    for (const auto& [vf, mode] : link_->modes) {
        const auto done = restore_mode(vf, mode);
        if (!done && !first) first = done.error();
    }
    if (!first) return {};
    constexpr std::array kPassedOn{ErrorId::PfLost, ErrorId::DeviceLost, ErrorId::DriverBusy};
    const bool is_passed_on = std::ranges::find(kPassedOn, first->id) != kPassedOn.end();
    return fail(is_passed_on ? first->id : ErrorId::PfRefused,
                "the VFs were enabled again, but " + first->cause);
}

Result<> SriovBackend::set_resources(const vgpu_pf_provision& requested, const VfFunction& vf) {
    if (requested.vram_bytes == 0) return {};
    return fail(ErrorId::NotOffered,
                fmt::format("the PF driver of {} does not say how much VRAM {} has; create the VF "
                            "without a VRAM size",
                            link_->config.address, vf.address));
}

Result<SriovBackend::ProvisionedVf*> SriovBackend::find(std::uint32_t vf,
                                                        std::uint32_t generation) {
    const auto found = provisioned_.find(vf);
    if (found == provisioned_.end())
        return fail(ErrorId::PfRefused, fmt::format("vf{} is not provisioned", vf));
    if (generation != 0 && generation != found->second.generation)
        return fail(ErrorId::PfRefused, fmt::format("vf{} has generation {}, not {}", vf,
                                                    found->second.generation, generation));
    return &found->second;
}

/// Resets a VF. First takes the VF from a driver of the host, but never from a VM that has the VF
/// open. If the VF has NVIDIA's vGPU types, only checks that it is closed.
Result<> SriovBackend::clear(const VfFunction& vf) {
    if (vf.driver.empty()) return link_->pf->reset(vf.vf);
    if (vf.vgpu_type.empty())
        return link_->pf->bind(vf.vf, AssignmentMode::None, TakeFromHost::Yes);
    if (vf.use == VfUse::Closed) return {};
    return fail(ErrorId::VfsInUse,
                fmt::format("{}; stop its VM, then take the type away (echo 0 > {})",
                            describe_use(vf), device_path(vf.address, kVgpuType)));
}

Result<> SriovBackend::end_use(std::uint32_t vf) {
    TRY(const auto found, link_->pf->inspect(vf));
    if (!link_->config.is_observing) {
        if (found) TRY_VOID(clear(*found));
        TRY_VOID(free_resources(vf));
    }
    link_->modes.erase(vf);
    return {};
}

Result<> SriovBackend::scrub_absent(const VfSize& vf) {
    TRY_VOID(inspect());
    if (scrubbed_.contains(vf.vf)) return {};
    plan_vram(vf.vf, vf.vram_bytes);
    return end_use(vf.vf);
}

Result<> SriovBackend::release(std::uint32_t vf, std::uint32_t generation) {
    TRY_VOID(inspect());
    TRY(ProvisionedVf * record, find(vf, generation));
    TRY_VOID(end_use(vf));
    record->is_scrubbed = true;
    record->is_stopped = false;
    return {};
}

Result<> SriovBackend::confirm_scrub(std::uint32_t vf, std::uint32_t generation) {
    TRY(const ProvisionedVf* record, find(vf, generation));
    if (!record->is_scrubbed)
        return fail(ErrorId::PfRefused, fmt::format("vf{} is not released", vf));
    provisioned_.erase(vf);
    scrubbed_.insert(vf);
    return {};
}

Result<> SriovBackend::check_scrubbed(std::uint32_t vf, std::uint32_t generation) {
    TRY(const ProvisionedVf* record, find(vf, generation));
    if (record->is_scrubbed) return {};
    return fail(ErrorId::PfRefused, fmt::format("vf{} is not released", vf));
}

Result<> SriovBackend::stop(std::uint32_t vf) {
    return Backend::control(vf, 0, VGPU_PF_STOP);
}

Result<> SriovBackend::control(std::uint32_t vf, std::uint32_t generation,
                               vgpu_pf_control_action action) {
    TRY_VOID(inspect());
    TRY(ProvisionedVf * record, find(vf, generation));
    if (action == VGPU_PF_STOP) {
        TRY_VOID(stop(vf));
        record->is_stopped = true;
        return {};
    }
    if (action != VGPU_PF_RESET) return Backend::control(vf, generation, action);
    TRY_VOID(link_->pf->reset(vf));
    record->is_stopped = false;
    return {};
}

}  // namespace vgpu::daemon::sriov
