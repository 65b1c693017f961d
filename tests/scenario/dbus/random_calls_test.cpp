// SPDX-License-Identifier: MIT
//
// Calls with random contents (random_message.h) through a real bus: vgpud answers each one, and its
// state is sound afterwards. VGPU_BUS_SEED and VGPU_BUS_CALLS set the seed and the number of calls.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/random_message.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <map>

namespace vgpu::daemon {
namespace {

using ::testing::AnyOf;
using testing::BusFixture;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::RandomMessages;
using ::testing::StartsWith;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class RandomCalls : public BusFixture {
protected:
    RandomCalls() {
        EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
        testing::make_job(*connect());
    }
    /// Number of calls by the name of their error.
    std::map<std::string, int> send_calls(sdbus::IConnection& bus) const {
        constexpr std::size_t kLongestText = 4096;
        const std::uint64_t seed = number_from("VGPU_BUS_SEED", 1);
        const std::uint64_t calls = number_from("VGPU_BUS_CALLS", 1000);
        RandomMessages messages(seed);
        std::map<std::string, int> outcomes;
        for (std::uint64_t i = 0; i < calls && !HasFailure(); ++i) {
            const auto call = messages.next_call();
            SCOPED_TRACE("seed " + std::to_string(seed) + ", call " + std::to_string(i) + ": " +
                         call.text());
            const Outcome outcome = messages.send(bus, call);
            expect_answer(outcome);
            EXPECT_LT(outcome.text.size(), kLongestText);
            ++outcomes[outcome.error];
        }
        return outcomes;
    }
    /// Accepts an error of vgpu, or of the bus for names that vgpu does not have; no time-out, no
    /// end of the connection.
    static void expect_answer(const Outcome& outcome) {
        constexpr const char* kBus = "org.freedesktop.DBus.Error.";
        if (outcome.error.empty() || outcome.error.starts_with("org.vgpu1.Error.")) return;
        EXPECT_THAT(outcome.error.substr(std::min(std::string(kBus).size(), outcome.error.size())),
                    AnyOf("UnknownMethod", "UnknownInterface", "UnknownObject", "UnknownProperty",
                          "InvalidArgs", "PropertyReadOnly", "AccessDenied"))
            << outcome.error << ": " << outcome.text;
    }
    /// Name and weight of each VF, which are durable.
    [[nodiscard]] std::map<std::string, std::string> definitions() const {
        std::map<std::string, std::string> all;
        const auto listed = ctl_json({"list"});
        for (const auto& vf : listed.at("vfs"))
            all[vf.at("target")] = vf.at("name").dump() + vf.at("weight").dump();
        return all;
    }
    void expect_clean_end() {
        vgpud->signal(SIGTERM);
        EXPECT_EQ(vgpud->wait_exit(), 0);
        EXPECT_THAT(vgpud->output(), Not(HasSubstr("Sanitizer")));
        EXPECT_THAT(vgpud->output(), Not(HasSubstr("runtime error")));
    }
};

TEST_F(RandomCalls, AreAllAnsweredAndTheNextVgpudFindsTheSameDefinitions) {
    const auto outcomes = send_calls(*connect());
    for (const auto& [error, count] : outcomes)
        std::cout << count << " " << (error.empty() ? "done" : error) << "\n";
    EXPECT_GT(outcomes.size(), 5u) << "calls of too few kinds";
    ASSERT_TRUE(vgpud->is_running());
    const auto before = definitions();
    expect_clean_end();
    start_daemon();
    EXPECT_EQ(definitions(), before);
}

TEST_F(RandomCalls, OfAUserWithoutRightsChangeNothing) {
    if (::geteuid() != 0) GTEST_SKIP() << "another user's calls need root";
    const auto before = definitions();
    send_calls(*connect_as_nobody());
    ASSERT_TRUE(vgpud->is_running());
    EXPECT_EQ(definitions(), before);
    expect_clean_end();
}

}  // namespace
}  // namespace vgpu::daemon
