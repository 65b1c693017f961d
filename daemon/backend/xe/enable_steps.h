// SPDX-License-Identifier: MIT
//
// XeEnableSteps: writes the settings of VFs when xe enables them again, because disabling VFs
// loses the settings. The order matters (drivers/gpu/drm/xe/xe_gt_sriov_pf_config.c):
//
//   before enabling   VRAM of every VF, or of none: if one VF has a quota, VFs without a quota get
//                     no VRAM
//   after enabling    quanta and time-outs of the PF and every VF. xe sets defaults only if no
//                     function has a value yet; without a default, a function is unlimited.
#pragma once

#include "daemon/backend/sriov/pf.h"
#include "daemon/backend/xe/admin.h"

#include <map>

namespace vgpu::daemon::xe {

/// The requested settings of the functions. A VF without an entry in `vram_bytes` gets an equal
/// share if no VF has an entry. If another VF has one, it gets its `kept_vram_bytes`, or else no
/// VRAM.
struct XeSettings {
    std::map<std::uint32_t, std::uint64_t> vram_bytes{};  ///< by VF
    /// By VF: the VRAM of VFs in service without a requested size.
    std::map<std::uint32_t, std::uint64_t> kept_vram_bytes{};
    std::map<std::uint32_t, Timing> timings{};  ///< by function; 0 is the PF

    bool operator==(const XeSettings&) const = default;
};

class XeEnableSteps final : public sriov::EnableSteps {
public:
    XeEnableSteps(XeAdmin& admin, const XeSettings& settings)
        : admin_(admin), settings_(settings) {}

    /// Writes the VRAM quotas of all VFs, unless no VF has a requested quota.
    Result<> before_enable(std::uint32_t count) override;
    /// Checks the quotas, and writes the timings if they differ. Ends the strict mode of xe
    /// (XeAdmin::end_strict()), because no setting that vgpud offers on xe uses it. VFs may run
    /// meanwhile.
    Result<> after_enable(std::uint32_t count) override;

private:
    XeAdmin& admin_;
    const XeSettings& settings_;
};

}  // namespace vgpu::daemon::xe
