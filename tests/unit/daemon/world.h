// SPDX-License-Identifier: MIT
//
// World: vgpud's service with fakes at every port, ready to be killed and started again.
#pragma once

#include "daemon/ports/gpu_runner.h"
#include "daemon/service/manager.h"
#include "tests/unit/daemon/fake_assignment.h"
#include "tests/unit/daemon/fake_owners.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/daemon/fake_state.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace vgpu::daemon::testing {

class World {
public:
    using MakeBackend = std::function<std::unique_ptr<Backend>(FakePf&)>;

    explicit World(
        const std::vector<std::string>& gpus = {"gpu0"},
        MakeBackend make = [](FakePf& pf) { return std::make_unique<FakePfPort>(pf); })
        : make_(std::move(make)), names_(gpus) {
        for (const std::string& gpu : gpus) {
            pfs_.emplace(gpu, std::make_unique<FakePf>(clock));
            assignment_modes_.emplace(gpu, FakeAssignment(pf(gpu)));
        }
        start();
    }

    /// A new vgpud over the same state and PF cores; the old one is gone as by kill -9.
    void start() {
        manager = std::make_unique<Manager>(state, clock);
        for (const std::string& gpu : names_) {
            GpuModel::Ports ports{
                .backend = make_(pf(gpu)),
                .managed_processes = nullptr,
                .store = manager->store(),
                .clock = clock,
                .owners = &owners,
                .assignment_mode = std::make_unique<FakeAssignmentPort>(assignment_mode(gpu))};
            GpuConfig config;
            config.id = gpu;
            manager->add(std::make_unique<GpuModel>(
                config, GpuPaths{.directory = "", .uapi_socket = "u", .vf_socket_dir = "/run/v"},
                std::move(ports)));
        }
        step();
    }

    /// From now on requests wait for step(), as they wait for the thread of a GPU.
    void queue_requests() {
        for (const auto& gpu : manager->gpus()) gpu->start(std::make_unique<IdleRunner>(), [] {});
    }

    /// The next vgpud is not told of this GPU.
    void forget(const std::string& gpu) { std::erase(names_, gpu); }

    [[nodiscard]] FakePf& pf(const std::string& gpu = "gpu0") { return *pfs_.at(gpu); }
    [[nodiscard]] FakeAssignment& assignment_mode(const std::string& gpu = "gpu0") {
        return assignment_modes_.at(gpu);
    }
    [[nodiscard]] GpuModel& gpu(const std::string& id = "gpu0") {
        return manager->find_gpu(id)->model();
    }
    /// Each GPU takes a turn.
    void step() {
        for (const auto& gpu : manager->gpus()) gpu->iterate();
        manager->finish();
    }

    Result<Target> create(Options options, const std::string& gpu = "gpu0") {
        options.try_emplace("vram_bytes", std::uint64_t{64 * FakePf::kMiB});
        return create_as_is(gpu, options);
    }
    /// Without a size of the tests' own.
    Result<Target> create_as_is(const std::string& gpu, const Options& options) {
        return answer<Target>(
            [&](const Done<Target>& done) { manager->create(gpu, options, done); });
    }
    Result<> set_vf(const Target& target, const Options& options) {
        return answer<void>([&](const Done<>& done) { manager->set_vf(target, options, done); });
    }
    Result<> set_gpu(const Target& target, const Options& options) {
        return answer<void>([&](const Done<>& done) { manager->set_gpu(target, options, done); });
    }
    Result<std::uint32_t> destroy(const Target& target, const Options& options = {}) {
        return answer<std::uint32_t>(
            [&](const Done<std::uint32_t>& done) { manager->destroy(target, options, done); });
    }
    Result<> control(const Target& target, vgpu_pf_control_action action, const Options& options) {
        return answer<void>(
            [&](const Done<>& done) { manager->control(target, action, options, done); });
    }

    Result<std::uint64_t> claim(const Target& target, const std::string& owner,
                                const Options& options = {}) {
        return answer<std::uint64_t>(
            [&](const Done<std::uint64_t>& done) { manager->claim(target, owner, options, done); });
    }
    Result<> release(const Target& target, const std::string& owner, std::uint64_t generation) {
        return answer<void>(
            [&](const Done<>& done) { manager->release(target, owner, generation, {}, done); });
    }

    void pass(Nanoseconds time) {
        clock.advance(time);
        step();
    }

    VirtualClock clock;
    FakeState state;
    FakeOwners owners;
    std::unique_ptr<Manager> manager;

private:
    class IdleRunner final : public GpuRunner {
    public:
        void start(GpuLoop&) override {}
        void wake() override {}
        void stop() override {}
    };

    template <typename T> Result<T> answer(const std::function<void(Done<T>)>& ask) {
        std::optional<Result<T>> got;
        ask([&got](Result<T> result) { got = std::move(result); });
        return got ? *got : fail(ErrorId::System, "no answer");
    }

    MakeBackend make_;
    std::vector<std::string> names_;
    std::map<std::string, std::unique_ptr<FakePf>> pfs_;
    std::map<std::string, FakeAssignment> assignment_modes_;
};

}  // namespace vgpu::daemon::testing
