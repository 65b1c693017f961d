// SPDX-License-Identifier: MIT
//
// GpuObject implements org.vgpu1.Gpu at /org/vgpu1/gpu/ID. It is thin, like VfObject. Objects makes
// one per GPU of the configuration, for the life of vgpud.
#pragma once

#include "daemon/dbus/context.h"

#include "vgpu1/gpu_adaptor.h"

namespace vgpu::daemon::dbus {

/// Getters and lists read the last snapshot and never wait; Set, Dump and ReadTrace ask the GPU's
/// thread.
class GpuObject final
    : public sdbus::AdaptorInterfaces<org::vgpu1::Gpu_adaptor, sdbus::Properties_adaptor,
                                      sdbus::ManagedObject_adaptor> {
public:
    GpuObject(Context& context, std::string id);
    ~GpuObject();

    /// Signals the properties that changed since the last call.
    void refresh();
    [[nodiscard]] const std::string& id() const { return id_; }

private:
    using SentOptions = std::map<std::string, sdbus::Variant>;
    /// (VF, quantum in us), in the order of the run table.
    using SentEntries = std::vector<sdbus::Struct<std::uint32_t, std::uint32_t>>;

    void Set(sdbus::Result<>&& result, SentOptions options) override;
    /// Needs no authorisation; answers in pieces, so that a client may follow for hours.
    void ReadTrace(sdbus::Result<SentOptions>&& result, SentOptions options) override;
    /// Returns the report as a file descriptor: it may be larger than a message.
    void Dump(sdbus::Result<sdbus::UnixFd>&& result, SentOptions options) override;
    std::tuple<SentEntries, std::uint64_t> GetRunTable(const SentOptions& options) override;

#define GPU_PROPERTY(name, type, signalled, value) type name() override;
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY

    /// Lives as long as the object: GPUs do not change after the configuration is read.
    GpuHost& gpu();

    Context& context_;
    OpenCalls calls_;
    std::string id_;
    GpuView shown_;  ///< as last signalled
};

}  // namespace vgpu::daemon::dbus
