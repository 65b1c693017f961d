// SPDX-License-Identifier: MIT
//
// SriovBackend: drives any SR-IOV PF through the sysfs files of the kernel's PCI core. It offers
// what the PCI core offers: the number of VFs, the driver of each VF, and a reset. XeBackend
// (xe/backend.h) is derived from SriovBackend, and adds the abilities of the PF driver xe.
//
// A VF that exists belongs to vgpud only after provision(). Before that, get_vf() reports the VF as
// ABSENT. The PF driver does not record which VFs belong to vgpud, so a restarted vgpud provisions
// the VFs of its records again. provision() takes over an existing VF, even an open one. It changes
// nothing if the VF has a driver and the requested resources, and resets a VF without a driver. The
// scrub of a VF is a reset, which is over when release() returns.
//
// After another program has changed the number of VFs, vgpud does not change the number until the
// next connect(). With SriovConfig::is_observing no call writes to the PF, because SriovLink::files
// is then a ReadOnlySysfs.
#pragma once

#include "daemon/backend/backend.h"
#include "daemon/backend/sriov/pf.h"
#include "daemon/backend/sriov/uevents.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace vgpu::daemon::sriov {

struct SriovConfig {
    std::string address;              ///< PCI address of the PF: "0000:03:00.0"
    bool is_observing = true;         ///< true if vgpud must write nothing to the PF
    std::optional<PciModel> model{};  ///< the expected card; none: any card
    /// True if vgpud may offer settings that the driver only approximates.
    bool accepts_approximations = false;
    std::uint32_t vfs = 0;            ///< when VFs are enabled, enable at least this number
    std::uint64_t vram_bytes = 0;     ///< xe: VRAM of all VFs together; 0: the largest VRAM BAR
    std::uint32_t pf_quantum_ms = 1;  ///< xe: quantum of the PF, that is, of the host itself
};

/// The state that the backend and the assignment port of one GPU share.
struct SriovLink {
    SriovLink(std::shared_ptr<Sysfs> writable_files, SriovConfig gpu_config);

    std::shared_ptr<Sysfs> files;  ///< a ReadOnlySysfs if config.is_observing
    SriovConfig config;
    std::unique_ptr<UeventSocket> uevents{};          ///< null: vgpud does not listen to uevents
    std::optional<SriovPf> pf{};                      ///< none while not connected
    std::optional<PfIdentity> identity{};             ///< the PF at the first connect()
    std::map<std::uint32_t, AssignmentMode> modes{};  ///< by VF: to set when VFs are enabled

    /// The PF; PfLost unless connected.
    Result<SriovPf*> connected();
};

class SriovBackend : public Backend {
public:
    explicit SriovBackend(std::shared_ptr<SriovLink> link) : link_(std::move(link)) {}

    Result<> connect() override;
    void disconnect() override { link_->pf.reset(); }
    [[nodiscard]] bool is_connected() const override { return link_->pf.has_value(); }
    /// The uevent socket; -1 if there is none. The service also polls once a second.
    [[nodiscard]] int connection_fd() const override {
        return link_->uevents ? link_->uevents->fd() : -1;
    }
    bool take_changes() override;
    std::vector<BackendNotice> take_notices() override { return std::exchange(notices_, {}); }

    /// DriverBusy while the kernel has not finished an access. The error names the access
    /// (Sysfs::pending()).
    Result<GpuFacts> get_info() override;
    Result<VfFacts> get_vf(std::uint32_t vf) override;
    Result<> provision(const vgpu_pf_provision& requested) override;
    Result<> enable_vfs(std::uint32_t count, std::span<const VfSize> sizes) override;
    Result<> release(std::uint32_t vf, std::uint32_t generation) override;
    Result<> confirm_scrub(std::uint32_t vf, std::uint32_t generation) override;
    Result<> scrub_absent(const VfSize& vf) override;
    Result<> check_scrubbed(std::uint32_t vf, std::uint32_t generation) override;
    Result<> control(std::uint32_t vf, std::uint32_t generation,
                     vgpu_pf_control_action action) override;
    void interrupt() override { link_->files->interrupt(); }

protected:
    // The virtual functions below are extensions for one PF driver. SriovBackend calls them only
    // while connected.
    /// Adds the abilities that the PF driver has beyond those of the PCI core.
    virtual void add_abilities(Abilities& /*abilities*/) const {}
    virtual EnableSteps& enable_steps() { return no_steps_; }
    /// None if the timing is unknown.
    virtual std::optional<DriverTiming> driver_timing_of(std::uint32_t /*vf*/) const { return {}; }
    /// The VF's VRAM in bytes; none if unknown.
    virtual Result<std::optional<std::uint64_t>> vram_of(std::uint32_t /*vf*/) {
        return std::optional<std::uint64_t>();
    }
    /// Sets the VRAM that `vf` gets when the VFs are enabled the next time; 0: the driver decides.
    virtual void plan_vram(std::uint32_t /*vf*/, std::uint64_t /*bytes*/) {}
    /// Called before VFs are disabled, with the VFs in service. Remembers their VRAM if they would
    /// else lose it. PfRefused if this VRAM is unknown.
    virtual Result<> keep_vram(std::span<const std::uint32_t> /*vfs*/) { return {}; }
    /// Gives an existing VF the requested resources, unless it has them. By default NotOffered if
    /// VRAM is requested.
    virtual Result<> set_resources(const vgpu_pf_provision& requested, const VfFunction& vf);
    /// Frees the resources of a VF that has been closed and reset, or is not enabled.
    virtual Result<> free_resources(std::uint32_t /*vf*/) { return {}; }
    /// Ends the work of a VF until its reset; NotOffered by default.
    virtual Result<> stop(std::uint32_t vf);

    void add_notice(std::uint32_t vf, NoticeKind kind, std::string text) {
        notices_.push_back({.vf = vf, .kind = kind, .text = std::move(text)});
    }
    [[nodiscard]] SriovLink& link() { return *link_; }
    [[nodiscard]] const SriovLink& link() const { return *link_; }

private:
    /// A VF that belongs to vgpud.
    struct ProvisionedVf {
        std::uint32_t generation = 0;
        text::Uuid uuid{};
        bool is_scrubbed = false;  ///< true from release() to confirm_scrub()
        bool is_stopped = false;
    };

    Result<PfFunction> inspect();
    [[nodiscard]] Abilities abilities_of(const PfFunction& facts) const;
    Result<ProvisionedVf*> find(std::uint32_t vf, std::uint32_t generation);
    [[nodiscard]] Result<> check_growth(std::uint32_t count, const PfFunction& facts) const;
    Result<> enable(std::uint32_t count, std::span<const VfSize> sizes, const PfFunction& facts);
    void free_new_vfs(std::span<const VfSize> sizes, const PfFunction& before);
    [[nodiscard]] std::vector<std::string> other_users(const PfFunction& facts) const;
    Result<> restore_mode(std::uint32_t vf, AssignmentMode mode);
    Result<> restore_modes();
    Result<> clear(const VfFunction& vf);
    Result<> end_use(std::uint32_t vf);
    void check_count(const PfFunction& facts);

    std::shared_ptr<SriovLink> link_;
    EnableSteps no_steps_;
    std::map<std::uint32_t, ProvisionedVf> provisioned_;
    std::set<std::uint32_t> scrubbed_;  ///< VFs scrubbed since connect(); since then, no VRAM was
                                        ///< planned for them, and they were not provisioned
    std::uint32_t generation_ = 0;      ///< generation of the VF that was provisioned last
    /// Number of VFs at connect() or the last get_info(); none after a change by vgpud, until the
    /// next get_info().
    std::optional<std::size_t> count_{};
    /// How another program changed the number of VFs; empty if none did.
    std::string foreign_change_;
    std::vector<BackendNotice> notices_;
};

}  // namespace vgpu::daemon::sriov
