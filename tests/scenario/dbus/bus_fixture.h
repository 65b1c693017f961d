// SPDX-License-Identifier: MIT
//
// BusFixture: a private dbus-daemon with the distribution's default-deny rules and vgpu's real bus
// policy, the real vgpud on it, and a UapiServer in place of a GPU. vgpud can be killed, asked to
// end and started again; vgpuctl runs as a program.
#pragma once

#include "tests/scenario/dbus/uapi_server.h"
#include "tests/support/stack/child_process.h"
#include "tests/support/stack/temp_dir.h"

#include <gtest/gtest.h>
#include <sdbus-c++/sdbus-c++.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::daemon::testing {

class BusFixture : public ::testing::Test {
protected:
    /// Differences from the default, which is one fake GPU without polkit.
    struct Setup {
        std::string gpus;          ///< JSON list, in place of the fake GPU
        std::string bus_policy{};  ///< more rules of the bus
        std::string authority = "--no-polkit";
        enum class Start { Now, Later } start = Start::Now;  ///< when vgpud starts
        std::vector<std::string> environment{};              ///< NAME=value, added to vgpud's
    };

    BusFixture() : BusFixture(Setup{}) {}
    explicit BusFixture(const Setup& setup);

    void start_daemon();
    /// The arguments of vgpud.
    [[nodiscard]] std::vector<std::string> daemon_command() const;

    /// vgpuctl ARGUMENTS, both streams in `out`.
    [[nodiscard]] test::Completed ctl(std::vector<std::string> arguments) const;
    /// Like ctl(), with --json; fails the test if it does not succeed.
    [[nodiscard]] nlohmann::json ctl_json(std::vector<std::string> arguments) const;
    /// Like ctl(), as user nobody.
    [[nodiscard]] test::Completed ctl_as_nobody(std::vector<std::string> arguments) const;

    [[nodiscard]] std::unique_ptr<sdbus::IConnection> connect() const;
    /// Like connect(), as user nobody; for root only.
    [[nodiscard]] std::unique_ptr<sdbus::IConnection> connect_as_nobody() const;
    /// Calls a method of `vf` that starts a job; returns the job's path.
    static std::string begin_job(sdbus::IConnection& bus, const std::string& vf,
                                 const std::string& method,
                                 const std::map<std::string, sdbus::Variant>& options = {});
    /// The error that Manager.CreateVf with these options answers; empty for none.
    struct Refusal {
        std::string name, text;
    };
    [[nodiscard]] Refusal create_refusal(
        const std::map<std::string, sdbus::Variant>& options) const;
    [[nodiscard]] std::string create_error(
        const std::map<std::string, sdbus::Variant>& options) const {
        return create_refusal(options).name;
    }

    /// Waits (bounded) until `vgpuctl list` shows gpu0 in `state`.
    void wait_for_gpu_state(const std::string& state);

    test::TempDir directory;
    std::string address;
    std::optional<test::ChildProcess> bus;
    UapiServer server;
    std::optional<test::ChildProcess> vgpud;

private:
    void write_files() const;
    Setup setup_;
    int starts_ = 0;
};

}  // namespace vgpu::daemon::testing
