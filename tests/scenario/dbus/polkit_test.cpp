// SPDX-License-Identifier: MIT
//
// vgpud as on a system bus, with FakeAuthority in place of polkit. privileges_test.cpp tests which
// method requires which action; real_polkit_test.cpp uses the real polkitd.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/fake_authority.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <csignal>
#include <fstream>
#include <future>
#include <mutex>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeAuthority;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Dict = std::map<std::string, sdbus::Variant>;

/// A healthy answer takes milliseconds; sanitizers and a busy machine take their part.
constexpr std::chrono::milliseconds kPrompt = std::chrono::seconds(20);

class Polkit : public BusFixture {
protected:
    Polkit()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = testing::fake_authority_rules(),
                           .authority = "",
                           .start = Setup::Start::Later}) {
        polkit.emplace(connect());
        start_daemon();
    }
    [[nodiscard]] test::Completed create(const std::string& name) const {
        return ctl({"create", "--name", name, "--vram", "64M"});
    }
    [[nodiscard]] bool is_pf_untouched() {
        return server.with([](FakePf& pf) { return pf.log.empty(); });
    }

    std::optional<FakeAuthority> polkit;
};

TEST_F(Polkit, ReadingAsksNobody) {
    EXPECT_EQ(ctl({"list"}).status, 0);
    EXPECT_EQ(ctl({"list", "--gpus"}).status, 0);
    EXPECT_EQ(ctl({"show", "gpu0"}).status, 0);
    EXPECT_EQ(ctl({"version"}).status, 0);
    EXPECT_THAT(polkit->take_questions(), IsEmpty());
}

TEST_F(Polkit, NoIsAClearErrorAndChangesNothing) {
    const auto refused = create("train");
    EXPECT_EQ(refused.status, 4);
    EXPECT_EQ(refused.out,
              "vgpuctl: VGPU-401: org.vgpu1.provision: polkit denies it. Ask the administrator for "
              "this polkit action, or call as root.\n");
    EXPECT_TRUE(is_pf_untouched());
    EXPECT_TRUE(ctl_json({"list"}).at("vfs").empty());
}

/// A call of VF 1 whose question polkit leaves open; polkit answers later questions.
class OpenCall {
public:
    OpenCall(std::unique_ptr<sdbus::IConnection> bus, FakeAuthority& polkit,
             const std::string& method = "Pause", const std::string& action = "org.vgpu1.control")
        : bus_(std::move(bus)),
          vf_(sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1/gpu/gpu0/vf/1")) {
        vf_->finishRegistration();
        polkit.keep_open(action);
        vf_->callMethodAsync(method)
            .onInterface("org.vgpu1.Vf")
            .withArguments(std::map<std::string, sdbus::Variant>{})
            .uponReplyInvoke([this](const sdbus::Error* error) {
                answer_.set_value(error == nullptr ? "done" : error->getMessage());
            });
        bus_->enterEventLoopAsync();
        test::wait_for("polkit is asked", kPrompt, [&] { return polkit.open_questions() == 1; });
        polkit.keep_open("");
    }
    ~OpenCall() { bus_->leaveEventLoop(); }
    OpenCall(const OpenCall&) = delete;
    OpenCall& operator=(const OpenCall&) = delete;

    [[nodiscard]] std::string answer() {
        auto answered = answer_.get_future();
        return answered.wait_for(kPrompt) == std::future_status::ready ? answered.get() : "none";
    }

private:
    std::promise<std::string> answer_;
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> vf_;
};

TEST_F(Polkit, ACallIsAnsweredWhenItsVfGoesWhileAPersonIsAsked) {
    polkit->say(true);
    ASSERT_EQ(create("train").status, 0);
    OpenCall pause(connect(), *polkit);
    ASSERT_EQ(ctl({"destroy", "train"}).status, 0);
    EXPECT_THAT(pause.answer(), HasSubstr("gpu0/vf1 was destroyed before the call was answered"));
    polkit->say_yes_to_open_ones();
    EXPECT_EQ(create("next").status, 0) << "its object is at the same path";
    EXPECT_EQ(ctl({"list"}).status, 0);
}

/// A call, its polkit action, and the request to the PF core that it causes.
struct LateCall {
    const char *method, *action, *operation;
};

class LateYes : public Polkit, public ::testing::WithParamInterface<LateCall> {};

TEST_P(LateYes, IsNotForTheNextVfOfTheSameNumber) {
    polkit->say(true);
    ASSERT_EQ(create("train").status, 0);
    OpenCall late(connect(), *polkit, GetParam().method, GetParam().action);
    ASSERT_EQ(ctl({"destroy", "train"}).status, 0);
    ASSERT_THAT(late.answer(), HasSubstr("gpu0/vf1 was destroyed before the call was answered"));
    ASSERT_EQ(create("next").status, 0);
    ASSERT_EQ(ctl_json({"show", "next"}).at("vf").at("target"), "gpu0/vf1");
    server.with([](FakePf& pf) { pf.log.clear(); });
    polkit->say_yes_to_open_ones();
    EXPECT_EQ(ctl({"set", "next", "--weight", "7"}).status, 0) << "served after it";
    const auto done = server.with([](FakePf& pf) { return pf.log; });
    EXPECT_THAT(done, Not(Contains(GetParam().operation)));
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, LateYes,
                         ::testing::Values(LateCall{"Pause", "org.vgpu1.control", "control 1"},
                                           LateCall{"Destroy", "org.vgpu1.provision", "release 1"}),
                         [](const auto& instance) { return std::string(instance.param.method); });

TEST_F(Polkit, ACallIsAnsweredWhenVgpudStopsWhileAPersonIsAsked) {
    polkit->say(true);
    ASSERT_EQ(create("train").status, 0);
    OpenCall pause(connect(), *polkit);
    vgpud->signal(SIGTERM);
    EXPECT_EQ(vgpud->wait_exit(), 0);
    EXPECT_THAT(pause.answer(), HasSubstr("VGPU-606: vgpud is stopping."));
}

TEST_F(Polkit, YesIsAskedForEachCallWithItsOwnAction) {
    polkit->say(true);
    EXPECT_EQ(create("train").status, 0);
    EXPECT_THAT(polkit->take_actions(), ElementsAre("org.vgpu1.provision"));
    EXPECT_EQ(ctl({"set", "train", "--weight", "7"}).status, 0);
    EXPECT_THAT(polkit->take_actions(), ElementsAre("org.vgpu1.provision"));
    for (const char* verb : {"pause", "resume", "stop", "reset"}) {
        EXPECT_EQ(ctl({verb, "train"}).status, 0) << verb;
        EXPECT_THAT(polkit->take_actions(), ElementsAre("org.vgpu1.control")) << verb;
    }
    polkit->say(false);
    EXPECT_EQ(ctl({"destroy", "train"}).status, 4) << "an earlier yes does not count";
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 1u);
}

TEST_F(Polkit, WhomAVfBelongsToIsAnActionOfItsOwn) {
    polkit->say(true);
    EXPECT_EQ(create("train").status, 0);
    polkit->take_questions();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "a"}).status, 0);
    EXPECT_THAT(polkit->take_actions(), ElementsAre("org.vgpu1.assign"));
    polkit->say(false);
    EXPECT_EQ(ctl({"release", "train", "--owner", "a", "--generation", "1"}).status, 4);
    EXPECT_THAT(polkit->take_actions(), ElementsAre("org.vgpu1.assign"));
    EXPECT_EQ(ctl_json({"show", "train"}).at("vf").at("owner"), "a");
}

TEST_F(Polkit, IsAskedAboutTheCallersBusNameAndMayAskAPerson) {
    polkit->say(true);
    const auto caller = connect();
    const auto manager = sdbus::createProxy(*caller, "org.vgpu1", "/org/vgpu1");
    manager->finishRegistration();
    sdbus::ObjectPath made;
    manager->callMethod("CreateVf")
        .onInterface("org.vgpu1.Manager")
        .withArguments(std::string("gpu0"), std::map<std::string, sdbus::Variant>{})
        .storeResultsTo(made);
    const auto questions = polkit->take_questions();
    ASSERT_EQ(questions.size(), 1u);
    EXPECT_EQ(questions[0].kind, "system-bus-name");
    EXPECT_EQ(questions[0].name, caller->getUniqueName());
    EXPECT_EQ(questions[0].flags, 1u) << "AllowUserInteraction";
}

TEST_F(Polkit, AnUnprivilegedCallerMayDoWhatItSays) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    if (ctl_as_nobody({"--help"}).status != 0)
        GTEST_SKIP() << "nobody cannot execute programs of this build directory";
    EXPECT_EQ(ctl_as_nobody({"list"}).status, 0);
    EXPECT_THAT(polkit->take_questions(), IsEmpty());
    const auto refused = ctl_as_nobody({"create"});
    EXPECT_EQ(refused.status, 4);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-401: org.vgpu1.provision: polkit denies it"));
    EXPECT_TRUE(is_pf_untouched());
    polkit->say(true);
    EXPECT_EQ(ctl_as_nobody({"create"}).status, 0);
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 1u);
}

TEST_F(Polkit, WithoutAnAnswerNobodyMayChangeAnything) {
    polkit.reset();
    const auto refused = create("train");
    EXPECT_EQ(refused.status, 4) << "root neither: only polkit decides";
    EXPECT_THAT(refused.out, HasSubstr("org.vgpu1.provision: polkit does not answer: "));
    EXPECT_EQ(ctl({"list"}).status, 0);
    EXPECT_TRUE(is_pf_untouched());
}

/// Sends `count` calls of CreateVf over a connection of another user; records the errors.
class Flooder {
public:
    Flooder(std::unique_ptr<sdbus::IConnection> bus, int count)
        : bus_(std::move(bus)), manager_(sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1")) {
        manager_->finishRegistration();
        for (int i = 0; i < count; ++i)
            manager_->callMethodAsync("CreateVf")
                .onInterface("org.vgpu1.Manager")
                .withArguments(std::string("gpu0"), Dict{})
                .uponReplyInvoke([this](const sdbus::Error* error, const sdbus::ObjectPath&) {
                    if (error == nullptr) return;
                    const std::scoped_lock lock(mutex_);
                    refusals_.push_back(error->getName());
                });
        bus_->enterEventLoopAsync();
    }
    ~Flooder() { bus_->leaveEventLoop(); }
    Flooder(const Flooder&) = delete;
    Flooder& operator=(const Flooder&) = delete;

    [[nodiscard]] std::vector<std::string> refusals() {
        const std::scoped_lock lock(mutex_);
        return refusals_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> refusals_;
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> manager_;
};

TEST_F(Polkit, ManyConnectionsOfOneUserLeaveRoomForRoot) {
    constexpr std::size_t kConnections = 9, kEach = 32, kAdmitted = 40;
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    polkit->say(true);
    ASSERT_EQ(create("train").status, 0);
    polkit->keep_open("org.vgpu1.provision");
    std::vector<std::unique_ptr<Flooder>> flooders;
    for (std::size_t i = 0; i < kConnections; ++i)
        flooders.push_back(std::make_unique<Flooder>(connect_as_nobody(), kEach));
    const auto refused = [&flooders] {
        std::vector<std::string> all;
        for (const auto& one : flooders)
            for (std::string& name : one->refusals()) all.push_back(std::move(name));
        return all;
    };
    test::wait_for("the rest to be refused", kPrompt,
                   [&] { return refused().size() == kConnections * kEach - kAdmitted; });
    EXPECT_THAT(refused(), ::testing::Each("org.vgpu1.Error.TooManyRequests"));
    test::wait_for("polkit to be asked about the others", kPrompt,
                   [&] { return polkit->open_questions() == kAdmitted; });
    EXPECT_EQ(ctl({"pause", "train"}).status, 0) << "root is served";
    EXPECT_EQ(ctl({"plan", "--auto", "2"}).status, 0);
    EXPECT_EQ(ctl({"list"}).status, 0);
}

TEST_F(Polkit, TextsWithoutEndAreRefusedBeforeAPersonIsAsked) {
    polkit->say(true);
    ASSERT_EQ(create("train").status, 0);
    polkit->take_questions();
    for (const char* action : {"org.vgpu1.assign", "org.vgpu1.provision"})
        polkit->keep_open(action);
    const std::string much(10u << 20, 'x');
    using Wants = std::vector<sdbus::Struct<std::string, std::string>>;
    const auto caller = connect();
    const auto refusal = [&](const std::string& path, const std::string& interface,
                             const std::string& method, const auto&... arguments) {
        const auto object = sdbus::createProxy(*caller, "org.vgpu1", path);
        object->finishRegistration();
        try {
            object->callMethod(method).onInterface(interface).withArguments(arguments...);
        } catch (const sdbus::Error& error) {
            EXPECT_LT(error.getMessage().size(), 512u) << method;
            return error.getName();
        }
        return std::string("none");
    };
    const auto manager = [&](const std::string& method, const auto&... arguments) {
        return refusal("/org/vgpu1", "org.vgpu1.Manager", method, arguments...);
    };
    const auto vf = [&](const std::string& method, const auto&... arguments) {
        return refusal("/org/vgpu1/gpu/gpu0/vf/1", "org.vgpu1.Vf", method, arguments...);
    };
    const std::string owner = "org.vgpu1.Error.InvalidOwner";
    const std::string one = "job:1";
    EXPECT_EQ(vf("Claim", much, Dict{}), owner);
    EXPECT_EQ(vf("Release", much, std::uint64_t{1}, Dict{}), owner);
    EXPECT_EQ(manager("Assign", much, Wants{{"name", "train"}}, Dict{}), owner);
    EXPECT_EQ(manager("Grant", much, 0u, 0u, Dict{}), owner);
    EXPECT_EQ(manager("Unassign", much, Dict{}), owner);
    EXPECT_EQ(manager("Adopt", much, Dict{}), owner);
    EXPECT_EQ(manager("CreateVf", much, Dict{}), "org.vgpu1.Error.OutOfRange");
    EXPECT_EQ(manager("Assign", one, Wants{{"name", much}}, Dict{}), "org.vgpu1.Error.InvalidName");
    EXPECT_EQ(manager("Assign", one, Wants{{much, "train"}}, Dict{}),
              "org.vgpu1.Error.UnknownOption");
    EXPECT_EQ(manager("Assign", one, Wants(1000, {"name", "train"}), Dict{}),
              "org.vgpu1.Error.OutOfRange");
    EXPECT_THAT(polkit->take_questions(), IsEmpty());
}

TEST(PolkitPolicy, DescribesEveryActionThatIsAskedFor) {
    std::ifstream file(VGPU_POLKIT_POLICY);
    const std::string policy(std::istreambuf_iterator<char>(file), {});
    for (const char* action : {"org.vgpu1.provision", "org.vgpu1.assign", "org.vgpu1.control"})
        EXPECT_THAT(policy, HasSubstr(fmt::format("<action id=\"{}\">", action)));
}

}  // namespace
}  // namespace vgpu::daemon
