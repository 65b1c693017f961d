// SPDX-License-Identifier: MIT
//
// The counters of global wave sync, and the execute unit of the instructions that use them.
#include "pf-driver/softgpu/isa/global_wave_sync.h"

#include <atomic>
#include <limits>

#include "pf-driver/softgpu/isa/env.h"

namespace vgpu::softgpu::isa {

// ---- counters

/// The ticket of a wave that waits in acquire().
constexpr GlobalWaveSync::Ticket kQueued = 1;

/// Number of barrier numbers: they count from 0 to kBarriers - 1 and start again. Hardware frees
/// waiting waves when a barrier is complete. In softgpu a waiting wave checks later, when other
/// waves may even have completed the next barrier. So each barrier has a number, not only a flag.
constexpr u16 kBarriers = std::numeric_limits<u16>::max();

/// The ticket of a wave that waits at the barrier with this number; never 0.
constexpr GlobalWaveSync::Ticket ticket_of(u16 barrier) {
    return static_cast<GlobalWaveSync::Ticket>(barrier % kBarriers + 1);
}

/// Changes a copy of the resource, and stores the copy if no other thread has changed the resource
/// meanwhile; else tries again. So `change` may be called several times.
template <class Change> void GlobalWaveSync::update(u32 resource, Change change) {
    const std::atomic_ref<Resource> cell(resources_[resource % kResources]);
    Resource old = cell.load();
    for (;;) {
        Resource changed = old;
        change(changed);
        if (cell.compare_exchange_weak(old, changed)) return;
    }
}

void GlobalWaveSync::init(u32 resource, u32 waves_minus_1) {
    update(resource, [&](Resource& r) { r = {waves_minus_1, 0, 0}; });
}

bool GlobalWaveSync::arrive(u32 resource, u32 next_minus_1, Ticket& ticket) {
    const Ticket before = ticket;
    update(resource, [&](Resource& r) {
        const Ticket waiting = ticket_of(r.barrier);
        if (before != 0) {  // the wave waits until the barrier's number changes
            ticket = before == waiting ? before : Ticket{0};
        } else if (r.counter == 0) {
            r.barrier = static_cast<u16>((r.barrier + 1) % kBarriers);
            r.counter = next_minus_1;
            ticket = 0;
        } else {
            --r.counter;
            ticket = waiting;
        }
    });
    return ticket == 0;
}

void GlobalWaveSync::release(u32 resource, u32 count) {
    update(resource, [&](Resource& r) { r.counter += count; });
}

void GlobalWaveSync::release_all(u32 resource) {
    update(resource, [&](Resource& r) { r.counter = r.queued; });
}

bool GlobalWaveSync::acquire(u32 resource, Ticket& ticket) {
    const bool was_queued = ticket == kQueued;
    update(resource, [&](Resource& r) {
        constexpr u16 max = std::numeric_limits<u16>::max();
        if (r.counter == 0) {
            if (!was_queued && r.queued < max) ++r.queued;
            ticket = kQueued;
            return;
        }
        --r.counter;
        if (was_queued && r.queued > 0) --r.queued;
        ticket = 0;
    });
    return ticket == 0;
}

// ---- instructions

namespace {

/// The resource number: M0[21:16] plus the offset, modulo 64 (LLVM 14, SITargetLowering: DS_GWS).
u32 resource_of(const Env& env, const Instruction& i) {
    constexpr unsigned m0_shift = 16;
    return ((env.m0() >> m0_shift) + static_cast<u32>(i.imm)) % GlobalWaveSync::kResources;
}

/// The data operand in the first active lane, or in lane 0 if no lane is active.
u32 first_value(const Env& env, const Instruction& i) {
    const u64 exec = env.exec();
    return env.v[i.src[0].value].lane[exec == 0 ? 0u : static_cast<u32>(std::countr_zero(exec))];
}

/// The wave executes the instruction again in its next slice (execute.h), so that other waves can
/// run first.
Outcome wait(Env& env, const Instruction& i) {
    env.wave.pc = i.pc;
    env.slept = true;
    return Outcome::JumpAndYield;
}

Outcome do_gws_init(Env& env, const Instruction& i, GlobalWaveSync& sync) {
    sync.init(resource_of(env, i), first_value(env, i));
    return Outcome::Next;
}
Outcome do_gws_barrier(Env& env, const Instruction& i, GlobalWaveSync& sync) {
    const bool continues =
        sync.arrive(resource_of(env, i), first_value(env, i), env.wave.sync_ticket);
    return continues ? Outcome::Next : wait(env, i);
}
Outcome do_gws_sema_v(Env& env, const Instruction& i, GlobalWaveSync& sync) {
    sync.release(resource_of(env, i), 1);
    return Outcome::Next;
}
Outcome do_gws_sema_br(Env& env, const Instruction& i, GlobalWaveSync& sync) {
    sync.release(resource_of(env, i), first_value(env, i));
    return Outcome::Next;
}
Outcome do_gws_sema_p(Env& env, const Instruction& i, GlobalWaveSync& sync) {
    const bool continues = sync.acquire(resource_of(env, i), env.wave.sync_ticket);
    return continues ? Outcome::Next : wait(env, i);
}
Outcome do_gws_sema_release_all(Env& env, const Instruction& i, GlobalWaveSync& sync) {
    sync.release_all(resource_of(env, i));
    return Outcome::Next;
}

/// A process without GWS gets an illegal instruction, not a barrier that lets every wave pass.
template <Outcome (*Operation)(Env&, const Instruction&, GlobalWaveSync&)>
Outcome with_sync(Env& env, const Instruction& i) {
    if (env.context.wave_sync == nullptr) return Outcome::Illegal;
    return Operation(env, i, *env.context.wave_sync);
}

}  // namespace

void fill_wave_sync(HandlerTable& table) {
#define ROW(kind, n, code, data, f) table[static_cast<std::size_t>(Op::n)] = &with_sync<f>;
#include "pf-driver/softgpu/isa/ops/gws.def"
#undef ROW
}

}  // namespace vgpu::softgpu::isa
