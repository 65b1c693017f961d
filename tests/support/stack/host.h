// SPDX-License-Identifier: MIT
//
// Host: the programs of a host with one software GPU, without root: a private D-Bus daemon, vgpud
// and vgpuctl. The demo and tests/try use it. vgpud may be killed and started again. softgpu and
// vgpu-pf, which vgpud starts, outlive vgpud. The destructor of Host ends them and every other
// child process that is left.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/stack/child_process.h"
#include "tests/support/stack/temp_dir.h"

namespace vgpu::test {

struct HostOptions {
    unsigned vfs = 4;
    unsigned vram_mb = 512;
    unsigned aperture_mb = 64;
    unsigned cus = 8;
    unsigned threads = 1;
    std::uint32_t quantum_us = 8000;
};

class Host {
public:
    /// All files are below `dir`, which outlives the Host. Throws with the log of the program that
    /// did not start.
    Host(const TempDir& dir, HostOptions options);

    void start_vgpud();
    void kill_vgpud() { vgpud_->kill_now(); }
    /// Runs vgpuctl and returns its output; throws with the output if vgpuctl fails.
    std::string ctl(const std::vector<std::string>& arguments) const;
    [[nodiscard]] nlohmann::json ctl_json(std::vector<std::string> arguments) const;

    [[nodiscard]] const std::string& bus_address() const { return bus_address_; }
    [[nodiscard]] std::string uapi_socket() const { return gpu_dir() + "/uapi.sock"; }
    [[nodiscard]] std::string control_socket() const { return gpu_dir() + "/control.sock"; }
    [[nodiscard]] std::string vf_socket(std::uint32_t vf) const;
    [[nodiscard]] std::string file(const std::string& name) const { return dir_.file(name); }
    /// Log of "softgpu" or "vgpu-pf".
    [[nodiscard]] std::string log_of(const std::string& helper) const;
    [[nodiscard]] const HostOptions& options() const { return options_; }

private:
    [[nodiscard]] std::string gpu_dir() const { return dir_.file("run/gpu0"); }
    void write_config() const;
    void start_bus();
    void wait_for_gpu() const;

    HostOptions options_;
    const TempDir& dir_;
    Orphans orphans_;  // ends what is left of vgpud's children, before the directory goes
    std::optional<ChildProcess> bus_;
    std::string bus_address_;
    std::optional<ChildProcess> vgpud_;
};

}  // namespace vgpu::test
