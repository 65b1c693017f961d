// SPDX-License-Identifier: MIT
#include "tests/unit/core/rig.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace vgpu::test {

vgpu_pf_contract reservation(std::uint64_t budget_ns, std::uint64_t period_ns,
                             std::uint32_t ahead) {
    vgpu_pf_contract contract{};
    contract.budget_ns = budget_ns;
    contract.period_ns = period_ns;
    contract.ahead = ahead;
    return contract;
}

Rig::Rig(ModelGpu::Options options, std::function<void(vgpu_pf_params&)> adjust)
    : gpu(options), adjust_(std::move(adjust)) {
    start_core();
}

void Rig::start_core() {
    ring.assign((VGPU_PF_RING_EVENTS_OFFSET + 4096 * sizeof(vgpu_pf_event)) / 8, 0);
    if (!pf) pf = std::make_unique<vgpu_pf>();
    vgpu_pf_params params{};
    params.boot_id = ++boots_;
    params.time_scale = 1;
    params.max_gap_ms = 0;
    params.event_ring = ring.data();
    params.event_ring_bytes = static_cast<std::uint32_t>(ring.size() * 8);
    std::strcpy(params.name, "fake");
    if (adjust_) adjust_(params);
    vgpu_pf_init(pf.get(), gpu.os(), &params);
    gpu.bind(pf.get());
    vgpu_pf_attach(pf.get());
    gpu.run_for(0);
}

void Rig::restart_core() {
    gpu.bind(nullptr);
    gpu.run_for(0);
    start_core();
}

int Rig::await(std::uint64_t token) {
    for (int i = 0; i < 100000 && !gpu.is_done(token); ++i) gpu.run_for(100 * kUs);
    if (!gpu.is_done(token)) return -ETIMEDOUT;
    std::strncpy(pf->requests.message, gpu.done[token].second.c_str(),
                 sizeof(pf->requests.message) - 1);
    return gpu.done[token].first;
}

std::vector<vgpu_pf_event> Rig::events() const {
    const void* memory = ring.data();
    const void* entries = ring.data() + VGPU_PF_RING_EVENTS_OFFSET / sizeof(ring[0]);
    const auto* head = static_cast<const vgpu_pf_event_ring_head*>(memory);
    const auto* slots = static_cast<const vgpu_pf_event*>(entries);
    const std::uint64_t count = std::min<std::uint64_t>(head->next_seq - 1, head->entries);
    std::vector<vgpu_pf_event> out;
    for (std::uint64_t seq = head->next_seq - count; seq < head->next_seq; ++seq)
        out.push_back(slots[(seq - 1) % head->entries]);
    return out;
}

std::vector<vgpu_pf_event> Rig::events(vgpu_pf_event_type type, std::uint32_t vf) const {
    std::vector<vgpu_pf_event> out;
    for (const vgpu_pf_event& event : events())
        if (event.type == static_cast<std::uint32_t>(type) && (vf == 0 || event.vf == vf))
            out.push_back(event);
    return out;
}

int Rig::provision(std::uint32_t vf, std::uint64_t mib, std::uint32_t flags) {
    vgpu_pf_provision request{};
    request.size = sizeof(request);
    request.vf = vf;
    request.vram_bytes = mib << 20;
    request.uuid[0] = static_cast<std::uint8_t>(vf);
    request.flags = flags;
    return this->request(VGPU_PF_OP_PROVISION, request);
}

void Rig::post(std::uint32_t vf, vgpu_vf_event event, vgpu_pf_reason reason) {
    vgpu_vf_post(&this->vf(vf), event, reason);
    vgpu_pf_do_pending(pf.get());
}

int Rig::control(std::uint32_t vf, vgpu_pf_control_action action) {
    vgpu_pf_control request{sizeof(request), vf, 0, static_cast<std::uint32_t>(action)};
    return this->request(VGPU_PF_OP_CONTROL, request);
}

int Rig::release(std::uint32_t vf) {
    vgpu_pf_vf_ref request{sizeof(request), vf, 0, 0};
    return this->request(VGPU_PF_OP_RELEASE, request);
}

int Rig::durable(std::uint32_t vf) {
    vgpu_pf_vf_ref request{sizeof(request), vf, 0, 0};
    return this->request(VGPU_PF_OP_SCRUB_DURABLE, request);
}

int Rig::set_table(const std::vector<vgpu_pf_run_entry>& entries,
                   const std::vector<vgpu_pf_run_entry>& reserve, std::uint32_t flags) {
    return send_table(entries, reserve, [&](vgpu_pf_run_table& table) { table.flags = flags; });
}

int Rig::set_contracts(const std::vector<vgpu_pf_run_entry>& entries,
                       const std::map<std::uint32_t, vgpu_pf_contract>& contracts,
                       const std::vector<vgpu_pf_run_entry>& reserve) {
    return send_table(entries, reserve, [&](vgpu_pf_run_table& table) {
        for (const auto& [vf, contract] : contracts) table.contracts[vf - 1] = contract;
    });
}

int Rig::set_weights(const std::vector<vgpu_pf_run_entry>& entries,
                     const std::map<std::uint32_t, std::uint32_t>& weights,
                     const std::map<std::uint32_t, std::uint32_t>& max_gap_us) {
    return send_table(entries, {}, [&](vgpu_pf_run_table& table) {
        for (const auto& [vf, weight] : weights) table.weights[vf - 1] = weight;
        for (const auto& [vf, us] : max_gap_us) table.max_gap_us[vf - 1] = us;
    });
}

int Rig::send_table(const std::vector<vgpu_pf_run_entry>& entries,
                    const std::vector<vgpu_pf_run_entry>& reserve,
                    const std::function<void(vgpu_pf_run_table&)>& adjust) {
    auto table = std::make_unique<vgpu_pf_run_table>();
    request(VGPU_PF_OP_GET_RUN_TABLE, *table);
    const std::uint64_t generation = table->generation + 1;
    *table = {};
    table->size = sizeof(*table);
    table->generation = generation;
    table->count = static_cast<std::uint32_t>(entries.size());
    std::ranges::copy(entries, table->entries);
    table->reserve_count = static_cast<std::uint32_t>(reserve.size());
    std::ranges::copy(reserve, table->reserve);
    adjust(*table);
    return request(VGPU_PF_OP_SET_RUN_TABLE, *table);
}

vgpu_pf_vf Rig::get_vf(std::uint32_t vf) {
    vgpu_pf_vf out{};
    out.size = sizeof(out);
    out.vf = vf;
    request(VGPU_PF_OP_GET_VF, out);
    return out;
}

vgpu_pf_info Rig::get_info() {
    vgpu_pf_info out{};
    request(VGPU_PF_OP_GET_INFO, out);
    return out;
}

void Rig::load_driver(std::uint32_t vf) {
    gpu.guest_sends(vf, MAILBOX_REQ_GPU_INIT_ACCESS);
    gpu.run_for(kMs);
    gpu.guest_acknowledges(vf);
    gpu.guest_sends(vf, MAILBOX_REL_GPU_INIT_ACCESS);
    gpu.run_for(kMs);
}

void Rig::make_ready(std::uint32_t vf) {
    provision(vf);
    load_driver(vf);
}

void Rig::make_busy(std::uint32_t vf) {
    make_ready(vf);
    gpu.give_work(vf, kEndless);
}

void Rig::provoke_pause(std::uint32_t number) {
    constexpr std::uint32_t kPause = 3;  // of the guard's levels
    while (vf(number).guard.level < kPause)
        vgpu_pf_guard_count(pf.get(), &vf(number), VGPU_GUARD_INTERRUPT);
    vgpu_pf_do_pending(pf.get());
}

void Rig::live_at_random(std::uint32_t vfs, int rounds, const Rng& rng) {
    for (int i = 0; i < rounds; ++i) {
        const auto vf = static_cast<std::uint32_t>(rng(1, vfs));
        if (rng(0, 2) == 0)
            gpu.vf(vf).work_ns = rng(0, 3) * kMs;
        else
            gpu.give_work(vf, rng(0, 1) == 0 ? kEndless : rng(1, 20) * kMs);
        gpu.run_for(rng(1, 20 * kMs));
    }
}

}  // namespace vgpu::test
