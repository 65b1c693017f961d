// SPDX-License-Identifier: MIT
#include "daemon/exporter/http_request.h"

#include <gmock/gmock.h>
#include <random>

namespace vgpu::exporter {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Page page_of(const std::string& head) {
    return parse_request(head).page;
}

TEST(HttpRequest, GetsTheDocumentWithItsTypeAndLength) {
    EXPECT_EQ(page_of("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Page::Metrics);
    EXPECT_EQ(page_of("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Page::Metrics);
    EXPECT_EQ(page_of("GET / HTTP/1.0\n\n"), Page::Index);
    const std::string head =
        "HTTP/1.0 200 OK\r\nContent-Type: text/x\r\nContent-Length: 3\r\n"
        "Connection: close\r\n\r\n";
    EXPECT_EQ(http_response(Page::Metrics, "text/x", "a\r\n"), head + "a\r\n");
    EXPECT_EQ(head_size(head + "a\r\n"), head.size());
}

TEST(HttpRequest, MayAskForTheHeadAlone) {
    const HttpRequest request = parse_request("HEAD /metrics HTTP/1.0\r\n\r\n");
    EXPECT_EQ(request.page, Page::Metrics);
    EXPECT_TRUE(request.is_head);
    EXPECT_FALSE(parse_request("GET /metrics HTTP/1.0\r\n\r\n").is_head);
}

TEST(HttpRequest, OtherThingsAreRefusedWithTheirStatus) {
    EXPECT_EQ(page_of("GET /etc/passwd HTTP/1.0\r\n\r\n"), Page::NotFound);
    EXPECT_EQ(page_of("GET /metrics/ HTTP/1.0\r\n\r\n"), Page::NotFound);
    EXPECT_EQ(page_of("POST /metrics HTTP/1.0\r\n\r\n"), Page::WrongMethod);
    for (const char* head : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET  HTTP/1.0\n\n",
                             "GET /metrics SPDY/3\n\n", "\n\n", "\x16\x03\x01\n\n"})
        EXPECT_EQ(page_of(head), Page::BadRequest) << head;
    EXPECT_THAT(http_response(Page::NotFound),
                StartsWith("HTTP/1.0 404 Not Found\r\nContent-Type: text/plain"));
    EXPECT_THAT(http_response(Page::WrongMethod), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
    EXPECT_THAT(http_response(Page::Index), EndsWith(", at /metrics.\n"));
}

TEST(HttpRequest, IsCompleteAtItsEmptyLine) {
    EXPECT_FALSE(is_complete(""));
    EXPECT_FALSE(is_complete("GET / HTTP/1.0\r\nHost: x\r\n"));
    EXPECT_TRUE(is_complete("GET / HTTP/1.0\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(is_complete("GET / HTTP/1.0\n\n"));
}

TEST(HttpRequest, SaysWhatItsSenderAccepts) {
    const auto accept_of = [](const std::string& head) {
        return std::string(parse_request(head).accept);
    };
    EXPECT_EQ(accept_of("GET / HTTP/1.0\r\nHost: accept: no\r\nACCEPT: text/plain\r\n\r\n"),
              " text/plain");
    EXPECT_EQ(accept_of("GET / HTTP/1.0\naccept:a\nAccept: b\n\n"), "a");
    EXPECT_EQ(accept_of("GET / HTTP/1.0\nAccept:\n\n"), "");
    EXPECT_EQ(accept_of("GET / HTTP/1.0\nAccept-Encoding: gzip\n\n"), "");
    EXPECT_EQ(accept_of(""), "");
}

TEST(HttpRequest, OfAnyBytesHasAPage) {
    constexpr std::string_view kHead = "HEAD /metrics?a HTTP/1.1\r\nAccept: text/plain\r\n\r\n";
    std::mt19937 random(1);
    for (int i = 0; i < 10'000; ++i) {
        std::string head(kHead.substr(0, random() % (kHead.size() + 1)));
        for (std::size_t mistakes = random() % 4; mistakes > 0 && !head.empty(); --mistakes)
            head[random() % head.size()] = static_cast<char>(random());
        const HttpRequest request = parse_request(head);
        EXPECT_FALSE(http_response(request.page, request.accept, head).empty());
    }
}

}  // namespace
}  // namespace vgpu::exporter
