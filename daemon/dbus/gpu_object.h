// SPDX-License-Identifier: MIT
//
// GpuObject: implements org.vgpu1.Gpu at /org/vgpu1/gpu/ID, where ID is the GPU's id, escaped
// (gpu_path()). The class Objects makes a GpuObject for each configured GPU.
#pragma once

#include "daemon/dbus/context.h"

#include "vgpu1/gpu_adaptor.h"

namespace vgpu::daemon::dbus {

/// Getters and GetRunTable read the GPU's last snapshot. Set, Dump and ReadTrace ask the GPU's
/// thread, and reply later.
class GpuObject final
    : public sdbus::AdaptorInterfaces<org::vgpu1::Gpu_adaptor, sdbus::Properties_adaptor,
                                      sdbus::ManagedObject_adaptor> {
public:
    GpuObject(Context& context, std::string id);
    ~GpuObject();

    /// Signals the properties of kind SIGNALLED (gpu_properties.def) that changed since the last
    /// call.
    void refresh();
    [[nodiscard]] const std::string& id() const { return id_; }

private:
    using SentOptions = std::map<std::string, sdbus::Variant>;
    /// The run table: (VF, quantum in us), in the order of the table.
    using SentEntries = std::vector<sdbus::Struct<std::uint32_t, std::uint32_t>>;

    /// Requires org.vgpu1.provision.
    void Set(sdbus::Result<>&& result, SentOptions options) override;
    /// Needs no authorisation. Replies with the recording of the scheduling from the offset `after`
    /// (an option; without it, from the oldest chunk), and with the offset for the next call.
    void ReadTrace(sdbus::Result<SentOptions>&& result, SentOptions options) override;
    /// Requires org.vgpu1.control. Replies with the descriptor of a memfd, because the dump may be
    /// larger than a message.
    void Dump(sdbus::Result<sdbus::UnixFd>&& result, SentOptions options) override;
    std::tuple<SentEntries, std::uint64_t> GetRunTable(const SentOptions& options) override;

#define GPU_PROPERTY(name, type, kind, value) type name() override;
#include "daemon/dbus/gpu_properties.def"
#undef GPU_PROPERTY

    /// The GpuHost of `id_`, which outlives this object.
    GpuHost& gpu();

    Context& context_;
    OpenCalls calls_;
    std::string id_;
    GpuView signalled_;  ///< the values that listeners know from signals
};

}  // namespace vgpu::daemon::dbus
