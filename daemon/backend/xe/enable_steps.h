// SPDX-License-Identifier: MIT
//
// XeEnableSteps: what a re-enable adds on xe. All settings of VFs are lost with the VFs, and the
// order matters (drivers/gpu/drm/xe/xe_gt_sriov_pf_config.c):
//
//   before   VRAM of every VF, or of none: one quota set early leaves all others with 0
//   after    quanta and time-outs of the PF and every VF: one set early suppresses the default of
//            all others, which are then unlimited
#pragma once

#include "daemon/backend/sriov/pf.h"
#include "daemon/backend/xe/admin.h"

#include <map>

namespace vgpu::daemon::xe {

/// What the functions of a GPU shall have. VFs without an entry in `vram_bytes` have no VRAM if
/// another VF has one, and equal shares if none has.
struct XeSettings {
    std::map<std::uint32_t, std::uint64_t> vram_bytes{};  ///< by VF
    std::map<std::uint32_t, Timing> timings{};            ///< by function; 0 is the PF
    bool is_strict = false;

    bool operator==(const XeSettings&) const = default;
};

class XeEnableSteps final : public sriov::EnableSteps {
public:
    XeEnableSteps(XeAdmin& admin, const XeSettings& settings)
        : admin_(admin), settings_(settings) {}

    Result<> before_enable(std::uint32_t count) override;
    /// Checks the quotas and writes the timings that differ. VFs may run.
    Result<> after_enable(std::uint32_t count) override;

private:
    XeAdmin& admin_;
    const XeSettings& settings_;
};

}  // namespace vgpu::daemon::xe
