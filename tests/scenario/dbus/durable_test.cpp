// SPDX-License-Identifier: MIT
//
// What survives: definitions and claims, after kill -9 of vgpud and after the loss of all programs,
// as at a reboot. Also half-written or damaged state files, and a second vgpud on the same state.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
using testing::BusFixture;
using testing::FakePf;
using ::testing::HasSubstr;

/// The members of every VF that must not change.
nlohmann::json definitions_of(const nlohmann::json& list) {
    constexpr std::array kKept{"target",  "name",           "uuid",         "vram_bytes",
                               "weight",  "quantum_us",     "owner",        "owner_generation",
                               "cu_mask", "doorbell_pages", "lease_expires"};
    auto kept = nlohmann::json::array();
    for (const auto& vf : list.at("vfs")) {
        nlohmann::json one;
        for (const char* member : kKept) one[member] = vf.at(member);
        kept.push_back(std::move(one));
    }
    return kept;
}

struct OneGpu {
    test::GpuStack gpu{{.vfs = 4, .vram_mb = 256}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            gpu.dir().file("uapi.sock"), gpu.dir().path().string());
    }
};

class Durable : private OneGpu, public BusFixture {
protected:
    Durable() : BusFixture(Setup{.gpus = config()}) {}

    /// Two VFs, the second of them claimed, and one that was destroyed before.
    void define() {
        for (const std::string name : {"gone", "train", "infer"})
            ASSERT_EQ(ctl({"create", "--name", name, "--vram", "32M"}).status, 0);
        ASSERT_EQ(ctl({"set", "train", "--weight", "700"}).status, 0);
        ASSERT_EQ(ctl({"set", "infer", "--quantum-us", "3000"}).status, 0);
        ASSERT_EQ(ctl({"claim", "infer", "--owner", "slurm:7", "--lease", "86400"}).status, 0);
        ASSERT_EQ(ctl({"destroy", "gone"}).status, 0);
    }
    void power_off() {
        vgpud->kill_now();
        gpu.kill_pf();
        gpu.kill_softgpu();
    }
    void power_on() {
        fs::remove(gpu.dir().file("softgpu.log"));  // it still has "ready" of the first start
        gpu.start_softgpu();
        gpu.start_pf();
        start_daemon();
        wait_for_gpu_state("ok");
    }
    [[nodiscard]] nlohmann::json definitions() const { return definitions_of(ctl_json({"list"})); }

    test::GpuStack& stack() { return gpu; }
};

TEST_F(Durable, DefinitionsAndClaimsSurviveKillOfVgpud) {
    define();
    const auto before = definitions();
    ASSERT_EQ(before.size(), 2u);
    vgpud->kill_now();
    start_daemon();
    EXPECT_EQ(definitions(), before);
    const auto released = ctl({"release", "infer", "--owner", "slurm:7", "--generation", "1"});
    EXPECT_EQ(released.status, 0) << released.out;
}

TEST_F(Durable, AfterAPowerCutEveryVfIsMadeAgainAsItWasDefined) {
    define();
    const auto before = definitions();
    power_off();
    power_on();
    EXPECT_EQ(definitions(), before);
    const auto after = ctl_json({"list"});
    for (const auto& vf : after.at("vfs")) {
        EXPECT_EQ(vf.at("state"), "provisioned") << vf;
        EXPECT_EQ(vf.at("condition"), "");
    }
    EXPECT_EQ(stack().pf().vf(1).state, static_cast<std::uint32_t>(VGPU_PF_VF_ABSENT));
    EXPECT_EQ(stack().pf().vf(2).vram_bytes, 32u << 20);
    EXPECT_EQ(stack().pf().vf(3).vram_bytes, 32u << 20);
    const auto refused = ctl({"destroy", "infer"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.out, HasSubstr("VGPU-310: gpu0/vf3 ('infer') belongs to 'slurm:7'"));
    EXPECT_EQ(ctl({"destroy", "infer", "--owner", "slurm:7"}).status, 0);
}

TEST_F(Durable, WhatThePowerCutLeftOfAChangeIsPassedOver) {
    define();
    auto before = definitions();
    power_off();
    std::ofstream(directory.file("state/gpus/gpu0.json.new")) << "{\"checksum\"";
    power_on();
    EXPECT_EQ(definitions(), before);
    EXPECT_EQ(ctl({"set", "train", "--weight", "6"}).status, 0);
    power_off();
    power_on();
    before[0]["weight"] = 6;
    EXPECT_EQ(definitions(), before);
}

/// Three VFs of a real PF core, of which the other configuration keeps one, resizes one and
/// replaces one.
class InterruptedApply : public Durable {
protected:
    InterruptedApply() {
        write("old", R"({"profile": "small", "name": "kept"}, {"profile": "small", "name": "grown"},
                        {"profile": "large", "name": "gone"})");
        write("new", R"({"profile": "small", "name": "kept"}, {"profile": "large", "name": "grown"},
                        {"profile": "heavy", "name": "come"})");
    }
    [[nodiscard]] int run(const std::string& verb, const std::string& name) const {
        std::vector<std::string> words{verb, directory.file(name + ".json")};
        if (verb == "apply") words.emplace_back("--yes");
        return ctl(std::move(words)).status;
    }
    /// The configuration, old or new, that the VFs have when the next vgpud has ended its recovery.
    [[nodiscard]] std::string found() const {
        std::string name;
        test::wait_for("the apply to be done or undone", test::milliseconds(30'000), [&] {
            if (is_recovering()) return false;
            for (const std::string one : {"old", "new"})
                if (run("assert", one) == 0) name = one;
            return !name.empty() && !is_recovering();
        });
        return name;
    }

private:
    void write(const std::string& name, const std::string& vfs) const {
        std::ofstream(directory.file(name + ".json"))
            << R"({"profiles": {"small": {"resources": {"vram": "32MiB"}},
                                "large": {"resources": {"vram": "64MiB"}},
                                "heavy": {"resources": {"vram": "48MiB"},
                                          "scheduler": {"weight": 700}}},
                   "configs": {"x": [{"gpu": "gpu0", "vfs": [)"
            << vfs << "]}]}}";
    }
    /// The first job of a vgpud is the recovery, if there is one.
    [[nodiscard]] bool is_recovering() const {
        const auto connection = connect();
        const auto job = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1/job/1");
        job->finishRegistration();
        try {
            const auto state = job->getProperty("State").onInterface("org.vgpu1.Job");
            const std::set<std::string> over{"done", "failed", "cancelled"};
            return !over.contains(state.get<std::string>());
        } catch (const sdbus::Error&) {
            return false;  // there is none
        }
    }
};

TEST_F(InterruptedApply, OfAVgpudKilledAtAnyMomentIsAllDoneOrAllUndone) {
    constexpr int kKills = 8;
    using Clock = std::chrono::steady_clock;
    ASSERT_EQ(run("apply", "old"), 0);
    const auto start = Clock::now();
    ASSERT_EQ(run("apply", "new"), 0);
    const auto whole = Clock::now() - start;
    int interrupted = 0;
    for (int i = 1; i <= kKills; ++i) {
        SCOPED_TRACE(i);
        ASSERT_EQ(run("apply", "old"), 0);
        auto caller = std::async(std::launch::async, [this] { return run("apply", "new"); });
        std::this_thread::sleep_for(whole * i / kKills);
        vgpud->kill_now();
        const int told = caller.get();
        start_daemon();
        wait_for_gpu_state("ok");
        const std::string now = found();
        EXPECT_TRUE(told != 0 || now == "new") << "who was told that it is done finds it done";
        if (told != 0) ++interrupted;
        const auto list = ctl_json({"list"});
        ASSERT_EQ(list.at("vfs").size(), 3u) << list;
        for (const auto& vf : list.at("vfs")) {
            EXPECT_EQ(vf.at("state"), "provisioned") << vf;
            EXPECT_EQ(vf.at("condition"), "") << vf;
        }
    }
    EXPECT_GT(interrupted, 0);
}

/// Tests of the state files, with a fake PF core.
class StateFiles : public BusFixture {
protected:
    StateFiles() : BusFixture(Setup{.gpus = "", .start = Setup::Start::Later}) {
        fs::create_directories(directory.file("state"));
    }
    [[nodiscard]] fs::path file() const { return directory.file("state/gpus/gpu0.json"); }
    [[nodiscard]] fs::path apply() const { return directory.file("state/apply.json"); }
    void make_three() {
        for (const std::string name : {"a", "b", "c"})
            ASSERT_EQ(ctl({"create", "--name", name, "--vram", "64M"}).status, 0);
    }
    static void damage(const fs::path& path, std::uintmax_t at, char byte = '\x7f') {
        std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(at));
        stream.put(byte);
    }
    /// Runs vgpud --recover-state, as the error recommends, and starts vgpud.
    void recover() {
        vgpud->kill_now();
        auto command = daemon_command();
        command.emplace_back("--recover-state");
        const auto recovered = test::run(command);
        EXPECT_EQ(recovered.status, 0) << recovered.out;
        EXPECT_THAT(recovered.out, HasSubstr("the damaged file is kept as *.damaged"));
        start_daemon();
        wait_for_gpu_state("ok");
    }
};

TEST_F(StateFiles, DamageStartsReadOnlyAndNamesTheFileAndTheFix) {
    start_daemon();
    make_three();
    vgpud->kill_now();
    const auto size = fs::file_size(file());
    damage(file(), size / 2);
    start_daemon();
    EXPECT_THAT(vgpud->output(),
                HasSubstr("VGPU-503: the state file " + file().string() + " cannot be trusted: "));
    EXPECT_THAT(vgpud->output(), HasSubstr("run 'vgpud --recover-state'"));
    EXPECT_EQ(ctl({"create"}).status, 8);
    EXPECT_EQ(ctl({"claim", "gpu0/vf1", "--owner", "x"}).status, 8);
    EXPECT_EQ(ctl_json({"list"}).at("vfs").size(), 3u) << "they run, and can be looked at";
    EXPECT_EQ(fs::file_size(file()), size);
}

TEST_F(StateFiles, ADamagedOneIsTheCopyBeforeItOnceTheAdviceIsCarriedOut) {
    start_daemon();
    make_three();
    const auto whole = definitions_of(ctl_json({"list"}));
    ASSERT_EQ(ctl({"set", "a", "--weight", "700"}).status, 0);
    vgpud->kill_now();
    damage(file(), 200);
    start_daemon();
    const auto refused = ctl({"create"});
    EXPECT_EQ(refused.status, 8);
    EXPECT_THAT(refused.out, HasSubstr("'vgpud --recover-state'"));
    EXPECT_EQ(definitions_of(ctl_json({"list"})), whole) << "the copy is shown";
    recover();
    EXPECT_TRUE(fs::exists(file().string() + ".damaged"));
    EXPECT_EQ(definitions_of(ctl_json({"list"})), whole);
    EXPECT_EQ(ctl({"set", "a", "--weight", "200"}).status, 0);
}

TEST_F(StateFiles, ADamagedApplyStopsAllChangesUntilTheAdviceIsCarriedOut) {
    start_daemon();
    make_three();
    const auto whole = definitions_of(ctl_json({"list"}));
    vgpud->kill_now();
    std::ofstream(apply()) << "x";
    start_daemon();
    EXPECT_THAT(ctl({"create"}).out, HasSubstr("VGPU-501: the state file " + apply().string()));
    EXPECT_EQ(definitions_of(ctl_json({"list"})), whole);
    recover();
    EXPECT_FALSE(fs::exists(apply()));
    EXPECT_EQ(definitions_of(ctl_json({"list"})), whole);
    EXPECT_EQ(ctl({"set", "a", "--weight", "200"}).status, 0);
}

TEST_F(StateFiles, AByteThatIsNoTextStartsReadOnlyAndIsAnswered) {
    start_daemon();
    ASSERT_EQ(ctl({"create", "--name", "a", "--vram", "64M"}).status, 0);
    vgpud->kill_now();
    damage(file(), 4, '\xe3');
    start_daemon();
    const test::Completed refused = ctl({"create"});
    EXPECT_EQ(refused.status, 8);
    EXPECT_THAT(refused.out, HasSubstr("cannot be trusted"));
    EXPECT_THAT(ctl({"doctor"}).out, HasSubstr("cannot be trusted"));
    EXPECT_TRUE(vgpud->is_running());
}

TEST_F(StateFiles, OneVgpudAtATimeHasThemAlsoWithAnotherRunDirectory) {
    start_daemon();
    auto command = daemon_command();
    std::ofstream(directory.file("other.json"))
        << fmt::format(R"({{"state_dir": "{0}/state", "run_dir": "{0}/other",
                            "gpus": [{{"id": "gpu0", "attach": {{"uapi": "{0}/uapi.sock"}}}}]}})",
                       directory.path().string());
    command[4] = directory.file("other.json");
    const auto second = test::run(command);
    EXPECT_EQ(second.status, 1);
    EXPECT_THAT(second.out, HasSubstr(fmt::format(
                                "VGPU-701: another vgpud (pid {}) keeps its state", vgpud->pid())));
    EXPECT_EQ(ctl({"list"}).status, 0);
}

class ClaimedVf : public BusFixture {
protected:
    ClaimedVf() { EXPECT_EQ(ctl({"create", "--name", "train", "--vram", "64M"}).status, 0); }
};

TEST_F(ClaimedVf, AreMadeRenewedRefusedAndReleased) {
    const auto claimed = ctl_json({"claim", "train", "--owner", "a", "--lease", "600"});
    EXPECT_EQ(claimed.at("generation"), 1);
    EXPECT_EQ(ctl_json({"claim", "train", "--owner", "a"}).at("generation"), 1);
    const auto refused = ctl({"claim", "train", "--owner", "b"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(
        refused.out,
        "vgpuctl: VGPU-310: gpu0/vf1 ('train') belongs to 'a' (claim 1). Let its owner release it, "
        "wait for the end of its lease, or use option 'force' if the operation has it.\n");
    EXPECT_THAT(ctl({"list"}).out, HasSubstr("  a\n"));
    EXPECT_EQ(ctl({"release", "train", "--owner", "a", "--generation", "1"}).out,
              "train: released\n");
    EXPECT_EQ(ctl_json({"claim", "train", "--owner", "b"}).at("generation"), 2);
    const auto late = ctl({"release", "train", "--owner", "a", "--generation", "1"});
    EXPECT_EQ(late.status, 1);
    EXPECT_THAT(late.out, HasSubstr("VGPU-311: gpu0/vf1 ('train'): claim 1 is not in force: the VF "
                                    "belongs to 'b' (claim 2)"));
    EXPECT_EQ(ctl_json({"show", "train"}).at("vf").at("owner"), "b");
    EXPECT_EQ(ctl({"claim", "train", "--owner", "a b"}).status, 2);
}

TEST_F(ClaimedVf, AnOwnerThatEndedIsReportedAsAnOrphan) {
    ASSERT_EQ(ctl({"claim", "train", "--owner", "a", "--lease", "1"}).status, 0);
    test::wait_for("the lease to be over", test::milliseconds(30'000), [&] {
        return ctl_json({"show", "train"}).at("vf").at("orphan") ==
               "the lease of 'a' (claim 1) is over";
    });
    EXPECT_EQ(ctl_json({"claim", "train", "--owner", "b"}).at("generation"), 2);
    EXPECT_EQ(ctl_json({"show", "train"}).at("vf").at("orphan"), "");
}

}  // namespace
}  // namespace vgpu::daemon
