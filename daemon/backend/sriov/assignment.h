// SPDX-License-Identifier: MIT
//
// SriovAssignment: implements AssignmentPort for a PF with a vendor's driver: reads and sets the
// assignment modes of VFs. Records each requested mode in SriovLink::modes. The backend sets the
// recorded modes when it enables VFs, because a new VF has no driver, and because set() cannot bind
// a VF that is not enabled.
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
