// SPDX-License-Identifier: MIT
//
// SriovAssignment: implements AssignmentPort for a PF of a vendor's driver. Remembers the mode of a
// VF that is not enabled yet; the backend sets this mode when it enables the VF.
#pragma once

#include "daemon/backend/sriov/backend.h"
#include "daemon/ports/assignment_port.h"

namespace vgpu::daemon::sriov {

class SriovAssignment final : public AssignmentPort {
public:
    explicit SriovAssignment(std::shared_ptr<SriovLink> link) : link_(std::move(link)) {}

    Result<AssignmentMode> get(std::uint32_t vf) override;
    Result<> set(std::uint32_t vf, AssignmentMode mode, TakeFromHost take) override;

private:
    std::shared_ptr<SriovLink> link_;
};

}  // namespace vgpu::daemon::sriov
