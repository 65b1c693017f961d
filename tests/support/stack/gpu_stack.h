// SPDX-License-Identifier: MIT
//
// GpuStack: one softgpu and one vgpu-pf in a private directory, without vgpud. Most scenario tests
// use it. Both programs are separate processes; either may be killed and started again.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/stack/child_process.h"
#include "tests/support/stack/pf_client.h"
#include "tests/support/stack/temp_dir.h"

namespace vgpu::test {

enum class SwitchMode { Pointer, TrueCopy };

struct GpuOptions {
    unsigned vfs = 4;
    unsigned vram_mb = 512;
    unsigned aperture_mb = 64;
    unsigned cus = 8;
    unsigned threads = 2;
    unsigned idle_grace_us = 100;
    SwitchMode mode = SwitchMode::Pointer;
    bool is_stepwise = false;    ///< vgpu-pf switches with IDLE SAVE LOAD RUN
    bool is_unconfined = false;  ///< neither program confines itself
};

/// One JSON line to a control socket of softgpu; throws if the answer is an error.
nlohmann::json control_request(const std::string& socket, const nlohmann::json& request);

/// Lines of the programs' logs about refused system calls (pf-driver/confine), of all stacks that
/// have ended since the last call.
[[nodiscard]] std::vector<std::string> take_refusals();

class GpuStack {
public:
    explicit GpuStack(GpuOptions options = {});
    ~GpuStack();
    GpuStack(const GpuStack&) = delete;
    GpuStack& operator=(const GpuStack&) = delete;

    void start_softgpu();
    void start_pf();
    [[nodiscard]] ChildProcess& softgpu() { return *softgpu_; }
    [[nodiscard]] ChildProcess& pf_process() { return *pf_process_; }
    void stop_pf() { pf_process_.reset(); }
    void kill_pf();
    void kill_softgpu();
    /// A fresh connection to vgpu-pf.
    [[nodiscard]] PfClient connect_pf() const { return PfClient(dir_.file("uapi.sock")); }
    [[nodiscard]] PfClient& pf() { return *pf_; }

    /// Gives the VF VRAM, then installs a run table with equal quanta for all VFs provisioned so
    /// far.
    void provision(std::uint32_t vf, std::uint64_t vram_mb = 32);
    [[nodiscard]] std::string vf_socket(std::uint32_t vf) const;
    [[nodiscard]] std::string pf_socket() const { return dir_.file("pf.sock"); }

    nlohmann::json control(const nlohmann::json& request) const;
    /// Adds one fault to the fault plan of softgpu.
    void inject(std::uint32_t vf, const std::string& point, const std::string& effect) const;
    void set_quantum(std::uint32_t quantum_us) { quantum_us_ = quantum_us; }
    [[nodiscard]] const TempDir& dir() const { return dir_; }

private:
    GpuOptions options_;
    TempDir dir_;
    std::optional<ChildProcess> softgpu_;
    std::optional<ChildProcess> pf_process_;
    std::optional<PfClient> pf_;
    std::uint32_t quantum_us_ = 2000;
    std::vector<std::uint32_t> provisioned_;
};

}  // namespace vgpu::test
