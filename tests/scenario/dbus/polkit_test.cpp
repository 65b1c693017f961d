// SPDX-License-Identifier: MIT
//
// vgpud as it runs on a system bus, asking polkit: a small authority of ours on the private bus
// says yes or no and notes what it was asked. The real polkitd: real_polkit_test.cpp.
#include "tests/scenario/dbus/bus_fixture.h"

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
using ::testing::ElementsAre;
using testing::FakePf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A healthy answer takes milliseconds; sanitizers and a busy machine take their part.
constexpr std::chrono::milliseconds kPrompt = std::chrono::seconds(20);
constexpr const char* kPolkit = "org.freedesktop.PolicyKit1";

std::string polkit_rules() {
    return fmt::format(R"(<policy user="{}"><allow own="{}"/></policy>
  <policy context="default"><allow send_destination="{}"/></policy>)",
                       ::geteuid(), kPolkit, kPolkit);
}

/// org.freedesktop.PolicyKit1.Authority, as far as vgpud needs it.
class FakeAuthority {
public:
    struct Question {
        std::string kind, name, action;
        std::uint32_t flags = 0;
    };

    explicit FakeAuthority(std::unique_ptr<sdbus::IConnection> bus)
        : bus_(std::move(bus)),
          object_(sdbus::createObject(*bus_, "/org/freedesktop/PolicyKit1/Authority")) {
        object_->registerMethod("CheckAuthorization")
            .onInterface("org.freedesktop.PolicyKit1.Authority")
            .implementedAs(
                [this](sdbus::Result<Answer>&& result, const Subject& subject,
                       const std::string& action, const Details&, std::uint32_t flags,
                       const std::string&) { answer(std::move(result), subject, action, flags); });
        object_->finishRegistration();
        bus_->requestName(kPolkit);
        bus_->enterEventLoopAsync();
    }
    ~FakeAuthority() { bus_->leaveEventLoop(); }
    FakeAuthority(const FakeAuthority&) = delete;
    FakeAuthority& operator=(const FakeAuthority&) = delete;

    void say(bool yes) {
        const std::scoped_lock lock(mutex_);
        says_yes_ = yes;
    }
    /// Questions about `action` stay open, as while a person types a password.
    void keep_open(const std::string& action) {
        const std::scoped_lock lock(mutex_);
        kept_action_ = action;
    }
    [[nodiscard]] std::size_t open_questions() {
        const std::scoped_lock lock(mutex_);
        return kept_.size();
    }
    void say_yes_to_open_ones() {
        const std::scoped_lock lock(mutex_);
        for (const auto& one : std::exchange(kept_, {}))
            one.returnResults(Answer{true, false, Details{}});
    }
    /// What it was asked since the last call.
    std::vector<Question> take_questions() {
        const std::scoped_lock lock(mutex_);
        return std::exchange(questions_, {});
    }
    std::vector<std::string> take_actions() {
        std::vector<std::string> actions;
        for (const Question& question : take_questions()) actions.push_back(question.action);
        return actions;
    }

private:
    using Facts = std::map<std::string, sdbus::Variant>;
    using Subject = sdbus::Struct<std::string, Facts>;
    using Details = std::map<std::string, std::string>;
    using Answer = sdbus::Struct<bool, bool, Details>;

    void answer(sdbus::Result<Answer>&& result, const Subject& subject, const std::string& action,
                std::uint32_t flags) {
        const std::scoped_lock lock(mutex_);
        const Facts& facts = subject.get<1>();
        const auto name = facts.find("name");
        questions_.push_back({.kind = subject.get<0>(),
                              .name = name == facts.end() ? "" : name->second.get<std::string>(),
                              .action = action,
                              .flags = flags});
        if (action == kept_action_)
            kept_.push_back(std::move(result));
        else
            result.returnResults(Answer{says_yes_, false, Details{}});
    }

    std::mutex mutex_;
    bool says_yes_ = false;
    std::vector<Question> questions_;
    std::string kept_action_;
    std::unique_ptr<sdbus::IConnection> bus_;
    std::vector<sdbus::Result<Answer>> kept_;  // their messages are the bus's
    std::unique_ptr<sdbus::IObject> object_;
};

class Polkit : public BusFixture {
protected:
    Polkit()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = polkit_rules(),
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
              "vgpuctl: VGPU-401: org.vgpu1.provision: polkit says no. Ask the administrator for "
              "this polkit action, or call as root.\n");
    EXPECT_TRUE(is_pf_untouched());
    EXPECT_TRUE(ctl_json({"list"}).at("vfs").empty());
}

/// A call of Pause on VF 1 that polkit has been asked about and does not answer.
class OpenPause {
public:
    OpenPause(std::unique_ptr<sdbus::IConnection> bus, FakeAuthority& polkit)
        : bus_(std::move(bus)),
          vf_(sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1/gpu/gpu0/vf/1")) {
        vf_->finishRegistration();
        polkit.keep_open("org.vgpu1.control");
        vf_->callMethodAsync("Pause")
            .onInterface("org.vgpu1.Vf")
            .withArguments(std::map<std::string, sdbus::Variant>{})
            .uponReplyInvoke([this](const sdbus::Error* error) {
                answer_.set_value(error == nullptr ? "done" : error->getMessage());
            });
        bus_->enterEventLoopAsync();
        test::wait_for("polkit is asked", kPrompt, [&] { return polkit.open_questions() == 1; });
    }
    ~OpenPause() { bus_->leaveEventLoop(); }
    OpenPause(const OpenPause&) = delete;
    OpenPause& operator=(const OpenPause&) = delete;

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
    OpenPause pause(connect(), *polkit);
    ASSERT_EQ(ctl({"destroy", "train"}).status, 0);
    EXPECT_THAT(pause.answer(), HasSubstr("gpu0/vf1 was destroyed before the call was answered"));
    polkit->say_yes_to_open_ones();
    EXPECT_EQ(create("next").status, 0) << "its object is at the same path";
    EXPECT_EQ(ctl({"list"}).status, 0);
}

TEST_F(Polkit, ACallIsAnsweredWhenVgpudStopsWhileAPersonIsAsked) {
    polkit->say(true);
    ASSERT_EQ(create("train").status, 0);
    OpenPause pause(connect(), *polkit);
    vgpud->signal(SIGTERM);
    EXPECT_EQ(vgpud->wait_exit(), 0);
    EXPECT_THAT(pause.answer(), HasSubstr("VGPU-606: vgpud stops."));
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
    EXPECT_THAT(refused.out, HasSubstr("VGPU-401: org.vgpu1.provision: polkit says no"));
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

TEST(PolkitPolicy, DescribesEveryActionThatIsAskedFor) {
    std::ifstream file(VGPU_POLKIT_POLICY);
    const std::string policy(std::istreambuf_iterator<char>(file), {});
    for (const char* action : {"org.vgpu1.provision", "org.vgpu1.assign", "org.vgpu1.control"})
        EXPECT_THAT(policy, HasSubstr(fmt::format("<action id=\"{}\">", action)));
}

}  // namespace
}  // namespace vgpu::daemon
