// SPDX-License-Identifier: MIT
//
// World: vgpud's service with fakes at every port, ready to be killed and started again.
#pragma once

#include "daemon/service/manager.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/daemon/fake_state.h"

#include <map>
#include <memory>
#include <string>

namespace vgpu::daemon::testing {

class World {
public:
    explicit World(const std::vector<std::string>& gpus = {"gpu0"}) : names_(gpus) {
        for (const std::string& gpu : gpus) pfs_.emplace(gpu, std::make_unique<FakePf>(clock));
        start();
    }

    /// A new vgpud over the same state and PF cores; the old one is gone as by kill -9.
    void start() {
        manager = std::make_unique<Manager>(state);
        for (const std::string& gpu : names_) {
            GpuModel::Ports ports{.pf = std::make_unique<FakePfPort>(pf(gpu)),
                                  .companions = nullptr,
                                  .store = manager->store(),
                                  .clock = clock};
            GpuConfig config;
            config.id = gpu;
            manager->add(std::make_unique<GpuModel>(
                config, GpuPaths{.directory = "", .uapi_socket = "u", .vf_socket_dir = "/run/v"},
                std::move(ports)));
        }
        manager->step();
    }

    [[nodiscard]] FakePf& pf(const std::string& gpu = "gpu0") { return *pfs_.at(gpu); }
    [[nodiscard]] GpuModel& gpu(const std::string& id = "gpu0") { return *manager->find_gpu(id); }

    Result<Target> create(Options options, const std::string& gpu = "gpu0") {
        options.try_emplace("vram_bytes", std::uint64_t{64 * FakePf::kMiB});
        return manager->create(gpu, options);
    }

    void pass(Nanoseconds time) {
        clock.advance(time);
        manager->step();
    }

    VirtualClock clock;
    FakeState state;
    std::unique_ptr<Manager> manager;

private:
    std::vector<std::string> names_;
    std::map<std::string, std::unique_ptr<FakePf>> pfs_;
};

}  // namespace vgpu::daemon::testing
