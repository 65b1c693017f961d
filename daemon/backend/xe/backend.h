// SPDX-License-Identifier: MIT
//
// XeBackend: the backend of every GPU with a vendor's driver. If the driver is xe of Linux and has
// the files of sriov_admin (XeAdmin::level()), XeBackend offers more than SriovBackend: VRAM for
// each VF, weights as quanta, preempt time-outs, and stop. The firmware of the GPU schedules by
// itself; vgpud writes values and checks them:
//
//   provision     if another VRAM quota is in force, writes the quota and then resets the VF,
//                 because xe does not clear the memory
//   set_shares    converts weights to quanta (quanta_of()), writes them for the PF and all VFs, and
//                 reads them back
//   get_info      restores values that another program changed, within limits (DriftGuard), and
//                 counts the busy time of VFs (BusyTime)
#pragma once

#include "daemon/backend/sriov/backend.h"
#include "daemon/backend/sriov/drift_guard.h"
#include "daemon/backend/xe/busy_time.h"
#include "daemon/backend/xe/enable_steps.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vgpu::daemon::xe {

class XeBackend final : public sriov::SriovBackend {
public:
    /// `perf`: null if vgpud must not count the busy time of VFs.
    XeBackend(const std::shared_ptr<sriov::SriovLink>& link, const Clock& clock,
              std::unique_ptr<Perf> perf = nullptr)
        : SriovBackend(link), clock_(clock), admin_(*link->files, link->config.address) {
        if (perf) busy_.emplace(*link->files, std::move(perf), clock, link->config.address);
    }

    Result<> connect() override;
    Result<GpuFacts> get_info() override;
    Result<VfFacts> get_vf(std::uint32_t vf) override;
    /// NoSchedule and OutOfRange as quanta_of(); nothing is then written.
    Result<> set_shares(std::span<const VfShare> vfs) override;

    /// The quanta that set_shares() last computed, with the worst wait of each VF.
    [[nodiscard]] const Quanta& quanta() const { return quanta_; }

protected:
    void add_abilities(Abilities& abilities) const override;
    sriov::EnableSteps& enable_steps() override { return steps_; }
    std::optional<DriverTiming> driver_timing_of(std::uint32_t vf) const override;
    Result<std::optional<std::uint64_t>> vram_of(std::uint32_t vf) override {
        return admin_.vram(vf);
    }
    void plan_vram(std::uint32_t vf, std::uint64_t bytes) override;
    Result<> keep_vram(std::span<const std::uint32_t> vfs) override;
    Result<> set_resources(const vgpu_pf_provision& requested,
                           const sriov::VfFunction& vf) override;
    Result<> free_resources(std::uint32_t vf) override;
    Result<> stop(std::uint32_t vf) override { return admin_.stop(vf); }

private:
    Result<VramFacts> vram_facts(const GpuFacts& facts);
    void read_timings(std::uint32_t vfs);
    void count_busy_time();
    void check_drift();
    void check_drift(std::uint32_t function, const Timing& requested);

    const Clock& clock_;
    XeAdmin admin_;
    XeSettings settings_;
    XeEnableSteps steps_{admin_, settings_};
    Quanta quanta_;
    std::map<std::uint32_t, Timing> in_force_;  ///< timings at the last read, by function
    std::uint32_t functions_ = 0;               ///< at the last read: 1 (the PF) + enabled VFs
    sriov::DriftGuard drift_;
    std::optional<std::uint64_t> largest_vram_bar_{};  ///< XeAdmin; none: not yet read
    std::optional<BusyTime> busy_{};                   ///< none if busy times are not counted
};

}  // namespace vgpu::daemon::xe
