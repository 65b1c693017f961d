// SPDX-License-Identifier: MIT
//
// The sockets of agents with real clients: many of them, those that come and go between two looks,
// and those that nobody wants.
#include "daemon/adapters/agent_sockets.h"

#include "daemon/adapters/system_clock.h"
#include "tests/support/stack/temp_dir.h"
#include "tests/support/unix_socket.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <map>

namespace vgpu::daemon::adapters {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class Sockets : public ::testing::Test {
protected:
    [[nodiscard]] std::string listen(const std::string& name) {
        std::string path = directory.file(name);
        EXPECT_TRUE(sockets.listen(path));
        return path;
    }
    [[nodiscard]] static UniqueFd connect(const std::string& path) {
        UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(test::connect_unix(client.get(), path), 0) << path;
        return client;
    }
    static void emit(const UniqueFd& client, std::string_view text) {
        EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    static bool has_ended(const UniqueFd& client) {
        char byte = 0;
        return ::recv(client.get(), &byte, 1, 0) <= 0;
    }
    /// One turn of the main loop.
    std::vector<AgentInput> look(Nanoseconds timeout = 1s) {
        PollSet poll_set;
        sockets.watch(poll_set);
        watched = poll_set.fds.size();
        poll_set.wake_by(clock.now() + timeout);
        wait_for(poll_set, clock);
        sockets.dispatch(poll_set);
        return sockets.take();
    }

    test::TempDir directory;
    SystemClock clock;
    AgentSockets sockets;
    std::size_t watched = 0;  ///< fds in the last look()
};

TEST_F(Sockets, HundredsAreWatchedAsOneAndEachIsServed) {
    constexpr int kMany = 3 * AgentSockets::kMaxReady;
    std::vector<UniqueFd> clients;
    for (int i = 0; i < kMany; ++i) {
        clients.push_back(connect(listen(fmt::format("vf{}.agent.sock", i))));
        emit(clients.back(), "x");
    }
    std::map<std::string, std::string> said;
    int connected = 0;
    for (int turn = 0; turn < 12 && said.size() < kMany; ++turn) {
        const auto input = look();
        EXPECT_LE(input.size(), std::size_t{AgentSockets::kMaxReady});
        EXPECT_EQ(watched, 1u);
        for (const AgentInput& one : input) {
            if (one.kind == AgentInput::Kind::Connected) ++connected;
            said[one.path] += one.bytes;
        }
        std::erase_if(said, [](const auto& entry) { return entry.second.empty(); });
    }
    EXPECT_EQ(connected, kMany);
    EXPECT_EQ(said.size(), std::size_t{kMany});
}

TEST_F(Sockets, OneThatFloodsTakesNoTurnFromTheOthers) {
    const std::string loud = listen("loud"), quiet = listen("quiet");
    const UniqueFd flood = connect(loud), other = connect(quiet);
    look();
    emit(flood, std::string(3 * AgentSockets::kMaxPerIteration, 'x'));
    emit(other, "hear me");
    std::size_t bytes = 0;
    bool is_heard = false;
    for (const AgentInput& one : look()) {
        if (one.path == loud) bytes += one.bytes.size();
        is_heard = is_heard || one.bytes == "hear me";
    }
    EXPECT_LE(bytes, AgentSockets::kMaxPerIteration);
    EXPECT_TRUE(is_heard);
}

TEST_F(Sockets, OneThatIsMadeAnewHearsNothingOfTheOldOnesClient) {
    const std::string path = listen("vf1.agent.sock");
    const UniqueFd old = connect(path);
    ASSERT_EQ(look().size(), 1u);
    emit(old, "late");
    sockets.close(path);
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_EQ(listen("vf1.agent.sock"), path);
    EXPECT_TRUE(look(10ms).empty());
    EXPECT_TRUE(has_ended(old));
    const UniqueFd fresh = connect(path);
    emit(fresh, "new");
    ASSERT_EQ(look().size(), 1u);
    const auto input = look();
    ASSERT_EQ(input.size(), 1u);
    EXPECT_EQ(input[0].bytes, "new");
}

TEST_F(Sockets, AListenerThatIsLookedAtAfterItWasClosedInTheSameTurnIsNobodys) {
    const std::string path = listen("vf1.agent.sock");
    const UniqueFd client = connect(path);
    PollSet poll_set;
    sockets.watch(poll_set);
    wait_for(poll_set, clock);
    sockets.close(path);
    sockets.dispatch(poll_set);
    EXPECT_TRUE(sockets.take().empty());
}

TEST_F(Sockets, ASecondClientIsClosedAtOnceAndOneThatEndsIsNotified) {
    const std::string path = listen("vf1.agent.sock");
    std::optional<UniqueFd> first = connect(path);
    ASSERT_EQ(look().size(), 1u);
    const UniqueFd second = connect(path);
    EXPECT_TRUE(look().empty());
    EXPECT_TRUE(has_ended(second));
    EXPECT_TRUE(sockets.send(path, "answer"));
    first.reset();
    const auto input = look();
    ASSERT_EQ(input.size(), 1u);
    EXPECT_EQ(input[0].kind, AgentInput::Kind::Gone);
    EXPECT_FALSE(sockets.send(path, "answer"));
}

TEST_F(Sockets, NoClientIsTakenWhileNoneIsWantedAndNobodyIsWokenForIt) {
    const std::string path = listen("vf1.agent.sock");
    sockets.accept_clients(path, false);
    const UniqueFd client = connect(path);
    EXPECT_TRUE(look(10ms).empty());
    sockets.accept_clients(path, true);
    const auto input = look();
    ASSERT_EQ(input.size(), 1u);
    EXPECT_EQ(input[0].kind, AgentInput::Kind::Connected);
}

TEST_F(Sockets, OneHasTheUserOfTheVfsSocketUnlessThatIsTheDevices) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    constexpr uid_t kOther = 65534;
    ASSERT_EQ(::lchown(listen("vf1.sock").c_str(), kOther, kOther), 0);
    const std::string path = directory.file("vf1.agent.sock");
    const auto uid_with = [&path](std::optional<uid_t> device_user) {
        AgentSockets one(device_user);
        EXPECT_TRUE(one.listen(path));
        struct stat facts {};
        EXPECT_EQ(::lstat(path.c_str(), &facts), 0);
        return facts.st_uid;
    };
    EXPECT_EQ(uid_with({}), kOther);
    EXPECT_EQ(uid_with(kOther), 0u);
}

TEST_F(Sockets, OneThatIsRemovedIsThereAgainAndItsClientStays) {
    const std::string path = listen("vf1.agent.sock"), other = listen("vf2.agent.sock");
    const UniqueFd client = connect(path);
    look();
    std::filesystem::remove(path);
    look();
    const UniqueFd second = connect(path);
    look();
    EXPECT_TRUE(has_ended(second)) << "there is one already";
    emit(client, "hello");
    const auto input = look();
    ASSERT_EQ(input.size(), 1u);
    EXPECT_EQ(input[0].bytes, "hello");
    sockets.close(path);
    look(0ms);
    EXPECT_FALSE(std::filesystem::exists(path)) << "it was closed, not removed by others";
    EXPECT_TRUE(std::filesystem::exists(other));
}

}  // namespace
}  // namespace vgpu::daemon::adapters
