// SPDX-License-Identifier: MIT
//
// Assignment mode and scrub policy as an operator meets them: vgpuctl and D-Bus against the real
// vgpud, a PF core in memory, and a socket on which the test listens as softgpu does.
#include "daemon/adapters/listener.h"
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class AssignmentPolicyOnTheBus : public BusFixture {
protected:
    AssignmentPolicyOnTheBus() {
        auto made = adapters::listen_at(socket(), 0600, 1);
        if (made) listener = *std::move(made);
    }
    [[nodiscard]] std::string socket() const { return directory.file("vf1.sock"); }
    [[nodiscard]] nlohmann::json train() const { return ctl_json({"show", "train"}).at("vf"); }
    void create(const std::vector<std::string>& more = {}) {
        std::vector<std::string> arguments{"create", "--name", "train", "--vram", "64M"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        static_cast<void>(ctl_json(arguments));
    }
    /// Name of the error that Vf.Set with these options answers; "" for none.
    [[nodiscard]] std::string set_error(const std::map<std::string, sdbus::Variant>& options) {
        const auto connection = connect();
        const auto vf = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1/gpu/gpu0/vf/1");
        vf->finishRegistration();
        try {
            vf->callMethod("Set").onInterface("org.vgpu1.Vf").withArguments(options);
        } catch (const sdbus::Error& error) {
            return error.getName();
        }
        return "";
    }

    adapters::UniqueFd listener;
};

TEST_F(AssignmentPolicyOnTheBus, AVfIsWithheldAndHandedOverAgain) {
    create();
    EXPECT_EQ(train().at("assignment_mode"), "vfio-user");
    EXPECT_EQ(ctl({"set", "train", "--assignment-mode", "none"}).out, "train: set\n");
    EXPECT_EQ(train().at("assignment_mode"), "none");
    EXPECT_FALSE(fs::exists(socket()));
    EXPECT_EQ(ctl({"set", "train", "--assignment-mode", "default"}).status, 0);
    EXPECT_EQ(train().at("assignment_mode"), "vfio-user");
    EXPECT_TRUE(fs::exists(socket()));
}

TEST_F(AssignmentPolicyOnTheBus, WhatThePlatformCannotDoIsANamedErrorThatSaysWhatItCan) {
    const auto refused =
        ctl({"create", "--name", "train", "--vram", "64M", "--assignment-mode", "host"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(
        refused.out,
        "vgpuctl: VGPU-313: gpu0/vf1: assignment mode 'host': the PF core in a process (vgpu-pf) "
        "does not "
        "support that assignment mode; it supports 'vfio-user', 'none'. Do what the message names, "
        "or choose an assignment mode that this GPU supports; docs/dbus-api.md lists the "
        "requirements of each.\n");
    EXPECT_TRUE(ctl_json({"list"}).at("vfs").empty());
    create();
    EXPECT_EQ(set_error({{"assignment_mode", sdbus::Variant{std::string("vfio-pci")}}}),
              "org.vgpu1.Error.AssignmentRefused");
    EXPECT_EQ(set_error({{"assignment_mode", sdbus::Variant{std::string("vfio")}}}),
              "org.vgpu1.Error.OutOfRange");
    EXPECT_EQ(set_error({{"scrub_on_release", sdbus::Variant{std::string("never")}}}),
              "org.vgpu1.Error.WrongType");
}

TEST_F(AssignmentPolicyOnTheBus, OfAClaimedVfIsItsOwnersToChangeAndOthersNeedPrivilege) {
    create();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "slurm:7"}).status, 0);
    EXPECT_EQ(set_error({{"assignment_mode", sdbus::Variant{std::string("none")}}}),
              "org.vgpu1.Error.Claimed");
    EXPECT_TRUE(fs::exists(socket()));
    EXPECT_EQ(ctl_as_nobody({"set", "train", "--assignment-mode", "none", "--force"}).status, 4);
    EXPECT_EQ(ctl({"set", "train", "--assignment-mode", "none", "--owner", "slurm:7"}).status, 0);
    EXPECT_FALSE(fs::exists(socket()));
}

TEST_F(AssignmentPolicyOnTheBus, SurvivesVgpudAndIsMadeAgainWhenTheDeviceBeganAnew) {
    create({"--assignment-mode", "none", "--scrub-on-release", "yes"});
    vgpud->kill_now();
    auto again = adapters::listen_at(socket(), 0600, 1);
    ASSERT_TRUE(again);
    start_daemon();
    wait_for_gpu_state("ok");
    EXPECT_EQ(train().at("assignment_mode"), "none");
    EXPECT_EQ(train().at("scrub_on_release"), true);
    EXPECT_FALSE(fs::exists(socket()));
}

TEST_F(AssignmentPolicyOnTheBus, AConfigurationSetsItAndExportWritesItDown) {
    create();
    const std::string file = directory.file("day.json");
    std::ofstream(file) << R"({
        "profiles": {"p": {"resources": {"vram": "64MiB"}, "security": {"scrub_on_release": true},
                           "assignment_mode": "none"}},
        "configs": {"day": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "train"}]}]}
    })";
    EXPECT_THAT(ctl({"plan", file}).out,
                HasSubstr("assignment_mode 'default' -> 'none', scrub_on_release"));
    EXPECT_EQ(ctl({"apply", file}).status, 0);
    EXPECT_FALSE(fs::exists(socket()));
    EXPECT_EQ(ctl({"assert", file}).status, 0);
    EXPECT_THAT(ctl({"export"}).out, HasSubstr("\"assignment_mode\": \"none\""));
    EXPECT_THAT(ctl({"export"}).out, HasSubstr("\"scrub_on_release\": true"));
}

TEST_F(AssignmentPolicyOnTheBus, EveryEndOfAClaimEmptiesAVfWithScrubOnRelease) {
    create({"--scrub-on-release", "yes"});
    const auto generation =
        ctl_json({"claim", "train", "--owner", "a"}).at("generation").get<int>();
    const auto before = server.with([](FakePf& pf) { return pf.vfs.at(1).generation; });
    EXPECT_EQ(ctl({"release", "train", "--owner", "a", "--generation", std::to_string(generation)})
                  .status,
              0);
    test::wait_for("the VF to be provisioned again", test::milliseconds(10'000), [&] {
        return server.with([before](FakePf& pf) {
            return pf.vfs.contains(1) && pf.vfs.at(1).generation > before;
        });
    });
}

}  // namespace
}  // namespace vgpu::daemon
