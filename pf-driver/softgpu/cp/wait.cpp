// SPDX-License-Identifier: MIT
//
// Checks whether the wait of a queue is over. The command processor calls is_wait_over() before it
// tries a blocked packet again. The poller thread (gpu.h) calls is_wait_over(), through has_work(),
// for VFs that are off the engine. A check executes no packet.

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/cp/aql.h"
#include "pf-driver/softgpu/cp/pm4.h"
#include "pf-driver/softgpu/cp/scheduler.h"
#include "pf-driver/softgpu/sdma/compare.h"

namespace vgpu::softgpu::cp {

namespace {

/// True if the value in memory fulfils the comparison. Also true if the load faults: the packet
/// then runs again and reports the fault.
bool memory_compares(Core& core, const Wait& wait) {
    const Vmid vmid{wait.vmid};
    const GpuVa va{wait.address};
    const std::optional<std::uint64_t> value =
        wait.wide != 0 ? core.memory.load<std::uint64_t>(vmid, va)
                       : std::optional<std::uint64_t>(core.memory.load<std::uint32_t>(vmid, va));
    return !value || sdma::compare(wait.function, *value & wait.mask, wait.reference);
}

bool register_compares(Core& core, const Wait& wait) {
    const std::uint32_t value = core.registers.read(RegisterIndex{wait.index});
    return sdma::compare(wait.function, value & wait.mask, wait.reference);
}

}  // namespace

/// Has no side effect that a guest can see, so the poller may call it.
bool is_wait_over(Core& core, Queue& queue) {
    const Wait& wait = queue.state.wait;
    switch (wait.kind) {
        case WaitKind::None:
            return true;
        case WaitKind::Memory:
        case WaitKind::Atomic:
            return memory_compares(core, wait);
        case WaitKind::Register:
            return register_compares(core, wait);
        case WaitKind::Dispatches:
            return core.dispatcher.in_flight(queue.id) == 0;
        case WaitKind::Window:
            return queue.state.next - queue.state.rptr < kAqlWindow;
        case WaitKind::Signals:
        case WaitKind::SignalValue:
            return is_barrier_over(core, queue);
        case WaitKind::Unmap:
            return is_unmap_over(core, queue);
        case WaitKind::Valid:
            return is_header_valid(core, queue);
        case WaitKind::MoreData:
            return queue.state.wptr != wait.reference;
    }
    return true;
}

}  // namespace vgpu::softgpu::cp
