// SPDX-License-Identifier: MIT
//
// Cli: vgpuctl in this process over a FakeService; what it prints can be compared with goldens.
#pragma once

#include "cli/app.h"
#include "tests/unit/cli/fake_service.h"

#include <gtest/gtest.h>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace vgpu::cli::testing {

/// A scenario with several kinds of work.
constexpr const char* kMixed = VGPU_SOURCE_DIR "/schemas/examples/valid/vgpu-scenario-mixed.json";

/// Lends a FakeService to run_cli, which wants to own one.
class Lent : public Service {
public:
    /// Every call fails with the error `failure`, if that is not empty.
    explicit Lent(Service& service, std::string failure = "")
        : service_(service), failure_(std::move(failure)) {}
    Properties manager() override { return to().manager(); }
    std::vector<Properties> list_gpus_with(const std::string& names,
                                           std::uint32_t max_age_ms) override {
        return to().list_gpus_with(names, max_age_ms);
    }
    std::vector<Properties> list_vfs_with(const std::string& names,
                                          std::uint32_t max_age_ms) override {
        return to().list_vfs_with(names, max_age_ms);
    }
    std::vector<Properties> capacity() override { return to().capacity(); }
    Properties object(const std::string& path) override { return to().object(path); }
    std::string resolve(const std::string& target) override { return to().resolve(target); }
    std::string create_vf(const std::string& gpu, const Options& options) override {
        return to().create_vf(gpu, options);
    }
    void set_gpu(const std::string& path, const Options& options) override {
        to().set_gpu(path, options);
    }
    void set_vf(const std::string& path, const Options& options) override {
        to().set_vf(path, options);
    }
    std::uint64_t claim_vf(const std::string& path, const std::string& owner,
                           const Options& options) override {
        return to().claim_vf(path, owner, options);
    }
    void release_vf(const std::string& path, const std::string& owner, std::uint64_t generation,
                    const Options& options) override {
        to().release_vf(path, owner, generation, options);
    }
    std::vector<Properties> assign_vfs(
        const std::string& owner, const std::vector<std::pair<std::string, std::string>>& selectors,
        const Options& options) override {
        return to().assign_vfs(owner, selectors, options);
    }
    void grant_vfs(const std::string& owner, std::uint32_t uid, std::uint32_t gid) override {
        to().grant_vfs(owner, uid, gid);
    }
    std::uint64_t unassign_vfs(const std::string& owner) override {
        return to().unassign_vfs(owner);
    }
    std::uint64_t adopt_vfs(const std::string& owner, const Options& options) override {
        return to().adopt_vfs(owner, options);
    }
    void limit_calls(std::chrono::milliseconds limit) override { to().limit_calls(limit); }
    void control(const std::string& path, VfAction action, const Options& options) override {
        to().control(path, action, options);
    }
    std::string start_job(const std::string& path, VfJob job, const Options& options) override {
        return to().start_job(path, job, options);
    }
    std::string plan(const std::string& config, const Options& options) override {
        return to().plan(config, options);
    }
    std::string apply(const std::string& config, const Options& options) override {
        return to().apply(config, options);
    }
    std::string export_config(const Options& options) override {
        return to().export_config(options);
    }
    std::string auto_config(const Options& options) override { return to().auto_config(options); }
    std::optional<Properties> await_job(const std::string& path,
                                        const std::function<bool(const Properties&)>& is_enough,
                                        const std::vector<pollfd>& stop_on) override {
        return to().await_job(path, is_enough, stop_on);
    }
    std::vector<Properties> list_jobs() override { return to().list_jobs(); }
    void cancel_job(const std::string& path) override { to().cancel_job(path); }
    std::vector<Properties> recent_events(std::uint64_t after, std::uint64_t limit) override {
        return to().recent_events(after, limit);
    }
    bool is_running() override { return to().is_running(); }
    BusChange wait_for_change(const std::vector<pollfd>& stop_on) override {
        return to().wait_for_change(stop_on);
    }
    std::string metrics() override { return to().metrics(); }
    RunTable run_table(const std::string& gpu_path) override { return to().run_table(gpu_path); }
    TracePiece read_trace(const std::string& gpu_path, std::uint64_t after) override {
        return to().read_trace(gpu_path, after);
    }
    std::string dump(const std::string& gpu_path) override { return to().dump(gpu_path); }

private:
    Service& to() {
        if (!failure_.empty()) throw ServiceError(failure_, "VGPU-0: as the test wants.");
        return service_;
    }

    Service& service_;
    const std::string failure_;
};

class Cli : public ::testing::Test {
protected:
    int run(const std::vector<std::string>& words) {
        out.str("");
        err.str("");
        return run_cli(words,
                       [this](const std::string& bus) {
                           used_bus = bus;
                           if (is_bus_away)
                               throw ServiceError("org.freedesktop.DBus.Error.FileNotFound",
                                                  "cannot connect to the bus");
                           return std::make_unique<Lent>(service, every_call_fails_with);
                       },
                       {.out = out,
                        .err = err,
                        .is_terminal = is_terminal,
                        .uses_colour = uses_colour,
                        .columns = columns});
    }

    /// Output equals tests/golden/vgpuctl/NAME; VGPU_UPDATE_GOLDEN=1 writes it anew.
    void expect_golden(const std::string& name) const {
        const std::string path = std::string(VGPU_GOLDEN_DIR) + "/" + name;
        if (std::getenv("VGPU_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << out.str();
        std::ifstream file(path);
        const std::string wanted(std::istreambuf_iterator<char>(file), {});
        EXPECT_EQ(out.str(), wanted) << path;
    }

    void expect_80_columns() const {
        std::istringstream lines(out.str());
        for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    }

    FakeService service;
    std::ostringstream out, err;
    std::string used_bus;
    std::string every_call_fails_with;  ///< empty: none
    bool is_bus_away = false;
    bool is_terminal = false;
    bool uses_colour = false;
    std::size_t columns = kColumns;
};

}  // namespace vgpu::cli::testing
