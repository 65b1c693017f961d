// SPDX-License-Identifier: MIT
//
// PciGpu: the whole service over the model of xe in a tree of sysfs files, next to a GPU of our PF
// core. start() is a new vgpud over the same state and the same cards.
#pragma once

#include "daemon/backend/sriov/assignment.h"
#include "daemon/backend/xe/backend.h"
#include "daemon/service/jobs/jobs.h"
#include "tests/unit/backend/fake_xe.h"
#include "tests/unit/daemon/fake_owners.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/daemon/fake_state.h"

#include <gmock/gmock.h>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

inline constexpr std::uint64_t kMiB = 1u << 20;

class PciGpu : public ::testing::Test {
protected:
    explicit PciGpu(XeKernel kernel = XeKernel::k702, unsigned total_vfs = 8)
        : card(bus, kernel, total_vfs) {
        bus.load("vfio-pci");
        card.pf.is_autoprobing = false;
        soft.scrubs_at_once = true;
        start();
    }
    void add(const std::string& id, std::unique_ptr<Backend> backend,
             std::unique_ptr<AssignmentPort> assignment_mode) {
        GpuConfig gpu;
        gpu.id = id;
        manager->add(std::make_unique<GpuModel>(
            gpu, GpuPaths{},
            GpuModel::Ports{.backend = std::move(backend),
                            .managed_processes = nullptr,
                            .store = manager->store(),
                            .clock = clock,
                            .owners = &owners,
                            .assignment_mode = std::move(assignment_mode)}));
    }
    /// A new vgpud over the same state and the same cards.
    void start() {
        jobs.reset();
        manager = std::make_unique<Manager>(state, clock);
        const auto link = std::make_shared<sriov::SriovLink>(files, config);
        add("b50", std::make_unique<xe::XeBackend>(link, clock),
            std::make_unique<sriov::SriovAssignment>(link));
        add("soft", std::make_unique<FakePfPort>(soft), nullptr);
        jobs.emplace(*manager, clock);
        step();
    }
    void observe() {
        config.is_observing = true;
        start();
        files->forget_writes();
    }
    void step() {
        jobs->step();
        for (const auto& gpu : manager->gpus()) gpu->iterate();
        manager->finish();
        jobs->step();
    }
    void pass(Nanoseconds time = GpuModel::kRefresh) {
        clock.advance(time);
        step();
    }
    [[nodiscard]] std::shared_ptr<const GpuSnapshot> snapshot() {
        return manager->find_gpu("b50")->snapshot();
    }
    [[nodiscard]] VfView view(std::uint32_t vf) {
        return manager->find_gpu("b50")->model().view(vf);
    }

    template <typename T> Result<T> answer(const std::function<void(Done<T>)>& ask) {
        std::optional<Result<T>> got;
        ask([&got](Result<T> result) { got = std::move(result); });
        for (int i = 0; !got && i < 3; ++i) step();
        return got ? *got : fail(ErrorId::System, "no answer");
    }
    Result<Target> create(const std::string& name, Options options = {}) {
        options["name"] = name;
        return answer<Target>(
            [&](const Done<Target>& done) { manager->create("b50", options, done); });
    }
    /// 512 MiB, for VMs.
    Result<Target> create_for_vm(const std::string& name) {
        return create(name, {{"vram_bytes", std::uint64_t{512 * kMiB}},
                             {"assignment_mode", std::string("vfio-pci")}});
    }
    Result<> set(const Target& target, const Options& options) {
        return answer<void>([&](const Done<>& done) { manager->set_vf(target, options, done); });
    }
    Result<std::uint32_t> destroy(const Target& target) {
        return answer<std::uint32_t>(
            [&](const Done<std::uint32_t>& done) { manager->destroy(target, {}, done); });
    }
    JobView apply(const std::string& document, const Options& options = {}) {
        const auto id = jobs->apply(document, options);
        EXPECT_TRUE(id) << id.error().cause;
        for (int i = 0; i < 20; ++i) pass(std::chrono::milliseconds(100));
        return jobs->list().back();
    }
    Result<nlohmann::json> plan(const std::string& document) {
        TRY(const std::string text, answer<std::string>([&](const Done<std::string>& done) {
                jobs->plan(document, {}, done);
            }));
        return nlohmann::json::parse(text);
    }
    /// libvirt binds vfio-pci to a VF, as for a <hostdev> with managed='yes'.
    void bind_by_libvirt(unsigned vf) {
        card.pf.vf(vf).driver = "vfio-pci";
        files->add_link(card.pf.vf_path(vf, "driver"), "../drivers/vfio-pci");
    }
    /// A VM that vgpud does not know opens a VF.
    void open_unknown(unsigned vf) {
        bind_by_libvirt(vf);
        card.pf.open(vf);
    }
    /// How often somebody has written another number of VFs than 0.
    [[nodiscard]] std::size_t count_enables() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(files->writes(), [](const std::string& write) {
                return write.find("sriov_numvfs=") != std::string::npos && !write.ends_with("=0");
            }));
    }
    Result<std::uint64_t> claim(const Target& target, const std::string& owner) {
        return answer<std::uint64_t>(
            [&](const Done<std::uint64_t>& done) { manager->claim(target, owner, {}, done); });
    }
    [[nodiscard]] std::vector<std::string> kinds_of_events() {
        std::vector<std::string> kinds;
        for (const AdminEvent& event : manager->find_gpu("b50")->take_admin_events())
            kinds.emplace_back(name_of(event.kind));
        return kinds;
    }

    const std::shared_ptr<FakeSysfs> files = std::make_shared<FakeSysfs>();
    FakeBus bus{*files};
    FakeXe card;
    VirtualClock clock;
    FakeState state;
    FakeOwners owners;
    FakePf soft{clock};
    sriov::SriovConfig config{.address = card.pf.address(), .is_observing = false};
    std::unique_ptr<Manager> manager;
    std::optional<Jobs> jobs;
};

/// A configuration of `gpu` with VFs of one profile.
inline std::string document(const std::string& gpu, const std::string& scheduler,
                            const std::vector<std::string>& names,
                            const std::string& vram = "64MiB", const std::string& mode = "") {
    nlohmann::json profile{{"resources", {{"vram", vram}}},
                           {"scheduler", nlohmann::json::parse(scheduler)}};
    if (vram.empty()) profile["resources"] = nlohmann::json::object();
    if (!mode.empty()) profile["assignment_mode"] = mode;
    nlohmann::json vfs = nlohmann::json::array();
    for (const std::string& name : names) vfs.push_back({{"profile", "p"}, {"name", name}});
    return nlohmann::json{{"profiles", {{"p", profile}}},
                          {"configs", {{"day", {{{"gpu", gpu}, {"vfs", vfs}}}}}}}
        .dump();
}

/// The words of a plan's steps: "create a".
inline std::vector<std::string> steps_of(const nlohmann::json& plan) {
    std::vector<std::string> steps;
    for (const auto& step : plan.at("steps")) {
        const std::string name = step.at("name");
        steps.push_back(step.at("action").get<std::string>() + " " +
                        (name.empty() ? step.at("target").get<std::string>() : name));
    }
    return steps;
}

}  // namespace vgpu::daemon::testing
