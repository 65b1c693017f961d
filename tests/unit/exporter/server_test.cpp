// SPDX-License-Identifier: MIT
//
// Server with real sockets and a virtual clock: what good scrapers get, and that bad ones harm
// nobody.
#include "daemon/exporter/server.h"
#include "daemon/exporter/listen.h"
#include "tests/unit/daemon/fake_pf.h"
#include "tests/unit/exporter/scraper.h"

#include <gmock/gmock.h>
#include <map>
#include <optional>

namespace vgpu::exporter {
namespace {

using daemon::Nanoseconds;
using daemon::adapters::PollSet;
using daemon::testing::VirtualClock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::heard;
using testing::kScrape;
using testing::say;
using ::testing::StartsWith;
using testing::UniqueFd;

class Scrapers : public ::testing::Test {
protected:
    Scrapers() {
        auto listener = listen_at("127.0.0.1:0");
        EXPECT_TRUE(listener) << listener.error();
        address = address_of(listener->get());
        std::vector<UniqueFd> listeners;
        listeners.push_back(*std::move(listener));
        const auto metrics = [this](MetricsFormat format) {
            ++asked;
            clock.advance(answer_takes);
            Response& response = responses[format];
            if (!response)
                response = std::make_shared<const std::string>(
                    http_response(Page::Metrics, media_type_of(format), document));
            return response;
        };
        server.emplace(std::move(listeners), metrics, clock);
    }

    [[nodiscard]] UniqueFd connect() const { return testing::connect_to(address); }
    static bool is_cut(const UniqueFd& fd) {
        bool ended = false;
        heard(fd, ended);
        return ended;
    }
    /// Turns of the loop; nothing in them waits.
    void turn(int turns = 1) {
        for (int i = 0; i < turns; ++i) {
            PollSet poll_set;
            server->watch(poll_set);
            ::poll(poll_set.fds.data(), poll_set.fds.size(), 0);
            server->dispatch(poll_set);
        }
    }
    std::string rest_of(const UniqueFd& fd) {
        bool ended = false;
        std::string text;
        for (int i = 0; i < 10'000 && !ended; ++i) {
            turn();
            text += heard(fd, ended);
        }
        EXPECT_TRUE(ended);
        return text;
    }
    /// A well-behaved request within a few turns.
    std::string ask(std::string_view request = kScrape) {
        const UniqueFd fd = connect();
        turn(2);
        say(fd, request);
        return rest_of(fd);
    }
    std::vector<UniqueFd> connect_silent_ones(std::size_t count) {
        std::vector<UniqueFd> silent;
        for (std::size_t i = 0; i < count; ++i) {
            silent.push_back(connect());
            turn();
            EXPECT_LE(server->clients(), Server::kMaxClients);
        }
        return silent;
    }

    void set_document(std::string text) {
        document = std::move(text);
        responses.clear();
    }

    std::string address;
    std::string document = "vgpu 1\n# EOF\n";
    std::map<MetricsFormat, Response> responses;
    Nanoseconds answer_takes{0};
    int asked = 0;
    VirtualClock clock;
    std::optional<Server> server;
};

TEST_F(Scrapers, GetTheDocumentInTheFormatThatTheyAccept) {
    const std::string open = ask();
    EXPECT_THAT(open, HasSubstr("Content-Type: application/openmetrics-text; version=1.0.0"));
    EXPECT_THAT(open, EndsWith("\r\n\r\nvgpu 1\n# EOF\n"));
    EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n"),
                HasSubstr("Content-Type: text/plain; version=0.0.4"));
    turn();
    EXPECT_EQ(server->clients(), 0u);
}

TEST_F(Scrapers, GetNoBodyForHead) {
    const std::string answer = ask("HEAD /metrics HTTP/1.0\r\n\r\n");
    EXPECT_THAT(answer, HasSubstr("Content-Length: 13\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(Scrapers, GetOtherPagesWithoutVgpud) {
    EXPECT_THAT(ask("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 200 OK\r\n"));
    EXPECT_THAT(ask("GET /favicon.ico HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.0 404 "));
    EXPECT_THAT(ask("POST /metrics HTTP/1.0\r\nContent-Length: 9\r\n\r\nsomething"),
                StartsWith("HTTP/1.0 405 "));
    EXPECT_THAT(ask("\x16\x03\x01\r\n\r\n"), StartsWith("HTTP/1.0 400 "));
    EXPECT_EQ(asked, 0);
}

TEST_F(Scrapers, TwoHundredAtOnceAllGetTheDocument) {
    std::vector<UniqueFd> crowd;
    for (int i = 0; i < 200; ++i) {
        crowd.push_back(connect());
        say(crowd.back(), kScrape);
    }
    for (const UniqueFd& fd : crowd) EXPECT_THAT(rest_of(fd), EndsWith("# EOF\n"));
    EXPECT_EQ(asked, 200);
}

TEST_F(Scrapers, AreNotLateBecauseVgpudWas) {
    answer_takes = 2 * Server::kTimeout;
    const UniqueFd first = connect(), second = connect();
    turn(3);
    say(first, kScrape);
    turn();
    say(second, kScrape);
    EXPECT_THAT(rest_of(second), EndsWith("# EOF\n"));
    EXPECT_THAT(rest_of(first), EndsWith("# EOF\n"));
}

TEST_F(Scrapers, ARequestByteByByteIsPutTogether) {
    const UniqueFd fd = connect();
    for (const char letter : std::string(kScrape)) {
        turn();
        say(fd, {&letter, 1});
    }
    EXPECT_THAT(rest_of(fd), EndsWith("# EOF\n"));
}

TEST_F(Scrapers, OneThatSaysNothingIsCutWhenItsTimeIsUp) {
    const UniqueFd silent = connect();
    turn(2);
    clock.advance(Server::kTimeout - Nanoseconds{1});
    turn();
    EXPECT_FALSE(is_cut(silent));
    clock.advance(Nanoseconds{1});
    PollSet poll_set;
    server->watch(poll_set);
    EXPECT_EQ(poll_set.wake_at, clock.now()) << "the loop wakes for it";
    turn();
    EXPECT_TRUE(is_cut(silent));
    EXPECT_EQ(server->clients(), 0u);
}

TEST_F(Scrapers, OneThatSendsALetterNowAndThenIsCutAllTheSame) {
    const UniqueFd slow = connect();
    turn(2);
    for (int i = 0; i < 5; ++i) {
        clock.advance(std::chrono::seconds(1));
        say(slow, "G");
        turn(2);
    }
    EXPECT_EQ(server->clients(), 0u);
}

TEST_F(Scrapers, OneThatNeverReadsIsCutWhenItsTimeIsUpAndHoldsUpNobody) {
    set_document(std::string(16 << 20, 'x'));
    const UniqueFd deaf = connect();
    turn(2);
    say(deaf, kScrape);
    turn(8);
    EXPECT_EQ(server->clients(), 1u);
    EXPECT_GT(ask().size(), document.size());
    clock.advance(Server::kTimeout);
    turn();
    EXPECT_EQ(server->clients(), 0u);
}

TEST_F(Scrapers, AMebibyteOfHeadersIsRefusedAtItsBoundAndDiscarded) {
    const std::string head =
        std::string(kScrape.substr(0, kScrape.size() - 2)) + "X: " + std::string(1 << 20, 'x');
    const UniqueFd fd = connect();
    turn(2);
    for (std::size_t sent = 0; sent < head.size();) {
        sent += testing::send_some(fd, std::string_view(head).substr(sent));
        turn();
    }
    EXPECT_THAT(rest_of(fd), StartsWith("HTTP/1.0 431 "));
    EXPECT_EQ(asked, 0);
}

TEST_F(Scrapers, AThousandThatSayNothingHaveFewPlacesAndKeepNobodyOut) {
    testing::allow_many_descriptors();
    const auto silent = connect_silent_ones(1000);
    EXPECT_EQ(server->clients(), Server::kMaxClients);
    EXPECT_THAT(ask(), EndsWith("# EOF\n"));
    EXPECT_TRUE(is_cut(silent.front()));
    EXPECT_FALSE(is_cut(silent.back()));
}

TEST_F(Scrapers, OneThatTakesItsResponseKeepsItsPlaceBeforeThoseThatSayNothing) {
    set_document(std::string(16 << 20, 'x'));
    const UniqueFd slow = connect();
    turn(2);
    say(slow, kScrape);
    turn(2);
    const auto silent = connect_silent_ones(2 * Server::kMaxClients);
    EXPECT_GT(rest_of(slow).size(), document.size());
}

TEST_F(Scrapers, ThoseThatTakeNothingKeepNobodyOut) {
    set_document(std::string(16 << 20, 'x'));
    std::vector<UniqueFd> deaf;
    for (std::size_t i = 0; i < Server::kMaxClients; ++i) {
        deaf.push_back(connect());
        say(deaf.back(), kScrape);
        turn(2);
    }
    set_document("vgpu 1\n# EOF\n");
    EXPECT_THAT(ask(), EndsWith("# EOF\n"));
    EXPECT_EQ(server->clients(), Server::kMaxClients);
}

TEST_F(Scrapers, OneThatHangsUpInTheMiddleIsForgotten) {
    set_document(std::string(16 << 20, 'x'));
    {
        const UniqueFd fd = connect();
        turn(2);
        say(fd, kScrape);
        turn();
    }
    turn(4);
    EXPECT_EQ(server->clients(), 0u);
}

}  // namespace
}  // namespace vgpu::exporter
