// SPDX-License-Identifier: MIT
//
// Manager: all GPUs of one vgpud. Finds targets (gpu0, gpu0/vf3, a VF's name, its UUID), chooses a
// GPU for a new VF, keeps names unique, and turns checked options into requests of GpuModel. Owns
// the GPUs and the state store. One thread: the main loop calls step(), the D-Bus layer the rest.
#pragma once

#include "daemon/service/gpu.h"
#include "daemon/service/options.h"
#include "daemon/service/state_store.h"

#include <memory>
#include <string>
#include <vector>

namespace vgpu::daemon {

/// A GPU, or one of its VFs.
struct Target {
    std::string gpu;
    std::uint32_t vf = 0;  ///< 0: the GPU

    bool operator==(const Target&) const = default;
    auto operator<=>(const Target&) const = default;
};

class Manager {
public:
    explicit Manager(StatePort& port) : store_(port) { store_.load(); }

    [[nodiscard]] StateStore& store() { return store_; }
    void add(std::unique_ptr<GpuModel> gpu) { gpus_.push_back(std::move(gpu)); }
    [[nodiscard]] const std::vector<std::unique_ptr<GpuModel>>& gpus() const { return gpus_; }
    /// Null if there is none.
    [[nodiscard]] GpuModel* find_gpu(const std::string& id) const;

    void step();

    Result<Target> resolve(const std::string& text) const;
    Result<Target> create(const std::string& gpu, const Options& options);
    Result<> set_vf(const Target& target, const Options& options);
    Result<> set_gpu(const Target& target, const Options& options);
    /// Returns the generation that is being released.
    Result<std::uint32_t> destroy(const Target& target);
    Result<> control(const Target& target, vgpu_pf_control_action action, const Options& options);

    std::vector<Notice> take_notices();

private:
    [[nodiscard]] Result<GpuModel*> gpu_of(const Target& target) const;
    [[nodiscard]] Result<> name_is_free(const std::string& name, const Target& but) const;
    [[nodiscard]] Result<GpuModel*> gpu_for(const std::string& gpu) const;

    StateStore store_;
    std::vector<std::unique_ptr<GpuModel>> gpus_;
};

}  // namespace vgpu::daemon
