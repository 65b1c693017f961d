// SPDX-License-Identifier: MIT
//
// vgpuctl hook, as libvirt's script calls it, against the real vgpud, vgpu-pf and softgpu: VFs are
// assigned, opened through the domain's path, and emptied at the release.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/stack/gpu_stack.h"
#include "tests/support/vf_client/connection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
using testing::BusFixture;
using ::testing::HasSubstr;

constexpr const char* kUuidA = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
constexpr const char* kUuidB = "5dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10";
constexpr unsigned kBar0 = 0, kConfigSpace = 7;

/// Enables memory and bus master, without which a BAR does not answer.
void enable(test::Connection& client) {
    constexpr std::uint64_t kCommand = 4;
    constexpr std::array<std::byte, 2> kEnabled{std::byte{6}, std::byte{0}};
    client.write(kConfigSpace, kCommand, kEnabled);
}

struct GpuOfTheDomains {
    test::GpuStack gpu{{.vfs = 4, .vram_mb = 512, .aperture_mb = 64}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            gpu.dir().file("uapi.sock"), gpu.dir().path().string());
    }
};

class Hooked : private GpuOfTheDomains, public BusFixture {
protected:
    Hooked() : BusFixture(Setup{.gpus = config()}) {
        wait_for_gpu_state("ok");
        std::ofstream(directory.file("vgpu.json")) << R"({
            "profiles": {"small": {"resources": {"vram": "32MiB"}}},
            "configs": {"test": [{"gpu": "gpu0",
                "vfs": [{"profile": "small", "count": 2, "name": "small-{n}"}]}]}})";
        EXPECT_EQ(ctl({"apply", directory.file("vgpu.json")}).status, 0);
    }

    /// Calls the hook with argv and XML as libvirt does.
    [[nodiscard]] test::Completed hook(const std::string& operation, const std::string& uuid,
                                       const std::string& wanted = "profile='small'",
                                       const std::string& label = "") const {
        const std::string xml = directory.file(fmt::format("domain-{}-{}.xml", uuid, operation));
        std::ofstream(xml) << fmt::format(
            "<domain type='kvm'><name>vm-{0}</name><uuid>{1}</uuid><metadata>"
            "<vgpu:vf xmlns:vgpu='urn:vgpu:libvirt:1' {2}/></metadata>{3}</domain>",
            uuid.substr(0, 1), uuid, wanted,
            label.empty() ? "" : "<seclabel model='dac'><label>" + label + "</label></seclabel>");
        return test::run(
            {"/bin/sh", "-c",
             fmt::format("'{}' --bus '{}' hook -- vm-{} {} begin - <'{}'", test::program("vgpuctl"),
                         address, uuid.substr(0, 1), operation, xml)});
    }
    [[nodiscard]] nlohmann::json vf(const std::string& name) const {
        const auto listed = ctl_json({"list", "--vfs"});
        for (const auto& one : listed.at("vfs"))
            if (one.at("name") == name) return one;
        return {};
    }
    [[nodiscard]] std::string socket_of(const std::string& uuid) const {
        return directory.file(fmt::format("run/vm/{}/0.sock", uuid));
    }
    void wait_until_free(const std::string& name) const {
        test::wait_for(name + " to be free", test::milliseconds(10'000), [&] {
            const auto now = vf(name);
            return !now.is_null() && now.at("owner") == "" && now.at("state") == "provisioned";
        });
    }
};

TEST_F(Hooked, ADomainHasItsVfFromPrepareToRelease) {
    const auto prepared = hook("prepare", kUuidA);
    EXPECT_EQ(prepared.status, 0) << prepared.out;
    EXPECT_EQ(vf("small-1").at("owner"), std::string("libvirt:") + kUuidA);
    EXPECT_EQ(vf("small-1").at("owner_name"), "vm-4");
    EXPECT_EQ(fs::read_symlink(socket_of(kUuidA)), vf("small-1").at("socket").get<std::string>());
    EXPECT_THAT(ctl({"list", "--vfs"}).out, HasSubstr("libvirt:vm-4"));
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give sockets away";
    EXPECT_EQ(hook("start", kUuidA, "profile='small'", "+65534:+65534").status, 0);
    struct stat facts {};
    ASSERT_EQ(::stat(socket_of(kUuidA).c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, 65534u);
    EXPECT_EQ(facts.st_mode & 0077u, 0u);
    EXPECT_EQ(hook("release", kUuidA).status, 0);
    wait_until_free("small-1");
    EXPECT_FALSE(fs::exists(directory.file(std::string("run/vm/") + kUuidA)));
    ASSERT_EQ(::stat(vf("small-1").at("socket").get<std::string>().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, ::geteuid());
}

TEST_F(Hooked, VramIsEmptyForTheNextOwner) {
    const std::array<std::byte, 16> secret{std::byte{0x5e}, std::byte{0xc2}, std::byte{0xe7}};
    constexpr std::uint64_t kStep = 1u << 20, kVram = 32u << 20;
    const std::string wanted = "name='small-1'";
    ASSERT_EQ(hook("prepare", kUuidA, wanted).status, 0);
    {
        test::Connection client(socket_of(kUuidA));
        enable(client);
        for (std::uint64_t at = kStep; at < kVram; at += kStep) client.write(kBar0, at, secret);
        std::array<std::byte, 16> seen{};
        client.read(kBar0, kStep, seen);
        ASSERT_EQ(seen, secret) << "it can be written at all";
    }
    ASSERT_EQ(hook("release", kUuidA, wanted).status, 0) << "right behind the client's end";
    const auto next = hook("prepare", kUuidB, wanted);
    ASSERT_EQ(next.status, 0) << next.out;
    test::Connection client(socket_of(kUuidB));
    enable(client);
    for (std::uint64_t at = kStep; at < kVram; at += kStep) {
        std::array<std::byte, 16> seen{};
        seen.fill(std::byte{0xff});
        client.read(kBar0, at, seen);
        ASSERT_EQ(seen, (std::array<std::byte, 16>{})) << at;
    }
}

TEST_F(Hooked, TheLastVfGoesToOneOfThoseWhoAskAtOnce) {
    test::Completed a, b;
    std::thread first([&] { a = hook("prepare", kUuidA, "name='small-2'"); });
    std::thread second([&] { b = hook("prepare", kUuidB, "name='small-2'"); });
    first.join();
    second.join();
    EXPECT_EQ(a.status + b.status, 1) << a.out << b.out;
    const auto& loser = a.status != 0 ? a : b;
    EXPECT_THAT(loser.out, HasSubstr("no VF can be assigned: VGPU-310: gpu0/vf2 ('small-2')"));
}

TEST_F(Hooked, AFrozenClientLosesAVfThatIsDestroyedByForce) {
    const std::string socket = vf("small-1").at("socket").get<std::string>();
    test::Connection frozen(socket);  // and it neither reads nor hangs up
    test::wait_for("small-1 to be attached", test::milliseconds(10'000), [&] {
        return vf("small-1").at("attached") == true && vf("small-1").at("client") != "";
    });
    EXPECT_THAT(ctl({"show", "small-1"}).out, HasSubstr(fmt::format("(pid {})", ::getpid())));
    EXPECT_NE(ctl({"destroy", "small-1"}).status, 0);
    ASSERT_EQ(ctl({"destroy", "small-1", "--force"}).status, 0);
    EXPECT_TRUE(frozen.closed_by_server(test::milliseconds(10'000)));
    ASSERT_EQ(ctl({"create", "--vram", "32M", "--name", "next"}).status, 0);
    EXPECT_EQ(vf("next").at("attached"), false);
}

TEST_F(Hooked, ASocketThatSomebodyRemovedIsNeverHandedOutDead) {
    const std::string socket = vf("small-1").at("socket").get<std::string>();
    for (int i = 0; i < 5; ++i) {
        fs::remove(socket);
        const auto prepared = hook("prepare", kUuidA, "name='small-1'");
        if (prepared.status == 0) {
            EXPECT_NO_THROW(test::Connection{socket_of(kUuidA)});
        }
        EXPECT_EQ(hook("release", kUuidA, "name='small-1'").status, 0);
        wait_until_free("small-1");
    }
    EXPECT_EQ(hook("prepare", kUuidA, "name='small-1'").status, 0);
}

TEST_F(Hooked, ALateReleaseLeavesTheNextOwnerAlone) {
    ASSERT_EQ(hook("prepare", kUuidA, "name='small-1'").status, 0);
    ASSERT_EQ(hook("release", kUuidA, "name='small-1'").status, 0);
    ASSERT_EQ(hook("prepare", kUuidB, "name='small-1'").status, 0);
    const auto before = vf("small-1");
    EXPECT_EQ(hook("release", kUuidA, "name='small-1'").status, 0);
    const auto after = vf("small-1");
    EXPECT_EQ(after.at("owner"), std::string("libvirt:") + kUuidB);
    EXPECT_EQ(after.at("generation"), before.at("generation"));
}

TEST_F(Hooked, ClaimsOutliveVgpudAndAReconnectFindsThem) {
    ASSERT_EQ(hook("prepare", kUuidA).status, 0);
    const auto before = vf("small-1");
    vgpud->kill_now();
    EXPECT_EQ(hook("reconnect", kUuidA).status, 0) << "it never fails";
    start_daemon();
    wait_for_gpu_state("ok");
    EXPECT_EQ(hook("reconnect", kUuidA).status, 0);
    const auto after = vf("small-1");
    EXPECT_EQ(after.at("owner_generation"), before.at("owner_generation"));
    EXPECT_EQ(after.at("owner_name"), "vm-4") << "the hook told it again";
}

TEST_F(Hooked, WithoutVgpudAStartIsRefusedAndAnEndIsNot) {
    vgpud->kill_now();
    const auto refused = hook("prepare", kUuidA);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.out, HasSubstr("vgpu: domain 'vm-4': no VF can be assigned: vgpud does not "
                                       "answer on the bus"));
    EXPECT_EQ(hook("release", kUuidA).status, 0);
}

TEST_F(Hooked, AVgpudThatIsStoppedCostsABoundedTimeAndLeavesNothingBehind) {
    ASSERT_EQ(::kill(vgpud->pid(), SIGSTOP), 0);
    const auto began = std::chrono::steady_clock::now();
    const auto refused = hook("prepare", kUuidA);
    const auto took = std::chrono::steady_clock::now() - began;
    EXPECT_EQ(hook("release", kUuidA).status, 0);
    ASSERT_EQ(::kill(vgpud->pid(), SIGCONT), 0);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.out, HasSubstr("no VF can be assigned: "));
    EXPECT_LT(took, std::chrono::seconds(12));
    wait_until_free("small-1");
    EXPECT_EQ(hook("prepare", kUuidB, "name='small-1'").status, 0);
}

TEST_F(Hooked, ReleasedByHandWithScrubAVfIsEmptiedToo) {
    ASSERT_EQ(ctl({"claim", "small-1", "--owner", "slurm:7"}).status, 0);
    const auto before = vf("small-1");
    EXPECT_EQ(ctl({"release", "small-1", "--owner", "slurm:7", "--generation",
                   before.at("owner_generation").dump(), "--scrub"})
                  .status,
              0);
    wait_until_free("small-1");
    EXPECT_GT(vf("small-1").at("generation").get<int>(), before.at("generation").get<int>());
}

}  // namespace
}  // namespace vgpu::daemon
