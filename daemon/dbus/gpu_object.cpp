// SPDX-License-Identifier: MIT
#include "daemon/dbus/gpu_object.h"

#include <sys/mman.h>
#include <array>
#include <cerrno>

namespace vgpu::daemon::dbus {

namespace {

const InterfaceName kInterface{org::vgpu1::Gpu_adaptor::INTERFACE_NAME};

Result<sdbus::UnixFd> dump_of(GpuModel& gpu) {
    sdbus::UnixFd memory{::memfd_create("vgpu-dump", MFD_CLOEXEC), sdbus::adopt_fd};
    if (!memory.isValid()) return fail_errno(ErrorId::System, errno, "cannot make a memfd");
    TRY_VOID(gpu.dump(memory.get()));
    if (::lseek(memory.get(), 0, SEEK_SET) < 0)
        return fail_errno(ErrorId::System, errno, "cannot rewind the dump");
    return memory;
}

Result<std::map<std::string, sdbus::Variant>> trace_of(const GpuModel& gpu,
                                                       std::optional<std::uint64_t> after) {
    TRY(trace::Piece piece, gpu.trace(after));
    return std::map<std::string, sdbus::Variant>{{"next", sdbus::Variant{piece.next}},
                                                 {"late", sdbus::Variant{piece.is_late}},
                                                 {"items", sdbus::Variant{piece.bytes}}};
}

}  // namespace

GpuObject::GpuObject(Context& context, std::string id)
    : AdaptorInterfaces(context.bus, sdbus::ObjectPath{gpu_path(id)}),
      context_(context),
      id_(std::move(id)) {
    signalled_ = gpu().snapshot()->gpu;
    registerAdaptor();
    emitInterfacesAddedSignal({kInterface});
}

GpuObject::~GpuObject() {
    try {
        emitInterfacesRemovedSignal({kInterface});
    } catch (const sdbus::Error&) {
        // the bus is gone, so no listener is left
    }
    calls_.end_all(stopping());
    unregisterAdaptor();
}

GpuHost& GpuObject::gpu() {
    return *context_.manager.find_gpu(id_);
}

void GpuObject::refresh() {
    GpuView now = gpu().snapshot()->gpu;
    const std::vector<PropertyName> changed = changes(signalled_, now);
    signalled_ = std::move(now);
    if (!changed.empty()) emitPropertiesChangedSignal(kInterface, changed);
}

void GpuObject::Set(sdbus::Result<>&& result, SentOptions options) {
    run_if_authorized(
        context_, {calls_, current_sender(getObject())}, kProvisionAction, std::move(result),
        [&manager = context_.manager, id = id_, values = options_of(options)](const Done<>& done) {
            manager.set_gpu({.gpu = id}, values, done);
        });
}

void GpuObject::Dump(sdbus::Result<sdbus::UnixFd>&& result, SentOptions options) {
    run_if_authorized<sdbus::UnixFd>(
        context_, {calls_, current_sender(getObject())}, kControlAction, std::move(result),
        [this, values = options_of(options)](const Done<sdbus::UnixFd>& done) {
            if (const auto known = OptionReader(values).only({}); !known)
                return done(tl::make_unexpected(known.error()));
            gpu().ask<sdbus::UnixFd>(dump_of, done);
        });
}

void GpuObject::ReadTrace(sdbus::Result<SentOptions>&& result, SentOptions options) {
    run_for_any_caller<SentOptions>(
        context_, {calls_, current_sender(getObject())}, std::move(result),
        [this, values = options_of(options)](const Done<SentOptions>& done) {
            const OptionReader reader(values);
            if (const auto known = reader.only(std::array<std::string_view, 1>{"after"}); !known)
                return done(tl::make_unexpected(known.error()));
            const auto after = reader.number("after", {});
            if (!after) return done(tl::make_unexpected(after.error()));
            gpu().ask<SentOptions>([from = *after](GpuModel& gpu) { return trace_of(gpu, from); },
                                   done);
        });
}

std::tuple<GpuObject::SentEntries, std::uint64_t> GpuObject::GetRunTable(
    const SentOptions& options) {
    const Options values = options_of(options);
    if (const auto known = OptionReader(values).only({}); !known) throw to_dbus(known.error());
    const auto seen = gpu().snapshot();
    const auto& table = seen->table;
    if (!seen->is_connected || table == nullptr)
        throw to_dbus({ErrorId::PfLost, id_ + ": " + seen->gpu.message});
    SentEntries entries;
    for (std::uint32_t i = 0; i < table->count; ++i)
        entries.emplace_back(table->entries[i].vf, table->entries[i].quantum_us);
    return {std::move(entries), table->generation};
}

#define GPU_PROPERTY(name, type, kind, value)              \
    type GpuObject::name() {                               \
        const GpuView v = gpu().snapshot()->gpu;           \
        return known<type>(value).value_or(unset<type>()); \
    }
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY

}  // namespace vgpu::daemon::dbus
