// SPDX-License-Identifier: MIT
//
// PlainGpu: a GPU in memory whose driver can do little: four VFs of a size that it does not tell,
// no weights, no compute units, no run tables and no events. Its quanta are whole milliseconds, and
// change only while no VF is in use. The GPU outlives the backends made for it, as a device
// outlives vgpud.
#pragma once

#include "daemon/backend/backend.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

struct PlainGpu {
    std::map<std::uint32_t, VfFacts> vfs;                ///< that vgpud was given
    std::map<std::uint32_t, std::uint32_t> quanta_us{};  ///< by VF
    std::vector<std::string> writes{};
    std::uint32_t generation = 0;
};

class PlainBackend final : public Backend {
public:
    static constexpr std::uint32_t kVfs = 4;

    explicit PlainBackend(PlainGpu& gpu) : gpu_(gpu) {}

    Result<> connect() override {
        is_connected_ = true;
        return {};
    }
    void disconnect() override { is_connected_ = false; }
    [[nodiscard]] bool is_connected() const override { return is_connected_; }
    [[nodiscard]] int connection_fd() const override { return -1; }

    Result<GpuFacts> get_info() override {
        Abilities abilities("plain");
        abilities[Change::QuantumUs] = {
            .needs = Needs::AllIdle, .unit = 1000, .min = 1000, .max = 100'000};
        abilities[Change::Reset].needs = Needs::Nothing;
        return GpuFacts{.abilities = abilities,
                        .address = "0000:03:00.0",
                        .total_vfs = kVfs,
                        .enabled_vfs = kVfs};
    }
    Result<VfFacts> get_vf(std::uint32_t vf) override {
        const auto at = gpu_.vfs.find(vf);
        return at == gpu_.vfs.end() ? VfFacts{.vf = vf} : at->second;
    }
    Result<> provision(const vgpu_pf_provision& wanted) override {
        if (gpu_.vfs.contains(wanted.vf)) return {};
        write("provision", wanted.vf);
        gpu_.vfs[wanted.vf] = {.vf = wanted.vf,
                               .state = VGPU_PF_VF_PROVISIONED,
                               .generation = ++gpu_.generation,
                               .address = "0000:03:00." + std::to_string(wanted.vf)};
        return {};
    }
    Result<> release(std::uint32_t vf, std::uint32_t) override {
        write("release", vf);
        gpu_.vfs.at(vf).state = VGPU_PF_VF_SCRUBBING;
        gpu_.vfs.at(vf).is_attached = false;
        return {};
    }
    Result<> confirm_scrub(std::uint32_t vf, std::uint32_t) override {
        write("confirm_scrub", vf);
        gpu_.vfs.erase(vf);
        return {};
    }
    Result<> check_scrubbed(std::uint32_t, std::uint32_t) override { return {}; }
    Result<> control(std::uint32_t vf, std::uint32_t, vgpu_pf_control_action) override {
        write("control", vf);
        return {};
    }
    Result<> set_shares(std::span<const VfShare> shares) override {
        for (const VfShare& share : shares) {
            std::uint32_t& quantum_us = gpu_.quanta_us[share.vf];
            if (quantum_us == share.quantum_us) continue;
            write("set_shares", share.vf);
            quantum_us = share.quantum_us;
        }
        return {};
    }

private:
    void write(const std::string& what, std::uint32_t vf) {
        gpu_.writes.push_back(what + " " + std::to_string(vf));
    }

    PlainGpu& gpu_;
    bool is_connected_ = false;
};

}  // namespace vgpu::daemon::testing
