// SPDX-License-Identifier: MIT
//
// Scrapers that are hostile or come in crowds, against the program vgpu-exporter. Its descriptors
// and memory stay bounded, it serves good scrapers, and it asks vgpud at most once a second.
#include "tests/scenario/dbus/exporter_fixture.h"
#include "tests/unit/exporter/scraper.h"

#include <gmock/gmock.h>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

using exporter::testing::kScrape;
using exporter::testing::UniqueFd;
using testing::curl;
using testing::Exporter;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Dict = std::map<std::string, sdbus::Variant>;
using Clock = std::chrono::steady_clock;

class HostileScraper : public Exporter {
protected:
    explicit HostileScraper(const Setup& setup = {}) : Exporter(setup) {
        start_exporter();
        resident_before = resident_bytes();
    }

    [[nodiscard]] std::vector<UniqueFd> connect_many(std::size_t count,
                                                     std::string_view say) const {
        exporter::testing::allow_many_descriptors();
        std::vector<UniqueFd> many;
        for (std::size_t i = 0; i < count; ++i) {
            many.push_back(exporter::testing::connect_to(url.substr(url.rfind('/') + 1)));
            exporter::testing::send_some(many.back(), say);
        }
        return many;
    }
    [[nodiscard]] std::string of_process(const std::string& name) const {
        return "/proc/" + std::to_string(exporter->pid()) + "/" + name;
    }
    [[nodiscard]] std::size_t resident_bytes() const {
        std::ifstream file(of_process("statm"));
        std::size_t size = 0, resident = 0;
        file >> size >> resident;
        return resident * 4096;
    }
    void expect_bounded() const {
        constexpr std::ptrdiff_t kMaxDescriptors = 64 + 16;
        constexpr std::size_t kMaxGrowth = 64u << 20;
        const std::filesystem::directory_iterator open(of_process("fd"));
        EXPECT_LE(std::distance(begin(open), end(open)), kMaxDescriptors);
        EXPECT_LT(resident_bytes(), resident_before + kMaxGrowth);
        EXPECT_THAT(curl(url + "/metrics").out, HasSubstr("# EOF"));
    }

    std::size_t resident_before = 0;
};

TEST_F(HostileScraper, AThousandThatSayNothingHarmNobody) {
    const auto silent = connect_many(1000, "");
    expect_bounded();
}

TEST_F(HostileScraper, AThousandThatNeverEndTheirRequestHarmNobody) {
    const auto slow = connect_many(1000, kScrape.substr(0, kScrape.size() - 1));
    for (int letters = 0; letters < 10; ++letters)
        for (const UniqueFd& fd : slow) exporter::testing::send_some(fd, "x");
    expect_bounded();
}

TEST_F(HostileScraper, AThousandThatNeverReadHarmNobody) {
    const auto deaf = connect_many(1000, kScrape);
    expect_bounded();
}

TEST_F(HostileScraper, AMebibyteOfHeadersIsRefused) {
    const auto talkative = connect_many(1, "GET /metrics HTTP/1.0\r\nX: ");
    const std::string header(1 << 20, 'x');
    EXPECT_EQ(::send(talkative.front().get(), header.data(), header.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(header.size()));
    bool ended = false;
    EXPECT_THAT(exporter::testing::heard(talkative.front(), ended, MSG_WAITALL),
                StartsWith("HTTP/1.0 431 "));
    expect_bounded();
}

/// A vgpud that counts calls instead of the real one.
class CountedVgpud : public HostileScraper {
protected:
    CountedVgpud() : HostileScraper(Setup{.gpus = "", .start = Setup::Start::Later}) {
        const std::string interface = "org.vgpu1.Manager";
        object->registerProperty("Version").onInterface(interface).withGetter([this] {
            ++property_calls;
            return std::string("1");
        });
        object->registerMethod("ListGpus")
            .onInterface(interface)
            .implementedAs([this](const Dict&) {
                ++calls;
                return std::vector<Dict>{};
            });
        object->registerMethod("ListVfs").onInterface(interface).implementedAs([this](const Dict&) {
            ++calls;
            return Dict{};
        });
        object->registerMethod("RecentEvents")
            .onInterface(interface)
            .implementedAs([this](const Dict&) {
                ++calls;
                return std::vector<Dict>{};
            });
        object->finishRegistration();
        connection->requestName("org.vgpu1");
        connection->enterEventLoopAsync();
    }
    ~CountedVgpud() override { connection->leaveEventLoop(); }

    std::atomic<int> calls = 0, property_calls = 0;
    std::unique_ptr<sdbus::IConnection> connection = connect();
    std::unique_ptr<sdbus::IObject> object = sdbus::createObject(*connection, "/org/vgpu1");
};

TEST_F(CountedVgpud, IsAskedAtMostOnceASecondByTwoHundredScrapersAtOnce) {
    const auto start = Clock::now();
    const auto crowd = connect_many(200, kScrape);
    for (const UniqueFd& fd : crowd) {
        bool ended = false;
        EXPECT_THAT(exporter::testing::heard(fd, ended, MSG_WAITALL), HasSubstr("\nvgpu_up 1\n"));
    }
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
    EXPECT_GE(calls, 3);
    EXPECT_LE(calls, 3 * (elapsed + 1));
    EXPECT_LE(property_calls, elapsed + 1);
}

}  // namespace
}  // namespace vgpu::daemon
