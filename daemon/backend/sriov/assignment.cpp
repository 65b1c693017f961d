// SPDX-License-Identifier: MIT
#include "daemon/backend/sriov/assignment.h"

#include <fmt/format.h>

namespace vgpu::daemon::sriov {

Result<AssignmentMode> SriovAssignment::get(std::uint32_t vf) {
    TRY(SriovPf * pf, link_->connected());
    TRY(const auto found, pf->inspect(vf));
    if (found) return mode_of(*found);
    const auto requested = link_->modes.find(vf);
    return requested == link_->modes.end() ? AssignmentMode::None : requested->second;
}

Result<> SriovAssignment::set(std::uint32_t vf, AssignmentMode mode, TakeFromHost take) {
    TRY(SriovPf * pf, link_->connected());
    if (mode == AssignmentMode::VfioUser)
        return fail(ErrorId::AssignmentRefused,
                    "VFs of this GPU are PCI functions, without vfio-user sockets; choose 'none', "
                    "'vfio-pci' or 'host'");
    const auto bound = pf->bind(vf, mode, take);
    // a VF that is not enabled gets its mode when it is
    if (!bound && bound.error().id != ErrorId::NoSuchVf) return bound;
    link_->modes[vf] = mode;
    return {};
}

}  // namespace vgpu::daemon::sriov
