// SPDX-License-Identifier: MIT
//
// A VfPanel that writes down what the PF does to its VFs and gives each one 1 MiB of VRAM.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "pf-driver/softgpu/iov/vf_panel.h"

namespace vgpu::softgpu::iov {

class FakePanel final : public VfPanel {
public:
    static constexpr std::size_t kVramBytes = 1u << 20;

    Result<> commit_vram(VfId vf, DeviceOffset root, Bytes size) override {
        calls.push_back(fmt::format("commit {} {:#x} {}", raw(vf), raw(root), size.count));
        if (refuses_tables) return fail(EINVAL, "the table is wrong");
        return {};
    }
    void release_vram(VfId vf) override { calls.push_back(fmt::format("release {}", raw(vf))); }
    void set_doorbell_pages(VfId vf, std::uint32_t first, std::uint32_t count) override {
        calls.push_back(fmt::format("doorbells {} {}+{}", raw(vf), first, count));
    }
    void set_cu_mask(VfId vf, std::uint64_t mask) override {
        calls.push_back(fmt::format("cus {} {:#x}", raw(vf), mask));
    }
    void set_quantum(VfId vf, std::uint32_t quantum_us) override {
        calls.push_back(fmt::format("quantum {} {}", raw(vf), quantum_us));
    }
    void set_gates(VfId vf, std::uint32_t value) override { gate_values[vf] = value; }
    std::uint32_t gates(VfId vf) const override {
        const auto found = gate_values.find(vf);
        return found == gate_values.end() ? 0 : found->second;
    }
    void request_flr(VfId vf) override { calls.push_back(fmt::format("flr {}", raw(vf))); }
    void acknowledge_flr(VfId vf) override { calls.push_back(fmt::format("ack {}", raw(vf))); }
    std::uint32_t reset_flags(VfId) const override { return 3; }
    std::uint32_t status(VfId vf) const override { return 0x10u + raw(vf); }
    VfStatistics statistics(VfId) const override { return counters; }
    void set_switch_mode(SwitchMode mode) override {
        calls.emplace_back(mode == SwitchMode::TrueCopy ? "true copy" : "pointer");
    }
    bool read_vram(VfId vf, VfOffset offset, std::span<std::byte> out) override {
        const auto part = window(vf, offset, out.size());
        std::ranges::copy(part, out.begin());
        return part.size() == out.size();
    }
    bool write_vram(VfId vf, VfOffset offset, std::span<const std::byte> data) override {
        const auto part = window(vf, offset, data.size());
        if (part.size() != data.size()) return false;
        std::ranges::copy(data, part.begin());
        return true;
    }
    Result<> scrub_state(VfId vf) override {
        calls.push_back(fmt::format("scrub {}", raw(vf)));
        return {};
    }
    Result<std::vector<std::byte>> save_state(VfId) override { return state; }
    Result<> load_state(VfId, std::span<const std::byte> stream) override {
        loaded.assign(stream.begin(), stream.end());
        return {};
    }

    std::vector<std::byte>& vram(VfId vf) {
        auto& bytes = vrams[vf];
        bytes.resize(kVramBytes);
        return bytes;
    }

    std::vector<std::string> calls;
    std::map<VfId, std::uint32_t> gate_values;
    std::map<VfId, std::vector<std::byte>> vrams;
    VfStatistics counters;
    std::vector<std::byte> state;
    std::vector<std::byte> loaded;
    bool refuses_tables = false;

private:
    std::span<std::byte> window(VfId vf, VfOffset offset, std::size_t size) {
        if (raw(offset) > kVramBytes || size > kVramBytes - raw(offset)) return {};
        return std::span(vram(vf)).subspan(raw(offset), size);
    }
};

}  // namespace vgpu::softgpu::iov
