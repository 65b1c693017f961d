// SPDX-License-Identifier: MIT
//
// Every row of errors.def, raised by the real vgpud: name on the bus, number, cause, what mends it,
// and what vgpuctl makes of it, which docs/dbus-api.md has to say. A row without a way to raise it
// does not compile.
#include "cli/service.h"
#include "daemon/adapters/state_files.h"
#include "daemon/ports/result.h"
#include "daemon/service/state_store.h"
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/fake_authority.h"
#include "tests/scenario/dbus/guest_port.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <regex>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::FakeAuthority;
using testing::FakePf;
using testing::GuestPort;
using ::testing::HasSubstr;
using Dict = std::map<std::string, sdbus::Variant>;
using Words = std::vector<std::string>;

constexpr const char* kTrain = "/org/vgpu1/gpu/gpu0/vf/1";
/// Generous: a healthy answer takes milliseconds.
constexpr test::milliseconds kPrompt = std::chrono::seconds(20);

/// How an error was told: by a reply (with its name), else only in words (a log, a notice).
struct Told {
    std::string name, text;
    std::optional<test::Completed> ctl{};  ///< vgpuctl, for the same; nothing: it cannot
};

/// What a call is answered with, if that is an error.
template <typename Call> Told told_by(const Call& call) {
    try {
        call();
    } catch (const sdbus::Error& error) {
        return {.name = error.getName(), .text = error.getMessage()};
    }
    return {.name = "none", .text = "it was done"};
}

std::string document(const std::string& vram, int vfs) {
    return fmt::format(
        R"({{"profiles": {{"p": {{"resources": {{"vram": "{}"}}}}}},
             "configs": {{"x": [{{"gpu": "gpu0", "vfs": [{}]}}]}}}})",
        vram,
        vfs == 1 ? R"({"profile": "p", "name": "train"})"
                 : R"({"profile": "p", "count": 16, "name": "a{n}"},
                            {"profile": "p", "name": "b"})");
}

std::string text_of_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

class ErrorPath : public BusFixture, public ::testing::WithParamInterface<ErrorRow> {
public:
#define DAEMON_ERROR(name, number, fix) Told raise_##name();
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR

protected:
    ErrorPath()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = testing::fake_authority_rules(),
                           .authority = "",
                           .start = Setup::Start::Later}) {
        polkit.emplace(connect());
        polkit->say(true);
        start_daemon();
        client = connect();
    }

    Told call(const std::string& path, const std::string& interface, const std::string& method,
              const auto&... arguments) const {
        return told_by([&] {
            const auto object = sdbus::createProxy(*client, "org.vgpu1", path);
            object->finishRegistration();
            object->callMethod(method)
                .onInterface("org.vgpu1." + interface)
                .withArguments(arguments...);
        });
    }
    Told manager(const std::string& method, const auto&... arguments) const {
        return call("/org/vgpu1", "Manager", method, arguments...);
    }
    Told train(const std::string& method, const auto&... arguments) const {
        return call(kTrain, "Vf", method, arguments...);
    }
    Told create(const Dict& options) const {
        return manager("CreateVf", std::string("gpu0"), options);
    }
    /// What is made so takes 64 MiB.
    void make_train() const {
        ASSERT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0);
    }
    [[nodiscard]] Told with_ctl(Told told, const Words& words) const {
        told.ctl = ctl(words);
        return told;
    }
    /// Plans `text`, both ways; `words` follow the file's name.
    [[nodiscard]] Told plan(const std::string& text, const Dict& options = {},
                            const Words& words = {}) const {
        const std::string file = directory.file("wanted.json");
        std::ofstream(file) << text;
        Words all{"plan", file};
        all.insert(all.end(), words.begin(), words.end());
        return with_ctl(manager("Plan", text, options), all);
    }
    /// A job that resizes train and waits for its scrub.
    [[nodiscard]] std::string start_job() {
        make_train();
        server.with([](FakePf& pf) { pf.holds_scrubs = true; });
        const auto proxy = sdbus::createProxy(*client, "org.vgpu1", "/org/vgpu1");
        proxy->finishRegistration();
        sdbus::ObjectPath job;
        proxy->callMethod("Apply")
            .onInterface("org.vgpu1.Manager")
            .withArguments(document("128MiB", 1), Dict{})
            .storeResultsTo(job);
        test::wait_for("train to be released", kPrompt, [&] {
            return ctl_json({"show", "train"}).at("vf").at("state") == "scrubbing";
        });
        return job;
    }
    [[nodiscard]] std::string job_property(const std::string& job, const std::string& name) const {
        const auto proxy = sdbus::createProxy(*client, "org.vgpu1", job);
        proxy->finishRegistration();
        return proxy->getProperty(name).onInterface("org.vgpu1.Job").get<std::string>();
    }
    void end_scrub() {
        server.with([](FakePf& pf) {
            pf.holds_scrubs = false;
            pf.finish_scrub(1);
        });
    }
    /// A PF core that comes back as `change` makes it.
    void come_back(const std::string& state, const std::function<void(FakePf&)>& change) {
        server.stop();
        server.with(change);
        server.start();
        wait_for_gpu_state(state);
    }
    [[nodiscard]] std::string state_file() const {
        return directory.file("state/vgpud.state.json");
    }
    /// Started on a state file with `text`; its log then says what is wrong with it.
    void start_on_state(const std::string& text) {
        vgpud->kill_now();
        std::ofstream(state_file()) << text;
        start_daemon();
    }

    std::optional<FakeAuthority> polkit;
    std::unique_ptr<sdbus::IConnection> client;
};

// --- what a caller gets wrong

Told ErrorPath::raise_UnknownOption() {
    return create({{"wait", sdbus::Variant{true}}});
}

Told ErrorPath::raise_WrongType() {
    return create({{"weight", sdbus::Variant{"x"}}});
}

Told ErrorPath::raise_OutOfRange() {
    return plan(std::string(300'000, ' '));
}

Told ErrorPath::raise_InvalidName() {
    return with_ctl(create({{"name", sdbus::Variant{"1st"}}}), {"create", "--name", "1st"});
}

Told ErrorPath::raise_NameTaken() {
    return with_ctl(create({{"name", sdbus::Variant{"gpu0"}}}), {"create", "--name", "gpu0"});
}

Told ErrorPath::raise_BadConfiguration() {
    return plan(R"({"profiles": {}})");
}

Told ErrorPath::raise_InvalidOwner() {
    make_train();
    return with_ctl(train("Claim", std::string("a b"), Dict{}),
                    {"claim", "train", "--owner", "a b"});
}

Told ErrorPath::raise_NoSuchGpu() {
    return with_ctl(manager("CreateVf", std::string("gpu9"), Dict{}), {"create", "--gpu", "gpu9"});
}

Told ErrorPath::raise_NoSuchVf() {
    return with_ctl(manager("Resolve", std::string("train"), Dict{}), {"show", "train"});
}

Told ErrorPath::raise_NoSuchLabel() {
    return plan(document("64MiB", 1), {{"label", sdbus::Variant{"y"}}}, {"--label", "y"});
}

/// A state that two vgpuds wrote, or somebody by hand.
Told ErrorPath::raise_AmbiguousName() {
    vgpud->kill_now();
    {
        adapters::StateFiles files(directory.file("state"));
        StateStore store(files);
        store.load();
        GpuRecord record = store.gpu("gpu0");
        for (const std::uint32_t vf : {1u, 2u})
            record.vfs[vf] = {
                .vf = vf, .name = "train", .uuid = make_uuid(), .vram_bytes = 64 * FakePf::kMiB};
        EXPECT_TRUE(store.commit("gpu0", record));
    }
    start_daemon();
    Told told = with_ctl(manager("Resolve", std::string("train"), Dict{}), {"show", "train"});
    EXPECT_EQ(ctl({"set", "gpu0/vf2", "--name", "train2"}).status, 0) << "as the error says";
    EXPECT_EQ(ctl({"show", "train"}).status, 0);
    return told;
}

// --- what there is not

Told ErrorPath::raise_NoFreeVf() {
    return plan(document("64MiB", 17));
}

Told ErrorPath::raise_NoVram() {
    return with_ctl(create({{"vram_bytes", sdbus::Variant{512 * FakePf::kMiB}}}),
                    {"create", "--vram", "512M"});
}

Told ErrorPath::raise_NoDoorbells() {
    return with_ctl(create({{"doorbell_pages", sdbus::Variant{100'000u}}}),
                    {"create", "--doorbell-pages", "100000"});
}

Told ErrorPath::raise_NoComputeUnits() {
    return with_ctl(create({{"cu_mask", sdbus::Variant{std::uint64_t{0x100}}}}),
                    {"create", "--cu-mask", "0x100"});
}

Told ErrorPath::raise_NoSchedule() {
    EXPECT_EQ(ctl({"create", "--name", "train", "--min-pct", "60"}).status, 0);
    return with_ctl(create({{"min_pct", sdbus::Variant{60.0}}}), {"create", "--min-pct", "60"});
}

Told ErrorPath::raise_WrongState() {
    make_train();
    server.with([](FakePf& pf) {
        pf.vfs.at(1).attached = 1;
        pf.push(VGPU_PF_EVENT_ATTACH, 1, 1);
    });
    return with_ctl(train("Destroy", Dict{}), {"destroy", "train"});
}

Told ErrorPath::raise_NoAgent() {
    make_train();
    return with_ctl(train("SelfTest", Dict{}), {"self-test", "train"});
}

Told ErrorPath::raise_PolicyNotTaken() {
    make_train();
    server.with(
        [](FakePf& pf) { pf.push(VGPU_PF_EVENT_POLICY, 1, VGPU_PF_POLICY_SCHED_PRIORITY, 2); });
    std::string text;
    test::wait_for("the notice", kPrompt, [&] {
        // one document a line
        std::istringstream lines(ctl({"events", "--json"}).out);
        for (std::string line; std::getline(lines, line);) {
            const auto event = nlohmann::json::parse(line);
            if (event.at("kind") == "policy-refused") text = event.at("text");
        }
        return !text.empty();
    });
    return {.name = "", .text = text};
}

Told ErrorPath::raise_Busy() {
    static_cast<void>(start_job());
    const Told told = with_ctl(train("Set", Dict{{"weight", sdbus::Variant{7u}}}),
                               {"set", "train", "--weight", "7"});
    end_scrub();
    return told;
}

Told ErrorPath::raise_Cancelled() {
    make_train();
    server.with([](FakePf& pf) { pf.holds_scrubs = true; });
    std::ofstream(directory.file("wanted.json")) << document("128MiB", 1);
    auto asked = std::async(std::launch::async, [this] {
        return ctl({"apply", directory.file("wanted.json"), "--yes"});
    });
    const std::string job = "/org/vgpu1/job/1";
    test::wait_for("train to be released", kPrompt, [&] {
        return ctl_json({"show", "train"}).at("vf").at("state") == "scrubbing";
    });
    EXPECT_EQ(call(job, "Job", "Cancel", Dict{}).name, "none");
    end_scrub();
    auto done = asked.get();
    return {.name = job_property(job, "ErrorName"),
            .text = job_property(job, "Error"),
            .ctl = std::move(done)};
}

Told ErrorPath::raise_Claimed() {
    make_train();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    return with_ctl(train("Claim", std::string("job:2"), Dict{}),
                    {"claim", "train", "--owner", "job:2"});
}

Told ErrorPath::raise_StaleClaim() {
    make_train();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    return with_ctl(train("Release", std::string("job:1"), std::uint64_t{99}, Dict{}),
                    {"release", "train", "--owner", "job:1", "--generation", "99"});
}

Told ErrorPath::raise_NoMatchingVf() {
    const std::vector<sdbus::Struct<std::string, std::string>> wanted{{"profile", "large"}};
    return manager("Assign", std::string("job:1"), wanted, Dict{{"wait_ms", sdbus::Variant{0u}}});
}

Told ErrorPath::raise_HandoverRefused() {
    make_train();
    return with_ctl(train("Set", Dict{{"handover", sdbus::Variant{"vfio-pci"}}}),
                    {"set", "train", "--handover", "vfio-pci"});
}

// --- what a caller may not

Told ErrorPath::raise_NotAuthorized() {
    polkit->say(false);
    return with_ctl(create({}), {"create"});
}

/// Calls that stay open until it goes.
class OpenCalls {
public:
    OpenCalls(std::unique_ptr<sdbus::IConnection> bus, std::size_t count)
        : bus_(std::move(bus)), manager_(sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1")) {
        manager_->finishRegistration();
        for (std::size_t i = 0; i < count; ++i)
            manager_->callMethodAsync("CreateVf")
                .onInterface("org.vgpu1.Manager")
                .withArguments(std::string("gpu0"), Dict{})
                .uponReplyInvoke([](const sdbus::Error*, const sdbus::ObjectPath&) {});
        bus_->enterEventLoopAsync();
    }
    ~OpenCalls() { bus_->leaveEventLoop(); }
    OpenCalls(const OpenCalls&) = delete;
    OpenCalls& operator=(const OpenCalls&) = delete;

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IProxy> manager_;
};

/// Root may have all there are; another user has a bound of its own, which is met first.
Told ErrorPath::raise_TooManyRequests() {
    constexpr std::size_t kEach = 32;
    const std::size_t most = ::geteuid() == 0 ? 112 : 40;
    polkit->keep_open("org.vgpu1.provision");
    std::vector<std::unique_ptr<OpenCalls>> open;
    for (std::size_t asked = 0; asked < most; asked += kEach)
        open.push_back(std::make_unique<OpenCalls>(connect(), std::min(kEach, most - asked)));
    test::wait_for("polkit to be asked about all", kPrompt,
                   [&] { return polkit->open_questions() == most; });
    return with_ctl(create({}), {"create"});
}

// --- durable state

Told ErrorPath::raise_StateReadOnly() {
    start_on_state("{");
    return with_ctl(create({}), {"create"});
}

Told ErrorPath::raise_StateNotWritten() {
    make_train();
    // one that somebody else wrote to is not added to, and then written anew
    const auto meddle = [this] {
        std::ofstream(directory.file("state/vgpud.journal"), std::ios::app) << "x";
    };
    meddle();
    Told told = train("Set", Dict{{"weight", sdbus::Variant{7u}}});
    EXPECT_EQ(ctl({"set", "train", "--weight", "8"}).status, 0) << "written anew";
    meddle();
    told.ctl = ctl({"set", "train", "--weight", "9"});
    return told;
}

Told ErrorPath::raise_StateCorrupt() {
    start_on_state("{");
    return {.name = "", .text = vgpud->output()};
}

Told ErrorPath::raise_StateNewer() {
    std::string text = text_of_file(VGPU_STATE_GOLDEN_DIR "/version1.json");
    const std::string version = "\"version\": 1";
    const std::size_t at = text.find(version);
    EXPECT_NE(at, std::string::npos);
    start_on_state(text.replace(at, version.size(), "\"version\": 99"));
    return {.name = "", .text = vgpud->output()};
}

// --- the PF core

Told ErrorPath::raise_PfLost() {
    make_train();
    server.stop();
    wait_for_gpu_state("pf-lost");
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

Told ErrorPath::raise_DeviceLost() {
    make_train();
    come_back("device-lost", [](FakePf& pf) { pf.info.device_lost = 1; });
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

Told ErrorPath::raise_PfRefused() {
    make_train();
    server.with([](FakePf& pf) { pf.refuse = "control"; });
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

Told ErrorPath::raise_TimedOut() {
    make_train();
    GuestPort guest(directory.file("vf1.agent.sock"));
    guest.greet();
    test::wait_for("the agent", kPrompt, [&] {
        return ctl_json({"show", "train"}).at("vf").at("agent").at("connected") == true;
    });
    auto asked = std::async(std::launch::async, [this] {
        return ctl({"self-test", "train", "--timeout-ms", "100"});
    });
    Told told = train("SelfTest", Dict{{"timeout_ms", sdbus::Variant{100u}}});
    told.ctl = asked.get();
    return told;
}

Told ErrorPath::raise_VersionMismatch() {
    make_train();
    come_back("version-mismatch", [](FakePf& pf) { pf.info.uapi_version = 999; });
    return with_ctl(train("Pause", Dict{}), {"pause", "train"});
}

// --- vgpud itself

Told ErrorPath::raise_Stopping() {
    make_train();
    polkit->keep_open("org.vgpu1.control");
    auto by_ctl = std::async(std::launch::async, [this] { return ctl({"pause", "train"}); });
    auto by_bus = std::async(std::launch::async, [this] { return train("Pause", Dict{}); });
    test::wait_for("polkit to be asked", kPrompt, [&] { return polkit->open_questions() == 2; });
    vgpud->signal(SIGTERM);
    Told told = by_bus.get();
    told.ctl = by_ctl.get();
    return told;
}

Told ErrorPath::raise_AlreadyRunning() {
    const auto second = test::run(daemon_command());
    EXPECT_EQ(second.status, 1);
    return {.name = "", .text = second.out};
}

Told ErrorPath::raise_ConfigInvalid() {
    std::vector<std::string> command = daemon_command();
    std::replace(command.begin(), command.end(), directory.file("vgpud.json"),
                 directory.path().string());
    EXPECT_THAT(test::run(command).out, HasSubstr("Is a directory"));
    std::ofstream(directory.file("vgpud.json")) << "{";
    const auto refused = test::run(daemon_command());
    EXPECT_EQ(refused.status, 1);
    return {.name = "", .text = refused.out};
}

/// The sockets of this GPU are not there.
Told ErrorPath::raise_System() {
    make_train();
    EXPECT_EQ(ctl({"claim", "train", "--owner", "job:1"}).status, 0);
    return manager("Grant", std::string("job:1"), 0u, 0u, Dict{});
}

// --- all of them

struct Raised {
    ErrorRow row;
    Told (ErrorPath::*raise)();
};

const std::vector<Raised>& all_rows() {
    static const std::vector<Raised> kAll{
#define DAEMON_ERROR(name, number, fix) {row_of(ErrorId::name), &ErrorPath::raise_##name},
#include "daemon/ports/errors.def"
#undef DAEMON_ERROR
    };
    return kAll;
}

std::vector<ErrorRow> rows() {
    std::vector<ErrorRow> all;
    for (const Raised& one : all_rows()) all.push_back(one.row);
    return all;
}

/// What docs/dbus-api.md says vgpuctl exits with; nothing for errors that no call is answered with.
std::optional<int> documented_exit(const ErrorRow& row) {
    const std::string page = text_of_file(VGPU_DOCS_DIR "/dbus-api.md");
    std::smatch found;
    const std::regex pattern(fmt::format("\\| {} \\| `{}` \\| ([^ ]+) \\|", row.number, row.name));
    if (!std::regex_search(page, found, pattern)) {
        ADD_FAILURE() << row.name << " has no line in docs/dbus-api.md";
        return {};
    }
    if (found[1] == "–") return {};
    return std::stoi(found[1]);
}

TEST_P(ErrorPath, TellsNumberCauseAndWhatMendsItAndExitsAsDocumented) {
    const ErrorRow& row = GetParam();
    const auto at = std::find_if(all_rows().begin(), all_rows().end(), [&row](const Raised& one) {
        return one.row.number == row.number;
    });
    const Told told = (this->*at->raise)();
    const std::string number = fmt::format("VGPU-{}: ", row.number);
    const std::string fix = fmt::format(". {}", row.fix);
    const std::size_t begin = told.text.find(number);
    ASSERT_NE(begin, std::string::npos) << told.name << ": " << told.text;
    const std::size_t end = told.text.find(fix, begin);
    ASSERT_NE(end, std::string::npos) << told.text;
    EXPECT_GT(end - begin, number.size() + 5) << "a cause: " << told.text;

    const auto exit = documented_exit(row);
    EXPECT_EQ(told.name, exit ? dbus_name_of(row.id) : "");
    if (!exit) return;
    EXPECT_EQ(static_cast<int>(cli::ServiceError(told.name, "").exit_code()), *exit);
    if (!told.ctl) return;
    EXPECT_EQ(told.ctl->status, *exit) << told.ctl->out;
    EXPECT_THAT(told.ctl->out, HasSubstr(number));
    EXPECT_THAT(told.ctl->out, HasSubstr(fix));
}

INSTANTIATE_TEST_SUITE_P(Rows, ErrorPath, ::testing::ValuesIn(rows()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// --- the bus's own errors

/// A vgpud that knows targets and nothing else.
class OldVgpud : public BusFixture {
protected:
    OldVgpud()
        : BusFixture(Setup{.gpus = "",
                           .bus_policy = {},
                           .authority = "--no-polkit",
                           .start = Setup::Start::Later}),
          bus_(connect()),
          manager_(sdbus::createObject(*bus_, "/org/vgpu1")),
          vf_(sdbus::createObject(*bus_, "/org/vgpu1/gpu/gpu0/vf/2")) {
        manager_->registerMethod("Resolve")
            .onInterface("org.vgpu1.Manager")
            .implementedAs([](const std::string& target, const Dict&) {
                const bool has_gone = target == "gone";
                return sdbus::ObjectPath{has_gone ? kTrain : "/org/vgpu1/gpu/gpu0/vf/2"};
            });
        manager_->finishRegistration();
        vf_->registerMethod("Pause").onInterface("org.vgpu1.Vf").implementedAs([](const Dict&) {});
        vf_->finishRegistration();
        bus_->requestName("org.vgpu1");
        bus_->enterEventLoopAsync();
    }
    ~OldVgpud() override { bus_->leaveEventLoop(); }
    OldVgpud(const OldVgpud&) = delete;
    OldVgpud& operator=(const OldVgpud&) = delete;

private:
    std::unique_ptr<sdbus::IConnection> bus_;
    std::unique_ptr<sdbus::IObject> manager_, vf_;
};

TEST_F(OldVgpud, AMethodThatItLacksIsCalledSo) {
    ASSERT_EQ(ctl({"pause", "there"}).status, 0);
    for (const Words& words : {Words{"self-test", "there"}, Words{"export"}, Words{"create"}}) {
        const auto refused = ctl(words);
        EXPECT_EQ(refused.status, 1) << refused.out;
        EXPECT_THAT(refused.out, HasSubstr("This vgpud is older than vgpuctl")) << words.front();
    }
}

TEST_F(OldVgpud, AnObjectThatHasGoneIsNotFound) {
    const auto refused = ctl({"pause", "gone"});
    EXPECT_EQ(refused.status, 3) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("What it stood for has gone: the VF was destroyed"));
}

}  // namespace
}  // namespace vgpu::daemon
