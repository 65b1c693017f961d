// SPDX-License-Identifier: MIT
//
// Four VfControls that write down what the PF does to its VFs and give each one 1 MiB of VRAM.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "pf-driver/softgpu/iov/vf_control.h"

namespace vgpu::softgpu::iov {

/// What the panels of all VFs have in common.
struct VfControlRecord {
    static constexpr std::size_t kVramBytes = 1u << 20;

    std::vector<std::byte>& vram(VfId vf) {
        auto& bytes = vrams[vf];
        bytes.resize(kVramBytes);
        return bytes;
    }

    std::vector<std::string> calls;
    std::vector<std::string> mailbox;  ///< written
    std::map<VfId, std::uint32_t> gate_values;
    std::map<VfId, std::vector<std::byte>> vrams;
    VfStatistics counters;
    std::vector<std::byte> state;
    std::vector<std::byte> loaded;
    bool refuses_tables = false;
};

class FakeVfControl final : public VfControl {
public:
    FakeVfControl(VfId vf, VfControlRecord& record) : vf_(vf), record_(record) {}

    Result<> commit_vram(DeviceOffset root, Bytes size) override {
        note(fmt::format("commit {} {:#x} {}", raw(vf_), raw(root), size.count));
        if (record_.refuses_tables) return fail(EINVAL, "the table is wrong");
        return {};
    }
    void release_vram() override { note(fmt::format("release {}", raw(vf_))); }
    void set_doorbell_pages(std::uint32_t first, std::uint32_t count) override {
        note(fmt::format("doorbells {} {}+{}", raw(vf_), first, count));
    }
    void set_cu_mask(std::uint64_t mask) override {
        note(fmt::format("cus {} {:#x}", raw(vf_), mask));
    }
    void set_quantum(std::uint32_t quantum_us) override {
        note(fmt::format("quantum {} {}", raw(vf_), quantum_us));
    }
    void set_gates(std::uint32_t value) override { record_.gate_values[vf_] = value; }
    std::uint32_t gates() const override { return record_.gate_values[vf_]; }
    void request_flr() override { note(fmt::format("flr {}", raw(vf_))); }
    void acknowledge_flr() override { note(fmt::format("ack {}", raw(vf_))); }
    std::uint32_t reset_flags() const override { return 3; }
    std::uint32_t status() override { return 0x10u + raw(vf_); }
    VfStatistics statistics() override { return record_.counters; }
    std::uint32_t mailbox_read(RegisterIndex index) override {
        return raw(vf_) * 0x100000u + raw(index);
    }
    void mailbox_write(RegisterIndex index, std::uint32_t value) override {
        record_.mailbox.push_back(fmt::format("{} {:#x} {}", raw(vf_), raw(index), value));
    }
    bool read_vram(VfOffset offset, std::span<std::byte> out) override {
        const auto part = window(offset, out.size());
        std::ranges::copy(part, out.begin());
        return part.size() == out.size();
    }
    bool write_vram(VfOffset offset, std::span<const std::byte> data) override {
        const auto part = window(offset, data.size());
        if (part.size() != data.size()) return false;
        std::ranges::copy(data, part.begin());
        return true;
    }
    Result<> scrub_state() override {
        note(fmt::format("scrub {}", raw(vf_)));
        return {};
    }
    Result<std::vector<std::byte>> save_state() override { return record_.state; }
    Result<> load_state(std::span<const std::byte> stream) override {
        record_.loaded.assign(stream.begin(), stream.end());
        return {};
    }

private:
    void note(std::string call) { record_.calls.push_back(std::move(call)); }
    std::span<std::byte> window(VfOffset offset, std::size_t size) {
        constexpr std::size_t kBytes = VfControlRecord::kVramBytes;
        if (raw(offset) > kBytes || size > kBytes - raw(offset)) return {};
        return std::span(record_.vram(vf_)).subspan(raw(offset), size);
    }

    const VfId vf_;
    VfControlRecord& record_;
};

class FakePanels final : public VfControlRecord {
public:
    FakePanels() {
        for (std::uint8_t vf = 1; vf <= 4; ++vf)
            list.all.push_back(&panels_.emplace_back(VfId{vf}, *this));
    }

    VfControls list;

private:
    std::deque<FakeVfControl> panels_;
};

}  // namespace vgpu::softgpu::iov
