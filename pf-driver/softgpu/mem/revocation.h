// SPDX-License-Identifier: MIT
//
// Revocation: the steps before memory that engines may still reach is taken away (a DMA mapping is
// removed, a VF page table is replaced). The owner of the memory first makes it untranslatable,
// then calls run(), then drops or replaces the backing.
//
// Called without any lock of mem/ held. The composition root provides both halves.
#pragma once

#include <functional>

namespace vgpu::softgpu::mem {

struct Revocation {
    /// Ends every cached translation of the VF: GpuVm::invalidate_all().
    std::function<void()> invalidate;
    /// Returns when every engine thread inside the VF has passed a stop point, so that no pointer
    /// that Port::at() returned before the call is left.
    std::function<void()> quiesce;

    void run() const {
        if (invalidate) invalidate();
        if (quiesce) quiesce();
    }
};

}  // namespace vgpu::softgpu::mem
