// SPDX-License-Identifier: MIT
//
// Clients of the bus that flood, never read, hang up in the middle or send too much: vgpud still
// answers honest clients, and vgpud's memory stays bounded.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using Dict = std::map<std::string, sdbus::Variant>;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

/// A healthy answer takes milliseconds; sanitizers and a busy machine take their part.
constexpr seconds kPrompt{10};
constexpr std::size_t kMiB = 1u << 20;
constexpr std::size_t kMayGrow = 96 * kMiB;

/// Shrinks ASan's quarantine, so that vgpud's memory is what it needs; the destructor restores it.
class NoQuarantine {
public:
    NoQuarantine() {
        const char* old = std::getenv("ASAN_OPTIONS");
        if (old != nullptr) old_ = old;
        ::setenv("ASAN_OPTIONS",
                 (old_ + (old_.empty() ? "" : ":") + "quarantine_size_mb=1").c_str(), 1);
    }
    ~NoQuarantine() {
        if (old_.empty())
            ::unsetenv("ASAN_OPTIONS");
        else
            ::setenv("ASAN_OPTIONS", old_.c_str(), 1);
    }
    NoQuarantine(const NoQuarantine&) = delete;
    NoQuarantine& operator=(const NoQuarantine&) = delete;

private:
    std::string old_;
};

class HostileClient : private NoQuarantine, public BusFixture {
protected:
    [[nodiscard]] static std::unique_ptr<sdbus::IProxy> manager_on(sdbus::IConnection& bus) {
        auto proxy = sdbus::createProxy(bus, "org.vgpu1", "/org/vgpu1");
        proxy->finishRegistration();
        return proxy;
    }
    /// How long an honest caller waits for an answer.
    [[nodiscard]] Clock::duration honest_call() const {
        const auto connection = connect();
        const auto manager = manager_on(*connection);
        sdbus::ObjectPath found;
        const auto start = Clock::now();
        manager->callMethod("Resolve")
            .onInterface("org.vgpu1.Manager")
            .withArguments(std::string("gpu0"), Dict{})
            .storeResultsTo(found);
        EXPECT_EQ(found, "/org/vgpu1/gpu/gpu0");
        return Clock::now() - start;
    }
    /// The unique name of the connection of vgpud that does not own org.vgpu1; empty if none.
    [[nodiscard]] std::string other_connection_of_vgpud(sdbus::IProxy& bus_daemon) const {
        const std::string interface = "org.freedesktop.DBus";
        std::string owner;
        bus_daemon.callMethod("GetNameOwner")
            .onInterface(interface)
            .withArguments(std::string("org.vgpu1"))
            .storeResultsTo(owner);
        std::vector<std::string> names;
        bus_daemon.callMethod("ListNames").onInterface(interface).storeResultsTo(names);
        for (const std::string& name : names) {
            if (!name.starts_with(':') || name == owner) continue;
            std::uint32_t pid = 0;
            bus_daemon.callMethod("GetConnectionUnixProcessID")
                .onInterface(interface)
                .withArguments(name)
                .storeResultsTo(pid);
            if (pid == static_cast<std::uint32_t>(vgpud->pid())) return name;
        }
        return "";
    }
    [[nodiscard]] std::size_t resident_bytes() const {
        std::ifstream file("/proc/" + std::to_string(vgpud->pid()) + "/statm");
        std::size_t size = 0, resident = 0;
        file >> size >> resident;
        return resident * 4096;
    }
    void expect_bounded(std::size_t before) const {
        const std::size_t after = resident_bytes();
        EXPECT_LT(after, before + kMayGrow) << "grew by " << (after - before) / kMiB << " MiB";
    }
};

TEST_F(HostileClient, AFloodOfCallsDoesNotKeepOthersFromTheirAnswers) {
    const std::size_t before = resident_bytes();
    std::atomic<bool> is_over = false;
    std::atomic<int> calls = 0;
    std::vector<std::thread> flooders;
    for (int i = 0; i < 4; ++i)
        flooders.emplace_back([&] {
            const auto connection = connect();
            const auto manager = manager_on(*connection);
            while (!is_over) {
                std::vector<Dict> listed;
                manager->callMethod("ListGpus")
                    .onInterface("org.vgpu1.Manager")
                    .withArguments(Dict{})
                    .storeResultsTo(listed);
                ++calls;
            }
        });
    for (int i = 0; i < 5; ++i) EXPECT_LT(honest_call(), kPrompt);
    EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    is_over = true;
    for (std::thread& flooder : flooders) flooder.join();
    EXPECT_GT(calls, 20);
    expect_bounded(before);
}

TEST_F(HostileClient, OneThatNeverReadsItsRepliesHarmsNobody) {
    const std::size_t before = resident_bytes();
    const auto deaf = connect();
    const auto manager = manager_on(*deaf);
    for (int i = 0; i < 2000; ++i)
        manager->callMethodAsync("ListGpus")
            .onInterface("org.vgpu1.Manager")
            .withArguments(Dict{})
            .uponReplyInvoke([](const sdbus::Error*, const std::vector<Dict>&) {});
    EXPECT_LT(honest_call(), kPrompt);
    EXPECT_EQ(ctl({"list"}).status, 0);
    expect_bounded(before);
}

TEST_F(HostileClient, OneThatHangsUpInTheMiddleOfACallHarmsNobody) {
    for (int i = 0; i < 30; ++i) {
        const auto connection = connect();
        const auto manager = manager_on(*connection);
        const Dict options{{"weight", sdbus::Variant{std::uint32_t(i < 3 ? 7 : 0)}}};
        manager->callMethodAsync("CreateVf")
            .onInterface("org.vgpu1.Manager")
            .withArguments(std::string("gpu0"), options)
            .uponReplyInvoke([](const sdbus::Error*, const sdbus::ObjectPath&) {});
    }
    EXPECT_LT(honest_call(), kPrompt);
    EXPECT_TRUE(vgpud->is_running());
    // vgpud refuses a caller that has gone, because it cannot find out its user; a caller that
    // stayed long enough has a whole VF
    const auto left = ctl_json({"list"});
    for (const auto& vf : left.at("vfs")) EXPECT_EQ(ctl({"destroy", vf.at("target")}).status, 0);
    EXPECT_EQ(ctl({"create", "--vram", "64M"}).status, 0);
}

TEST_F(HostileClient, TenMebibytesOfOptionsAreRefusedAndNotKept) {
    constexpr std::size_t kMany = 100;
    Dict many;
    for (std::size_t i = 0; i < kMany; ++i)
        many["option" + std::to_string(i)] = sdbus::Variant{std::string(100'000, 'x')};
    const Dict one_name{{std::string(10 * kMiB, 'n'), sdbus::Variant{true}}};
    const Dict bytes{{"name", sdbus::Variant{std::vector<std::uint8_t>(10 * kMiB)}}};
    const Dict list{
        {"name", sdbus::Variant{std::vector<std::string>(kMany, std::string(100'000, 'x'))}}};
    static_cast<void>(create_error(many));  // what the first one costs is not growth
    const std::size_t before = resident_bytes();
    for (int i = 0; i < 5; ++i) {
        for (const Dict* options : std::initializer_list<const Dict*>{&many, &one_name})
            EXPECT_EQ(create_error(*options), "org.vgpu1.Error.OutOfRange");
        EXPECT_EQ(create_error(list), "org.vgpu1.Error.WrongType");
    }
    // only once, because the test's D-Bus library takes seconds to write so many elements
    EXPECT_EQ(create_error(bytes), "org.vgpu1.Error.WrongType");
    EXPECT_LT(honest_call(), kPrompt);
    expect_bounded(before);
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.vfs.empty(); }));
}

TEST_F(HostileClient, OptionsBeyondTheirNumberAreNotRead) {
    Dict options;
    for (std::size_t i = 0; i < 128; ++i)
        options["option" + std::to_string(i)] = sdbus::Variant{true};
    EXPECT_EQ(create_error(options), "org.vgpu1.Error.UnknownOption");
    options["one more"] = sdbus::Variant{true};
    EXPECT_EQ(create_error(options), "org.vgpu1.Error.OutOfRange");
}

/// Each connection of vgpud is read, so its queue, which holds 65536 messages, does not fill up.
TEST_F(HostileClient, SignalsToTheOtherConnectionOfVgpudKeepNobodyOut) {
    constexpr int kSignals = 70'000, kAtOnce = 1000;
    const auto connection = connect();
    const auto bus_daemon =
        sdbus::createProxy(*connection, "org.freedesktop.DBus", "/org/freedesktop/DBus");
    bus_daemon->finishRegistration();
    const std::string other = other_connection_of_vgpud(*bus_daemon);
    ASSERT_NE(other, "");
    const auto object = sdbus::createObject(*connection, "/flood");
    object->finishRegistration();
    for (int i = 0; i < kSignals; ++i) {
        auto signal = object->createSignal("org.example.Flood", "Signal");
        signal.setDestination(other);
        object->emitSignal(signal);
        std::string id;  // the call also sends the signals that wait in this program
        if (i % kAtOnce == 0)
            bus_daemon->callMethod("GetId").onInterface("org.freedesktop.DBus").storeResultsTo(id);
    }
    EXPECT_EQ(ctl({"create", "--vram", "64M"}).status, 0);
    EXPECT_LT(honest_call(), kPrompt);
}

TEST_F(HostileClient, ADocumentWithoutEndIsRefused) {
    const auto connection = connect();
    const auto manager = manager_on(*connection);
    for (const char* method : {"Plan", "Apply"}) {
        std::string refused;
        try {
            manager->callMethod(method)
                .onInterface("org.vgpu1.Manager")
                .withArguments(std::string(10 * kMiB, '['), Dict{});
        } catch (const sdbus::Error& error) {
            refused = error.getName();
        }
        EXPECT_EQ(refused, "org.vgpu1.Error.OutOfRange") << method;
    }
    EXPECT_LT(honest_call(), kPrompt);
}

/// A document of 1024 profiles and 8 labels of 64 VFs, with spaces up to the size of one with 64
/// labels. Planning all 64 labels takes 30 ms, and 2 s in a build with sanitizers.
std::string large_document() {
    std::ostringstream text;
    text << R"({"profiles":{)";
    for (int i = 0; i < 1024; ++i)
        text << (i == 0 ? "" : ",") << "\"p" << i << R"(":{"resources":{"vram":16777216}})";
    text << R"(},"configs":{)";
    for (int label = 0; label < 8; ++label) {
        text << (label == 0 ? "" : ",") << "\"x" << label << R"(":[{"gpu":"*","vfs":[)";
        for (int i = 0; i < 64; ++i)
            text << (i == 0 ? "" : ",") << R"({"profile":"p)" << label * 16 + i % 16
                 << R"(","name":"v)" << i << "\"}";
        text << "]}]";
    }
    text << "}}";
    std::string document = text.str();
    document.resize(170 * 1024, ' ');
    return document;
}

/// Sends Plans of one document and records their answers.
class Plans {
public:
    Plans(std::unique_ptr<sdbus::IConnection> bus, const std::string& document, int count)
        : bus_(std::move(bus)), manager_(sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1")) {
        manager_->finishRegistration();
        const Dict options{{"label", sdbus::Variant{"x0"}}};
        for (int i = 0; i < count; ++i)
            manager_->callMethodAsync("Plan")
                .onInterface("org.vgpu1.Manager")
                .withTimeout(std::chrono::minutes(3))
                .withArguments(document, options)
                .uponReplyInvoke([this](const sdbus::Error* error, const std::string&) {
                    const std::scoped_lock lock(mutex_);
                    answers_.push_back(error == nullptr ? "none" : error->getName());
                });
        bus_->enterEventLoopAsync();
    }
    ~Plans() { bus_->leaveEventLoop(); }
    Plans(const Plans&) = delete;
    Plans& operator=(const Plans&) = delete;

    [[nodiscard]] std::vector<std::string> answers() {
        const std::scoped_lock lock(mutex_);
        return answers_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> answers_;  ///< names of errors
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> manager_;
};

TEST_F(HostileClient, ManyPlansOfALargeDocumentCostBoundedMemoryAndNobodysTime) {
    constexpr int kConnections = 4, kEach = 32, kAtOnce = 40;
    const std::string document = large_document();
    ASSERT_LT(document.size(), 256u * 1024);
    const std::size_t before = resident_bytes();
    std::vector<std::unique_ptr<Plans>> plans;
    const auto answers = [&plans] {
        std::vector<std::string> all;
        for (const auto& one : plans)
            for (std::string& name : one->answers()) all.push_back(std::move(name));
        return all;
    };
    for (int i = 0; i < kConnections; ++i)
        plans.push_back(std::make_unique<Plans>(::geteuid() == 0 ? connect_as_nobody() : connect(),
                                                document, kEach));
    EXPECT_LT(honest_call(), kPrompt) << "while they come in";
    EXPECT_LT(answers().size(), kConnections * kEach) << "the honest call was not after all others";
    EXPECT_LT(honest_call(), kPrompt) << "while they are read";
    expect_bounded(before);
    test::wait_for("all to be answered", test::milliseconds(170'000),
                   [&] { return answers().size() == kConnections * kEach; });
    std::vector<std::string> others = answers();
    const auto refused = std::erase(others, "org.vgpu1.Error.TooManyRequests");
    // Some of the first may be done before the last come in.
    EXPECT_GE(others.size(), kAtOnce);
    EXPECT_GE(refused, (kConnections * kEach - kAtOnce) / 2);
    EXPECT_THAT(others, ::testing::Each("org.vgpu1.Error.NoFreeVf"))
        << "64 VFs are wanted, 16 exist";
    expect_bounded(before);
}

TEST_F(HostileClient, TargetsWithoutEndAreNoTargets) {
    const auto connection = connect();
    const auto manager = manager_on(*connection);
    for (const char* method : {"CreateVf", "Resolve"}) {
        try {
            sdbus::ObjectPath found;
            manager->callMethod(method)
                .onInterface("org.vgpu1.Manager")
                .withArguments(std::string(10 * kMiB, 'g'), Dict{})
                .storeResultsTo(found);
            ADD_FAILURE() << method << " answered " << found;
        } catch (const sdbus::Error& error) {
            EXPECT_EQ(error.getName(), "org.vgpu1.Error.OutOfRange");
            EXPECT_LT(error.getMessage().size(), 512u);
        }
    }
}

/// A bus disconnects a program that sends text that is not UTF-8.
TEST_F(HostileClient, WordsThatMessagesCutInTheMiddleOfACharacterAreRefusedLikeOthers) {
    const auto connection = connect();
    const auto manager = manager_on(*connection);
    const auto refusal = [&](const char* method, const auto&... arguments) {
        try {
            manager->callMethod(method)
                .onInterface("org.vgpu1.Manager")
                .withArguments(arguments...);
        } catch (const sdbus::Error& error) {
            return error.getName();
        }
        return std::string("none");
    };
    const auto cut_after = [](std::size_t bytes) {
        return std::string(bytes - 1, 'a') + "\u00e9b";
    };
    for (const std::size_t bytes : {32u, 40u, 60u, 64u, 80u}) {
        const std::string word = cut_after(bytes);
        EXPECT_EQ(refusal("Resolve", word, Dict{}), "org.vgpu1.Error.NoSuchVf");
        EXPECT_EQ(refusal("ListVfs", Dict{{word, sdbus::Variant{true}}}),
                  "org.vgpu1.Error.UnknownOption");
        EXPECT_EQ(refusal("ListVfs", Dict{{"gpu", sdbus::Variant{word}}}),
                  "org.vgpu1.Error.NoSuchGpu");
        EXPECT_EQ(refusal("Plan", "{\"" + word + "\": 1}", Dict{}),
                  "org.vgpu1.Error.BadConfiguration");
        EXPECT_EQ(refusal("CreateVf", word, Dict{}), "org.vgpu1.Error.NoSuchGpu");
    }
    EXPECT_EQ(refusal("Plan", std::string("\u201c"), Dict{}), "org.vgpu1.Error.BadConfiguration");
    EXPECT_LT(honest_call(), kPrompt);
    EXPECT_TRUE(vgpud->is_running());
}

TEST_F(HostileClient, RequestsOfOneCallerBeyondTheBoundAreRefusedAtOnce) {
    constexpr int kSent = 40, kAdmitted = 32;
    std::atomic<int> refused = 0, others = 0;
    const auto connection = connect();
    const auto manager = manager_on(*connection);
    connection->enterEventLoopAsync();
    server.with([&](FakePf&) {  // the PF core does not answer meanwhile
        for (int i = 0; i < kSent; ++i)
            manager->callMethodAsync("CreateVf")
                .onInterface("org.vgpu1.Manager")
                .withArguments(std::string("gpu0"), Dict{})
                .uponReplyInvoke([&](const sdbus::Error* error, const sdbus::ObjectPath&) {
                    const bool is_refused =
                        error != nullptr && error->getName() == "org.vgpu1.Error.TooManyRequests";
                    ++(is_refused ? refused : others);
                });
        test::wait_for("the requests beyond the bound to be refused", test::milliseconds(10'000),
                       [&] { return refused == kSent - kAdmitted; });
        EXPECT_LT(honest_call(), kPrompt) << "reading goes on";
    });
    test::wait_for("the others to be answered", test::milliseconds(60'000),
                   [&] { return others == kAdmitted; });
    EXPECT_EQ(refused, kSent - kAdmitted);
    connection->leaveEventLoop();
}

}  // namespace
}  // namespace vgpu::daemon
