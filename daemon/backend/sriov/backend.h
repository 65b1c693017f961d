// SPDX-License-Identifier: MIT
//
// SriovBackend: drives any SR-IOV PF through the PCI core's sysfs files. It offers what the PCI
// core offers: a number of VFs, the driver of each, and a reset. A derived class adds what its PF
// driver can do more (xe/backend.h).
//
// A VF that exists is the service's only after provision(), and ABSENT before: whatever else uses
// the VFs of this PF is left alone. The driver keeps no names, so a new vgpud provisions the VFs of
// its records again, and takes over those that exist as they are, open or not. Nothing is scrubbed
// by the service: a reset of the VF is the scrub, and it is over when release() returns.
//
// With SriovConfig::is_observing no call writes to the PF: it then has a ReadOnlySysfs.
#pragma once

#include "daemon/backend/backend.h"
#include "daemon/backend/sriov/pf.h"
#include "daemon/backend/sriov/uevents.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace vgpu::daemon::sriov {

struct SriovConfig {
    std::string address;              ///< "0000:03:00.0"
    bool is_observing = true;         ///< writes nothing
    std::optional<PciIds> ids{};      ///< the card that is expected there
    std::uint32_t vfs = 0;            ///< when VFs are enabled, at least so many
    std::uint64_t vram_bytes = 0;     ///< xe: of all VFs together; 0: the size of the VRAM BAR
    std::uint32_t pf_quantum_ms = 1;  ///< xe: the PF's turn, if the host itself uses the GPU
};

/// What backend and assignment port of one GPU share.
struct SriovLink {
    SriovLink(std::shared_ptr<Sysfs> all_files, SriovConfig with);

    std::shared_ptr<Sysfs> files;
    SriovConfig config;
    std::unique_ptr<UeventSocket> uevents{};          ///< none: not listened to
    std::optional<SriovPf> pf{};                      ///< while connected
    std::map<std::uint32_t, AssignmentMode> modes{};  ///< by VF, wanted; bound once the VF exists

    /// PfLost unless connected.
    Result<SriovPf*> connected();
};

class SriovBackend : public Backend {
public:
    explicit SriovBackend(std::shared_ptr<SriovLink> link) : link_(std::move(link)) {}

    Result<> connect() override;
    void disconnect() override { link_->pf.reset(); }
    [[nodiscard]] bool is_connected() const override { return link_->pf.has_value(); }
    /// Uevents; the service looks once a second anyway.
    [[nodiscard]] int connection_fd() const override {
        return link_->uevents ? link_->uevents->fd() : -1;
    }
    bool take_changes() override;
    std::vector<BackendNotice> take_notices() override { return std::exchange(notices_, {}); }

    /// DriverBusy, which names the write, while the kernel waits for a VF to be closed.
    Result<GpuFacts> get_info() override;
    Result<VfFacts> get_vf(std::uint32_t vf) override;
    Result<> provision(const vgpu_pf_provision& wanted) override;
    Result<> release(std::uint32_t vf, std::uint32_t generation) override;
    Result<> scrub_durable(std::uint32_t vf, std::uint32_t generation) override;
    Result<> verify_zero(std::uint32_t vf, std::uint32_t generation) override;
    Result<> control(std::uint32_t vf, std::uint32_t generation,
                     vgpu_pf_control_action action) override;
    void interrupt() override { link_->files->interrupt(); }

protected:
    // what a PF driver adds; all are called only while connected
    virtual void add_abilities(Abilities& /*abilities*/) const {}
    virtual EnableSteps& enable_steps() { return no_steps_; }
    /// None: unknown.
    virtual Result<std::optional<std::uint64_t>> vram_of(std::uint32_t /*vf*/) {
        return std::optional<std::uint64_t>();
    }
    /// What `vf` gets when the VFs are enabled the next time; 0: nothing.
    virtual void plan_vram(std::uint32_t /*vf*/, std::uint64_t /*bytes*/) {}
    /// Gives an existing VF its resources, unless it has them.
    virtual Result<> give(const vgpu_pf_provision& wanted, const VfFunction& vf);
    /// The VF is closed and reset, and its resources are free.
    virtual Result<> free_resources(std::uint32_t /*vf*/) { return {}; }
    virtual Result<> stop(std::uint32_t vf);

    void notice(std::uint32_t vf, std::string_view kind, std::string text) {
        notices_.push_back({.vf = vf, .kind = kind, .text = std::move(text)});
    }
    [[nodiscard]] SriovLink& link() { return *link_; }
    [[nodiscard]] const SriovLink& link() const { return *link_; }

private:
    /// A VF that is the service's.
    struct Given {
        std::uint32_t generation = 0;
        text::Uuid uuid{};
        bool is_scrubbed = false;  ///< released, not yet scrub_durable()
        bool is_stopped = false;
    };

    Result<PfFunction> inspect();
    [[nodiscard]] Abilities abilities_of(const PfFunction& facts) const;
    Result<Given*> find(std::uint32_t vf, std::uint32_t generation);
    Result<> grow(const vgpu_pf_provision& wanted, const PfFunction& facts);
    Result<> bind_again();
    void check_count(const PfFunction& facts);

    std::shared_ptr<SriovLink> link_;
    EnableSteps no_steps_;
    std::map<std::uint32_t, Given> given_;
    std::uint32_t generation_ = 0;        ///< of the last VF
    std::optional<std::size_t> count_{};  ///< VFs at the last look
    std::vector<BackendNotice> notices_;
};

}  // namespace vgpu::daemon::sriov
