// SPDX-License-Identifier: MIT
//
// The metrics socket with real sockets and a virtual clock: what good scrapers get, and that bad
// ones harm nobody.
#include "daemon/adapters/metrics_socket.h"
#include "daemon/adapters/http_request.h"
#include "tests/support/unix_socket.h"
#include "tests/unit/daemon/fake_pf.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon::adapters {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::VirtualClock;

TEST(HttpRequest, GetsTheDocumentWithItsTypeAndLength) {
    EXPECT_EQ(answer_to("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), HttpAnswer::Document);
    EXPECT_EQ(answer_to("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), HttpAnswer::Document);
    EXPECT_EQ(answer_to("GET / HTTP/1.0\n\n"), HttpAnswer::Document);
    EXPECT_EQ(http_response(HttpAnswer::Document, "text/x", "abc"),
              "HTTP/1.0 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\n"
              "Connection: close\r\n\r\nabc");
}

TEST(HttpRequest, HeadHasTheLengthButNoBody) {
    EXPECT_EQ(answer_to("HEAD /metrics HTTP/1.0\r\n\r\n"), HttpAnswer::HeadOnly);
    const std::string response = http_response(HttpAnswer::HeadOnly, "text/x", "abc");
    EXPECT_THAT(response, HasSubstr("Content-Length: 3\r\n"));
    EXPECT_THAT(response, EndsWith("\r\n\r\n"));
}

TEST(HttpRequest, OtherThingsAreRefusedWithTheirStatus) {
    EXPECT_EQ(answer_to("GET /etc/passwd HTTP/1.0\r\n\r\n"), HttpAnswer::NotFound);
    EXPECT_EQ(answer_to("POST /metrics HTTP/1.0\r\n\r\n"), HttpAnswer::WrongMethod);
    for (const char* head : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET  HTTP/1.0\n\n",
                             "GET /metrics SPDY/3\n\n", "\n\n"})
        EXPECT_EQ(answer_to(head), HttpAnswer::BadRequest) << head;
    EXPECT_THAT(http_response(HttpAnswer::NotFound, "text/x", ""),
                StartsWith("HTTP/1.0 404 Not Found\r\nContent-Type: text/plain"));
}

TEST(HttpRequest, IsCompleteAtItsEmptyLine) {
    EXPECT_FALSE(is_complete(""));
    EXPECT_FALSE(is_complete("GET / HTTP/1.0\r\nHost: x\r\n"));
    EXPECT_TRUE(is_complete("GET / HTTP/1.0\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(is_complete("GET / HTTP/1.0\n\n"));
}

TEST(HttpRequest, FieldsOfItsHeadAreFoundWhateverTheirCase) {
    constexpr std::string_view kHead =
        "GET / HTTP/1.0\r\nHost: accept: no\r\nACCEPT:  text/plain\r\nAccept: x\r\n\r\n";
    EXPECT_EQ(header_of(kHead, "accept"), "text/plain");
    EXPECT_EQ(header_of(kHead, "host"), "accept: no");
    EXPECT_EQ(header_of("GET / HTTP/1.0\n\n", "accept"), "");
    EXPECT_EQ(header_of("GET / HTTP/1.0\naccept:\n\n", "accept"), "");
    EXPECT_EQ(header_of("", "accept"), "");
}

class Scrapers : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = std::filesystem::temp_directory_path() / "vgpu-metrics-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        ASSERT_TRUE(server.listen(path()));
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
    [[nodiscard]] std::string path() const { return directory + "/metrics.sock"; }

    [[nodiscard]] UniqueFd connect() const {
        UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (test::connect_unix(fd.get(), path()) != 0) fd.reset();
        return fd;
    }
    static void say(const UniqueFd& fd, std::string_view text) {
        EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    /// What has come so far; `ended` tells whether the server hung up.
    static std::string heard(const UniqueFd& fd, bool& ended) {
        std::string text;
        std::array<char, 65536> buffer{};
        for (;;) {
            const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
            ended = got == 0 || (got < 0 && errno != EAGAIN);
            if (got <= 0) return text;
            text.append(buffer.data(), static_cast<std::size_t>(got));
        }
    }
    static bool is_cut(const UniqueFd& fd) {
        bool ended = false;
        heard(fd, ended);
        return ended;
    }
    /// Turns of the loop; nothing in them waits.
    void turn(int turns = 1) {
        for (int i = 0; i < turns; ++i) {
            Wanted wanted;
            server.watch(wanted);
            ::poll(wanted.fds.data(), wanted.fds.size(), 0);
            server.look(wanted);
        }
    }
    /// A well-behaved scrape within a few turns.
    std::string scrape() {
        const UniqueFd fd = connect();
        turn(2);
        say(fd, "GET /metrics HTTP/1.0\r\n\r\n");
        bool ended = false;
        std::string text;
        for (int i = 0; i < 64 && !ended; ++i) {
            turn();
            text += heard(fd, ended);
        }
        EXPECT_TRUE(ended);
        return text;
    }

    std::string directory;
    std::string document = "vgpu 1\n# EOF\n";
    int made = 0;
    VirtualClock clock;
    std::string accepted;
    MetricsSocket server{[this](std::string_view accept) {
                             ++made;
                             accepted = accept;
                             return MetricsSocket::Document{.type = "text/x", .text = document};
                         },
                         clock};
};

TEST_F(Scrapers, GetTheDocumentMadeForThem) {
    EXPECT_THAT(scrape(), EndsWith("\r\n\r\nvgpu 1\n# EOF\n"));
    EXPECT_EQ(made, 1);
    EXPECT_EQ(server.clients(), 0u);
}

TEST_F(Scrapers, MayReadAndASocketOfADeadServerIsReplaced) {
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777u, 0666u);
    VirtualClock other_clock;
    MetricsSocket next([](std::string_view) { return MetricsSocket::Document{}; }, other_clock);
    EXPECT_TRUE(next.listen(path()));
    EXPECT_FALSE(next.listen(directory + std::string(200, 'x')));
}

TEST_F(Scrapers, AFileThatIsNoSocketIsNotRemoved) {
    const std::string file = directory + "/precious";
    std::ofstream(file) << "x";
    MetricsSocket next([](std::string_view) { return MetricsSocket::Document{}; }, clock);
    const auto refused = next.listen(file);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().id, ErrorId::System);
    EXPECT_TRUE(std::filesystem::is_regular_file(file));
}

TEST_F(Scrapers, ASlowRequestIsPutTogether) {
    const UniqueFd fd = connect();
    for (const char letter : std::string("GET / HTTP/1.0\r\n\r\n")) {
        turn();
        say(fd, {&letter, 1});
    }
    turn(2);
    bool ended = false;
    EXPECT_THAT(heard(fd, ended), EndsWith("# EOF\n"));
}

TEST_F(Scrapers, OneThatSaysNothingIsCutWhenItsTimeIsUp) {
    const UniqueFd silent = connect();
    turn(2);
    clock.advance(MetricsSocket::kPatience - Nanoseconds{1});
    turn();
    EXPECT_FALSE(is_cut(silent));
    clock.advance(Nanoseconds{1});
    Wanted wanted;
    server.watch(wanted);
    EXPECT_EQ(wanted.wake_at, clock.now()) << "the loop wakes for it";
    turn();
    EXPECT_TRUE(is_cut(silent));
    EXPECT_EQ(server.clients(), 0u);
}

TEST_F(Scrapers, OneThatNeverReadsIsCutWhenItsTimeIsUpAndHoldsUpNobody) {
    document = std::string(4 << 20, 'x');
    const UniqueFd deaf = connect();
    turn(2);
    say(deaf, "GET / HTTP/1.0\r\n\r\n");
    turn(8);
    EXPECT_EQ(server.clients(), 1u);
    EXPECT_GT(scrape().size(), document.size());
    clock.advance(MetricsSocket::kPatience);
    turn();
    EXPECT_EQ(server.clients(), 0u);
}

TEST_F(Scrapers, ARequestWithoutEndIsCutAtItsBound) {
    const UniqueFd fd = connect();
    turn(2);
    say(fd, std::string(MetricsSocket::kMaxRequest, 'x'));
    turn(2);
    EXPECT_FALSE(is_cut(fd));
    say(fd, "x");
    turn(2);
    EXPECT_TRUE(is_cut(fd));
    EXPECT_EQ(made, 0);
}

TEST_F(Scrapers, ManyIdleOnesAreBoundedAndTheOldestMakesRoom) {
    std::vector<UniqueFd> idle;
    for (std::size_t i = 0; i < 3 * MetricsSocket::kMaxClients; ++i) {
        idle.push_back(connect());
        turn(2);
        EXPECT_LE(server.clients(), MetricsSocket::kMaxClients);
    }
    EXPECT_TRUE(is_cut(idle.front()));
    EXPECT_FALSE(is_cut(idle.back()));
    EXPECT_THAT(scrape(), EndsWith("# EOF\n"));
}

TEST_F(Scrapers, OneThatHangsUpInTheMiddleIsForgotten) {
    document = std::string(4 << 20, 'x');
    {
        const UniqueFd fd = connect();
        turn(2);
        say(fd, "GET / HTTP/1.0\r\n\r\n");
        turn();
    }
    turn(4);
    EXPECT_EQ(server.clients(), 0u);
}

TEST_F(Scrapers, ASocketThatIsRemovedIsThereAgain) {
    EXPECT_THAT(scrape(), EndsWith(document));
    std::filesystem::remove(directory + "/metrics.sock");
    turn();
    EXPECT_THAT(scrape(), EndsWith(document));
}

}  // namespace
}  // namespace vgpu::daemon::adapters
