// SPDX-License-Identifier: MIT
#include "daemon/dbus/objects.h"

#include "daemon/service/words.h"

#include <array>

namespace vgpu::daemon::dbus {

namespace {

constexpr std::uint32_t kApiVersion = 1;

/// Which GPU a ListVfs is about; "": all.
Result<std::string> listed_gpu(const Manager& manager, const Options& options) {
    constexpr std::array<std::string_view, 1> kKnown{"gpu"};
    const OptionReader reader(options);
    TRY_VOID(reader.only(kKnown));
    TRY(const auto gpu, reader.text("gpu"));
    if (gpu && manager.find_gpu(*gpu) == nullptr)
        return fail(ErrorId::NoSuchGpu, "there is no GPU '" + gpu->substr(0, 64) + "'");
    return gpu.value_or("");
}

}  // namespace

ManagerObject::ManagerObject(Context& context)
    : AdaptorInterfaces(context.bus, sdbus::ObjectPath{"/org/vgpu1"}), context_(context) {
    registerAdaptor();
}

ManagerObject::~ManagerObject() {
    unregisterAdaptor();
}

void ManagerObject::CreateVf(sdbus::Result<sdbus::ObjectPath>&& result, std::string gpu,
                             SentOptions options) {
    authorized(context_, current_sender(getObject()), kProvisionAction, std::move(result),
               [&manager = context_.manager, gpu,
                values = options_of(options)]() -> Result<sdbus::ObjectPath> {
                   TRY(const Target made, manager.create(gpu, values));
                   return sdbus::ObjectPath{vf_path(made.gpu, made.vf)};
               });
}

std::vector<Dict> ManagerObject::ListVfs(const SentOptions& options) {
    const auto wanted = listed_gpu(context_.manager, options_of(options));
    if (!wanted) throw to_dbus(wanted.error());
    std::vector<Dict> all;
    for (const auto& gpu : context_.manager.gpus()) {
        if (!wanted->empty() && gpu->id() != *wanted) continue;
        gpu->freshen();
        for (const std::uint32_t vf : gpu->vfs()) all.push_back(properties_of(gpu->view(vf)));
    }
    return all;
}

std::vector<Dict> ManagerObject::ListGpus(const SentOptions& options) {
    const Options values = options_of(options);
    if (const auto known = OptionReader(values).only({}); !known) throw to_dbus(known.error());
    std::vector<Dict> all;
    for (const auto& gpu : context_.manager.gpus()) {
        gpu->freshen();
        all.push_back(properties_of(gpu->view()));
    }
    return all;
}

sdbus::ObjectPath ManagerObject::Resolve(const std::string& target, const SentOptions& options) {
    const Options values = options_of(options);
    if (const auto known = OptionReader(values).only({}); !known) throw to_dbus(known.error());
    const auto found = context_.manager.resolve(target);
    if (!found) throw to_dbus(found.error());
    return sdbus::ObjectPath{found->vf == 0 ? gpu_path(found->gpu)
                                            : vf_path(found->gpu, found->vf)};
}

std::string ManagerObject::Version() {
    return VGPU_VERSION;
}

std::uint32_t ManagerObject::ApiVersion() {
    return kApiVersion;
}

bool ManagerObject::ReadOnly() {
    return context_.manager.store().is_read_only();
}

std::string ManagerObject::StateMessage() {
    return context_.manager.store().message();
}

std::uint64_t ManagerObject::StateGeneration() {
    return context_.manager.store().records().generation;
}

Objects::Objects(sdbus::IConnection& bus, Manager& manager, Authority& authority,
                 const Clock& clock)
    : context_{.bus = bus,
               .manager = manager,
               .authority = authority,
               .waiters = waiters_,
               .clock = clock,
               .refresh_objects = [this] { refresh(); }},
      manager_(context_) {
    for (const auto& gpu : manager.gpus())
        gpus_.push_back(std::make_unique<GpuObject>(context_, gpu->id()));
}

void Objects::step(const std::vector<Notice>& notices) {
    const Nanoseconds now = context_.clock.now();
    if (!notices.empty() || !waiters_.is_empty() || now >= next_step()) refresh();
    for (const Notice& notice : notices) manager_.signal(notice);
    waiters_.step(now);
}

void Objects::refresh() {
    refreshed_at_ = context_.clock.now();
    follow_vfs();
    for (const auto& gpu : gpus_) gpu->refresh();
    for (const auto& [target, object] : vfs_) object->refresh();
}

/// One object per VF in service; a VF that was destroyed and made anew is another object.
void Objects::follow_vfs() {
    for (auto at = vfs_.begin(); at != vfs_.end();) {
        GpuModel* gpu = context_.manager.find_gpu(at->first.gpu);
        const bool stays =
            gpu->has_vf(at->first.vf) && gpu->record(at->first.vf).uuid == at->second->made_for();
        at = stays ? std::next(at) : vfs_.erase(at);
    }
    for (const auto& gpu : context_.manager.gpus())
        for (const std::uint32_t vf : gpu->vfs()) {
            const Target target{.gpu = gpu->id(), .vf = vf};
            if (!vfs_.contains(target)) vfs_[target] = std::make_unique<VfObject>(context_, target);
        }
}

}  // namespace vgpu::daemon::dbus
