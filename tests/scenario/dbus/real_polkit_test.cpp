// SPDX-License-Identifier: MIT
//
// The whole chain of privileges as installed: vgpu's bus policy on a bus with the distribution's
// rules, vgpud, and the real polkitd with vgpu's actions, which it finds in a mount namespace of
// its own. Needs root.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/method_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <filesystem>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kPolkitd = "/usr/lib/polkit-1/polkitd";

constexpr const char* kPolkitRules = R"(<policy user="polkitd">
    <allow own="org.freedesktop.PolicyKit1"/></policy>
  <policy user="root"><allow own="org.freedesktop.PolicyKit1"/></policy>
  <policy context="default"><allow send_destination="org.freedesktop.PolicyKit1"/></policy>)";

class RealPolkit : public BusFixture {
protected:
    RealPolkit()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = kPolkitRules,
                           .authority = "",
                           .start = Setup::Start::Later}) {}

    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "needs root for a mount namespace";
        if (!fs::exists(kPolkitd)) GTEST_SKIP() << "polkitd is not installed";
        if (test::run({"/usr/bin/unshare", "-m", "/bin/true"}).status != 0)
            GTEST_SKIP() << "no mount namespaces here";
        if (ctl_as_nobody({"--help"}).status != 0)
            GTEST_SKIP() << "nobody cannot execute programs of this build directory";
        start_polkitd();
        start_daemon();
    }

    void start_polkitd() {
        const std::string actions = directory.file("actions"), rules = directory.file("rules");
        fs::create_directory(actions);
        fs::create_directory(rules);
        fs::copy_file(VGPU_POLKIT_POLICY, actions + "/org.vgpu1.policy");
        const std::string script = fmt::format(
            "mount --make-rprivate / && mount --bind {} /usr/share/polkit-1/actions && "
            "mkdir -p /etc/polkit-1/rules.d && mount --bind {} /etc/polkit-1/rules.d && exec {} "
            "--no-debug",
            actions, rules, kPolkitd);
        polkitd.emplace(
            test::ChildProcess::Spec{"polkitd",
                                     {"/usr/bin/unshare", "-m", "/bin/sh", "-c", script},
                                     directory.file("polkitd.log"),
                                     {"DBUS_SYSTEM_BUS_ADDRESS=" + address}});
        const auto connection = connect();
        const auto bus_itself =
            sdbus::createProxy(*connection, "org.freedesktop.DBus", "/org/freedesktop/DBus");
        bus_itself->finishRegistration();
        test::wait_for("polkitd to be on the bus", test::milliseconds(15'000), [&] {
            bool has_owner = false;
            bus_itself->callMethod("NameHasOwner")
                .onInterface("org.freedesktop.DBus")
                .withArguments(std::string("org.freedesktop.PolicyKit1"))
                .storeResultsTo(has_owner);
            return has_owner;
        });
    }

    std::optional<test::ChildProcess> polkitd;
};

TEST_F(RealPolkit, RootMayWhatOthersMayNotAndAllMayRead) {
    EXPECT_EQ(ctl_as_nobody({"list"}).status, 0);
    EXPECT_EQ(ctl_as_nobody({"show", "gpu0"}).status, 0);
    EXPECT_EQ(ctl_as_nobody({"events"}).status, 0);
    EXPECT_EQ(ctl_as_nobody({"metrics"}).status, 0);
    const auto refused = ctl_as_nobody({"create"});
    EXPECT_EQ(refused.status, 4) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("VGPU-401: org.vgpu1.provision: polkit denies it"));
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.vfs.empty(); }));

    const auto made = ctl({"create", "--name", "train", "--vram", "64M"});
    EXPECT_EQ(made.status, 0) << made.out;
    for (const char* verb : {"pause", "resume", "stop", "reset"}) {
        const auto no = ctl_as_nobody({verb, "train"});
        EXPECT_EQ(no.status, 4) << verb << ": " << no.out;
        EXPECT_THAT(no.out, HasSubstr("org.vgpu1.control: polkit denies it"));
    }
    EXPECT_EQ(ctl({"pause", "train"}).status, 0);
    EXPECT_EQ(ctl_as_nobody({"destroy", "train"}).status, 4);
    EXPECT_EQ(ctl({"destroy", "train"}).status, 0);
}

TEST_F(RealPolkit, EveryMethodIsFreeOrRefusedToOthersInTheNameOfItsAction) {
    ASSERT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    testing::make_job(*connect());
    const auto nobody = connect_as_nobody();
    std::map<std::string, std::string> actions;
    for (const testing::Right& right : testing::rights()) actions[right.method] = right.action;
    for (const testing::Method& method : testing::methods_of_the_xml()) {
        const std::string action = actions.at(method.full_name());
        const auto outcome = testing::call(*nobody, method);
        if (action.empty())
            EXPECT_EQ(outcome.error, "") << method.full_name() << ": " << outcome.text;
        else
            EXPECT_THAT(outcome.text, HasSubstr("VGPU-401: " + action + ": polkit denies it"))
                << method.full_name();
    }
    EXPECT_EQ(ctl_json({"show", "train"}).at("vf").at("owner"), "");
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
}

TEST_F(RealPolkit, ThatDiesMidwayMeansNo) {
    polkitd->kill_now();
    const auto refused = ctl({"create"});
    EXPECT_EQ(refused.status, 4) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("polkit does not answer"));
    EXPECT_EQ(ctl({"list"}).status, 0);
}

}  // namespace
}  // namespace vgpu::daemon
