// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;
using Dict = std::map<std::string, sdbus::Variant>;

class DBus : public BusFixture {
protected:
    /// A VF of 64 MiB.
    [[nodiscard]] nlohmann::json create(const std::string& name) const {
        return ctl_json({"create", "--name", name, "--vram", "64M"}).at("vf");
    }
    [[nodiscard]] std::string state_file() const { return directory.file("state/gpus/gpu0.json"); }
};

TEST_F(DBus, CreateListSetAndDestroy) {
    const auto made = create("train");
    EXPECT_EQ(made.at("target"), "gpu0/vf1");
    EXPECT_EQ(made.at("vram_bytes"), 64 * FakePf::kMiB);
    EXPECT_EQ(made.at("socket"), directory.file("vf1.sock"));
    EXPECT_EQ(ctl({"set", "train", "--weight", "700"}).status, 0);
    EXPECT_EQ(ctl_json({"show", "gpu0/vf1"}).at("vf").at("weight"), 700);
    EXPECT_EQ(ctl({"pause", made.at("uuid")}).status, 0);
    EXPECT_EQ(ctl_json({"list"}).at("vfs").front().at("state"), "paused");
    EXPECT_EQ(ctl({"resume", "train"}).status, 0);
    EXPECT_EQ(ctl({"reset", "train"}).status, 0);
    const auto destroyed = ctl({"destroy", "train"});
    EXPECT_EQ(destroyed.out, "train: destroyed\n");
    EXPECT_TRUE(ctl_json({"list"}).at("vfs").empty());
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.vfs.empty(); }));
}

TEST_F(DBus, DestroyingAnAttachedVfWantsForce) {
    static_cast<void>(create("train"));
    server.with([](FakePf& pf) {
        pf.vfs.at(1).attached = 1;
        pf.push(VGPU_PF_EVENT_ATTACH, 1, 1);
    });
    const auto refused = ctl({"destroy", "train"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(refused.out,
              "vgpuctl: VGPU-304: gpu0/vf1 ('train') is attached: a client has it open (" +
                  directory.file("vf1.sock") +
                  "), and its driver would lose the VF; shut down the client first, or "
                  "destroy the VF with option 'force'. First bring the VF into a state that allows "
                  "the request; 'vgpuctl show VF' shows its state.\n");
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 1u);
    EXPECT_EQ(ctl({"destroy", "train", "--force"}).out, "train: destroyed\n");
}

TEST_F(DBus, WrongTypesRangesAndOptionsAreNamedErrors) {
    const std::vector<std::pair<Dict, std::string>> cases{
        {{{"weight", sdbus::Variant{std::string("x")}}}, "WrongType"},
        {{{"weight", sdbus::Variant{std::vector<std::string>{"x"}}}}, "WrongType"},
        {{{"weight", sdbus::Variant{1.5}}}, "WrongType"},
        {{{"weight", sdbus::Variant{std::uint32_t{0}}}}, "OutOfRange"},
        {{{"weight", sdbus::Variant{std::int32_t{-5}}}}, "OutOfRange"},
        {{{"vram_bytes", sdbus::Variant{UINT64_MAX}}}, "OutOfRange"},
        {{{"vram_bytes", sdbus::Variant{std::uint64_t{12345}}}}, "OutOfRange"},
        {{{"wait", sdbus::Variant{true}}}, "UnknownOption"},
        {{{"name", sdbus::Variant{std::string(1 << 10, 'a')}}}, "InvalidName"},
        {{{std::string(1 << 10, 'a'), sdbus::Variant{true}}}, "UnknownOption"},
        {{{"name", sdbus::Variant{std::string(1 << 20, 'a')}}}, "OutOfRange"},
        {{{std::string(1 << 20, 'a'), sdbus::Variant{true}}}, "OutOfRange"}};
    for (const auto& [options, name] : cases)
        EXPECT_EQ(create_error(options), "org.vgpu1.Error." + name);
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.log.empty(); }));
    EXPECT_EQ(create_error({{"vram_bytes", sdbus::Variant{std::uint64_t{16} << 20}}}), "");
}

TEST_F(DBus, ValuesOfEveryOtherTypeAreNamedWithTheirOptionAndType) {
    using Text = std::string;
    const sdbus::UnixFd file(STDIN_FILENO);
    const sdbus::Struct<Text, std::uint32_t> pair{"x", 1u};
    const std::vector<std::pair<sdbus::Variant, std::string>> cases{
        {sdbus::Variant{sdbus::ObjectPath{"/x"}}, "o"},
        {sdbus::Variant{sdbus::Signature{"as"}}, "g"},
        {sdbus::Variant{file}, "h"},
        {sdbus::Variant{std::vector<bool>{true}}, "ab"},
        {sdbus::Variant{std::vector<std::uint8_t>{1}}, "ay"},
        {sdbus::Variant{std::vector<std::uint32_t>{}}, "au"},
        {sdbus::Variant{std::vector<double>{1}}, "ad"},
        {sdbus::Variant{std::vector<Text>{"x"}}, "as"},
        {sdbus::Variant{std::vector<sdbus::ObjectPath>{}}, "ao"},
        {sdbus::Variant{std::vector<sdbus::UnixFd>{file}}, "ah"},
        {sdbus::Variant{std::vector<sdbus::Variant>{sdbus::Variant{"x"}}}, "av"},
        {sdbus::Variant{std::vector<std::vector<Text>>{{"x"}}}, "aas"},
        {sdbus::Variant{Dict{{"x", sdbus::Variant{1.5}}}}, "a{sv}"},
        {sdbus::Variant{std::map<Text, Text>{}}, "a{ss}"},
        {sdbus::Variant{std::map<std::uint32_t, Text>{{1u, "x"}}}, "a{us}"},
        {sdbus::Variant{std::vector<Dict>{{}}}, "aa{sv}"},
        {sdbus::Variant{pair}, "(su)"},
        {sdbus::Variant{std::vector{pair}}, "a(su)"}};
    for (const char* option : {"weight", "name", "min_pct"})
        for (const auto& [value, signature] : cases) {
            const auto refusal = create_refusal({{option, value}});
            EXPECT_EQ(refusal.name, "org.vgpu1.Error.WrongType") << option << " " << signature;
            EXPECT_THAT(refusal.text, HasSubstr("VGPU-102: option '" + std::string(option) +
                                                "' is of type '" + signature + "', but options "));
        }
}

TEST_F(DBus, AVariantInAVariantIsNamedSo) {
    const auto connection = connect();
    const auto manager = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1");
    manager->finishRegistration();
    auto message = manager->createMethodCall("org.vgpu1.Manager", "CreateVf");
    message << std::string("gpu0");
    message.openContainer("{sv}");
    message.openDictEntry("sv");
    message << std::string("weight");
    message.openVariant("v");
    message << sdbus::Variant{std::uint32_t{1}};
    message.closeVariant();
    message.closeDictEntry();
    message.closeContainer();
    try {
        static_cast<void>(manager->callMethod(message));
        FAIL() << "it was taken";
    } catch (const sdbus::Error& error) {
        EXPECT_EQ(error.getName(), "org.vgpu1.Error.WrongType");
        EXPECT_THAT(error.getMessage(), HasSubstr("option 'weight' is of type 'v'"));
    }
}

TEST_F(DBus, ValuesOfBasicTypesAreTakenOrNamedWithWhatIsWanted) {
    const std::vector<std::pair<sdbus::Variant, std::string>> numbers{
        {sdbus::Variant{std::uint8_t{0}}, "y"},  {sdbus::Variant{std::int16_t{0}}, "n"},
        {sdbus::Variant{std::uint16_t{0}}, "q"}, {sdbus::Variant{std::int32_t{0}}, "i"},
        {sdbus::Variant{std::uint32_t{0}}, "u"}, {sdbus::Variant{std::int64_t{0}}, "x"},
        {sdbus::Variant{std::uint64_t{0}}, "t"}};
    const std::vector<std::pair<sdbus::Variant, std::string>> others{
        {sdbus::Variant{true}, "b"},
        {sdbus::Variant{1.0}, "d"},
        {sdbus::Variant{std::string("1")}, "s"}};
    for (const auto& [value, signature] : numbers) {
        EXPECT_THAT(create_refusal({{"weight", value}}).text, HasSubstr("is 0, not within"))
            << signature;
        EXPECT_THAT(create_refusal({{"max_pct", value}}).text, HasSubstr("is 0, not within"))
            << signature;
        EXPECT_THAT(create_refusal({{"name", value}}).text,
                    HasSubstr("'name' must be a string (s)"))
            << signature;
    }
    for (const auto& [value, signature] : others)
        EXPECT_THAT(
            create_refusal({{"weight", value}}).text,
            HasSubstr(
                "option 'weight' must be a whole number (u, t, i or x), not a value of type '" +
                signature + "'"));
}

TEST_F(DBus, WrongSignatureOfACallIsRefusedByTheBusLayer) {
    const auto connection = connect();
    const auto manager = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1");
    manager->finishRegistration();
    EXPECT_THROW(manager->callMethod("CreateVf")
                     .onInterface("org.vgpu1.Manager")
                     .withArguments(std::uint32_t{7}),
                 sdbus::Error);
    EXPECT_THROW(manager->callMethod("NoSuchMethod").onInterface("org.vgpu1.Manager"),
                 sdbus::Error);
    EXPECT_EQ(ctl({"list"}).status, 0);
}

TEST_F(DBus, UnknownVfIsNotFoundWithASuggestion) {
    static_cast<void>(create("train"));
    const auto shown = ctl({"show", "trian"});
    EXPECT_EQ(shown.status, 3);
    EXPECT_THAT(shown.out,
                HasSubstr("VGPU-202: there is no GPU or VF 'trian'; did you mean 'train'?"));
    EXPECT_EQ(ctl({"pause", "gpu0/vf9"}).status, 3);
}

TEST_F(DBus, ListVfsAnswersWithAColumnForEachNamedProperty) {
    for (const char* name : {"a", "b"}) static_cast<void>(create(name));
    const auto connection = connect();
    const auto manager = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1");
    manager->finishRegistration();
    const auto columns = [&](const Dict& options) {
        Dict answer;
        manager->callMethod("ListVfs")
            .onInterface("org.vgpu1.Manager")
            .withArguments(options)
            .storeResultsTo(answer);
        return answer;
    };
    const Dict few = columns({{"properties", sdbus::Variant{"Name,Weight,Attached"}}});
    EXPECT_EQ(few.size(), 6u) << "Path, Target and Unknown, too";
    EXPECT_THAT(few.at("Name").get<std::vector<std::string>>(), ::testing::ElementsAre("a", "b"));
    EXPECT_THAT(few.at("Weight").get<std::vector<std::uint32_t>>(),
                ::testing::ElementsAre(100, 100));
    EXPECT_THAT(few.at("Attached").get<std::vector<bool>>(), ::testing::ElementsAre(false, false));
    Dict one;
    sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1/gpu/gpu0/vf/1")
        ->callMethod("GetAll")
        .onInterface("org.freedesktop.DBus.Properties")
        .withArguments("org.vgpu1.Vf")
        .storeResultsTo(one);
    const Dict all = columns({});
    EXPECT_EQ(all.size(), one.size() + 2) << "Path and Target, too";
    for (const auto& [name, value] : one)
        EXPECT_EQ(all.at(name).peekValueType(), "a" + value.peekValueType()) << name;
    EXPECT_THROW(columns({{"gpu", sdbus::Variant{"gpu9"}}}), sdbus::Error);
    try {
        static_cast<void>(columns({{"properties", sdbus::Variant{"Name,Wieght"}}}));
        FAIL() << "a property that does not exist";
    } catch (const sdbus::Error& error) {
        EXPECT_THAT(error.getMessage(), HasSubstr("there is no property 'Wieght'"));
    }
}

TEST_F(DBus, OverCapacityNamesResourceShortageAndWhatFits) {
    server.with([](FakePf& pf) {
        pf.info.vram_free_bytes = pf.info.vram_largest_free_bytes = 96 * FakePf::kMiB;
    });
    const auto refused = ctl({"create", "--vram", "128M"});
    EXPECT_EQ(refused.status, 6);
    EXPECT_EQ(refused.out,
              "vgpuctl: VGPU-302: VRAM: 128 MiB wanted, 96 MiB free on gpu0, short by 32 MiB; a VF "
              "of up to 96 MiB would fit. Ask for less VRAM, or destroy a VF.\n");
    EXPECT_TRUE(ctl_json({"list"}).at("vfs").empty());
}

TEST_F(DBus, SecondVgpudOnTheSameDirectoryIsRefused) {
    const auto second = test::run(daemon_command());
    EXPECT_EQ(second.status, 1);
    EXPECT_THAT(second.out, HasSubstr("VGPU-701: another vgpud (pid " +
                                      std::to_string(vgpud->pid()) + ") serves"));
    EXPECT_EQ(ctl({"list"}).status, 0);
}

TEST_F(DBus, KilledVgpudIsReplacedByOneThatKnowsEverything) {
    const auto first = create("train");
    static_cast<void>(create("infer"));
    EXPECT_EQ(ctl({"set", "infer", "--weight", "300"}).status, 0);
    vgpud->kill_now();
    const auto generation = server.with([](FakePf& pf) { return pf.table.generation; });
    EXPECT_EQ(ctl({"list"}).status, 5);
    start_daemon();
    const auto vfs = ctl_json({"list"}).at("vfs");
    ASSERT_EQ(vfs.size(), 2u);
    EXPECT_EQ(vfs[0].at("name"), "train");
    EXPECT_EQ(vfs[0].at("uuid"), first.at("uuid"));
    EXPECT_EQ(vfs[1].at("weight"), 300);
    EXPECT_GE(server.with([](FakePf& pf) { return pf.table.generation; }), generation);
    EXPECT_EQ(server.with([](FakePf& pf) {
        return std::count(pf.log.begin(), pf.log.end(), "provision 1");
    }),
              1);
}

TEST_F(DBus, TermEndsVgpudCleanlyAndLeavesVfsAlone) {
    static_cast<void>(create("train"));
    vgpud->signal(SIGTERM);
    EXPECT_EQ(vgpud->wait_exit(), 0);
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.vfs.contains(1); }));
}

TEST_F(DBus, ABusThatGoesAwayEndsVgpudWithAMessageAndLeavesVfsAlone) {
    static_cast<void>(create("train"));
    bus->kill_now();
    EXPECT_EQ(vgpud->wait_exit(), EXIT_FAILURE);
    EXPECT_THAT(vgpud->output(), HasSubstr("or is the bus gone?"));
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.vfs.contains(1); }));
}

TEST_F(DBus, CorruptStateStartsReadOnlyAndIsNotTouched) {
    static_cast<void>(create("train"));
    vgpud->kill_now();
    std::filesystem::resize_file(state_file(), std::filesystem::file_size(state_file()) / 2);
    const auto size = std::filesystem::file_size(state_file());
    start_daemon();
    const auto refused = ctl({"create"});
    EXPECT_EQ(refused.status, 8);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-501: the state file " + state_file()));
    EXPECT_THAT(ctl({"version"}).out, HasSubstr("vgpud is read-only"));
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 1u);
    EXPECT_EQ(std::filesystem::file_size(state_file()), size);
}

TEST_F(DBus, LostPfIsNamedAndComesBackByItself) {
    static_cast<void>(create("train"));
    server.stop();
    wait_for_gpu_state("pf-lost");
    const auto refused = ctl({"create"});
    EXPECT_EQ(refused.status, 7);
    EXPECT_THAT(ctl({"create", "--gpu", "gpu0"}).out, HasSubstr("VGPU-601: gpu0: "));
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 1u) << "what is known stays visible";
    server.start();
    wait_for_gpu_state("ok");
    EXPECT_EQ(ctl({"pause", "train"}).status, 0);
}

TEST_F(DBus, OthersMayLookButNotTouch) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    if (ctl_as_nobody({"--help"}).status != 0)
        GTEST_SKIP() << "nobody cannot execute programs of this build directory";
    EXPECT_EQ(ctl_as_nobody({"list"}).status, 0);
    const auto refused = ctl_as_nobody({"create"});
    EXPECT_EQ(refused.status, 4) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("VGPU-401: org.vgpu1.provision: uid"));
    EXPECT_TRUE(server.with([](FakePf& pf) { return pf.vfs.empty(); }));
}

/// Records the signals of ObjectManager and Properties.
class Watcher final : public sdbus::ProxyInterfaces<sdbus::ObjectManager_proxy> {
public:
    explicit Watcher(std::unique_ptr<sdbus::IConnection>&& connection)
        : ProxyInterfaces(std::move(connection), "org.vgpu1", "/org/vgpu1") {
        registerProxy();
    }
    ~Watcher() { unregisterProxy(); }
    std::promise<std::string> added, removed;

private:
    void onInterfacesAdded(const sdbus::ObjectPath& path,
                           const std::map<std::string, Dict>& interfaces) override {
        if (interfaces.contains("org.vgpu1.Vf")) added.set_value(path);
    }
    void onInterfacesRemoved(const sdbus::ObjectPath& path,
                             const std::vector<std::string>&) override {
        removed.set_value(path);
    }
};

TEST_F(DBus, ObjectsAndPropertiesAreSignalled) {
    Watcher watcher(connect());
    auto added = watcher.added.get_future();
    auto removed = watcher.removed.get_future();
    static_cast<void>(create("train"));
    ASSERT_EQ(added.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    const std::string path = added.get();
    EXPECT_EQ(path, "/org/vgpu1/gpu/gpu0/vf/1");
    EXPECT_TRUE(watcher.GetManagedObjects().contains(sdbus::ObjectPath{path}));

    std::promise<std::uint32_t> weight;
    auto changed = weight.get_future();
    auto vf = sdbus::createProxy(connect(), "org.vgpu1", path);
    vf->uponSignal("PropertiesChanged")
        .onInterface("org.freedesktop.DBus.Properties")
        .call(
            [&weight](const std::string&, const Dict& properties, const std::vector<std::string>&) {
                if (properties.contains("Weight"))
                    weight.set_value(properties.at("Weight").get<std::uint32_t>());
            });
    vf->finishRegistration();
    EXPECT_EQ(ctl({"set", "train", "--weight", "42"}).status, 0);
    ASSERT_EQ(changed.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_EQ(changed.get(), 42u);
    EXPECT_EQ(ctl({"destroy", "train"}).status, 0);
    ASSERT_EQ(removed.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_EQ(removed.get(), path);
}

TEST_F(DBus, AClaimIsSignalledToThoseWhoWaitForCapacity) {
    static_cast<void>(create("train"));
    std::atomic<std::uint64_t> counter = 0;
    auto manager = sdbus::createProxy(connect(), "org.vgpu1", "/org/vgpu1");
    manager->uponSignal("PropertiesChanged")
        .onInterface("org.freedesktop.DBus.Properties")
        .call([&counter](const std::string&, const Dict& properties,
                         const std::vector<std::string>&) {
            if (properties.contains("CapacityCounter"))
                counter = properties.at("CapacityCounter").get<std::uint64_t>();
        });
    manager->finishRegistration();
    const auto before = manager->getProperty("CapacityCounter")
                            .onInterface("org.vgpu1.Manager")
                            .get<std::uint64_t>();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "vm1"}).status, 0);
    test::wait_for("the signal", test::milliseconds(10'000), [&] { return counter > before; });
}

TEST_F(DBus, ServiceIsCountedFromTheEventRing) {
    static_cast<void>(create("a"));
    static_cast<void>(create("b"));
    server.with([](FakePf& pf) {
        for (int i = 0; i < 300; ++i) pf.run(1 + static_cast<std::uint32_t>(i) % 2, 6'000'000);
    });
    test::wait_for("the service to be counted", test::milliseconds(10'000), [&] {
        return ctl_json({"show", "a"}).at("vf").at("service_ns") == 900'000'000;
    });
    EXPECT_NEAR(ctl_json({"show", "b"}).at("vf").at("share_window").get<double>(), 0.5, 0.01);
    EXPECT_EQ(ctl({"top", "--once"}).status, 0);
}

TEST_F(DBus, MistakesInTheConfigurationAreNamed) {
    std::ofstream(directory.file("bad.json"))
        << R"({"gpus": [{"id": "gpu0", "softgpu": {"vfs": 99}}]})";
    auto command = daemon_command();
    command[4] = directory.file("bad.json");
    const auto refused = test::run(command);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-702: "));
    EXPECT_THAT(refused.out, HasSubstr("/gpus/0/softgpu/vfs must be a whole number within 1..16"));
}

}  // namespace
}  // namespace vgpu::daemon
