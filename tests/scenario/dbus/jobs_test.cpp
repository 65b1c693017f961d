// SPDX-License-Identifier: MIT
//
// org.vgpu1.Job on the bus, over a fake PF core whose scrubs end when the test says so.
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <unistd.h>
#include <csignal>
#include <fstream>
#include <future>
#include <mutex>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using ::testing::ElementsAre;
using testing::FakePf;
using ::testing::HasSubstr;
using Dict = std::map<std::string, sdbus::Variant>;

constexpr const char* kManager = "org.vgpu1.Manager";
constexpr const char* kVf = "/org/vgpu1/gpu/gpu0/vf/1";

/// A configuration with one VF "a" of `vram`.
std::string one_vf(const std::string& vram) {
    return R"({"profiles": {"p": {"resources": {"vram": ")" + vram +
           R"("}}}, "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "a"}]}]}})";
}

/// Records the manager's signals about jobs, in order.
class JobWatch {
public:
    explicit JobWatch(std::unique_ptr<sdbus::IConnection>&& connection)
        : proxy_(sdbus::createProxy(std::move(connection), "org.vgpu1", "/org/vgpu1")) {
        proxy_->uponSignal("JobAdded")
            .onInterface(kManager)
            .call([this](const std::uint32_t&, const sdbus::ObjectPath& job) {
                note("added " + job);
            });
        proxy_->uponSignal("JobRemoved")
            .onInterface(kManager)
            .call([this](const std::uint32_t&, const sdbus::ObjectPath& job,
                         const std::string& result) { note("removed " + job + " " + result); });
        proxy_->finishRegistration();
    }
    std::vector<std::string> wait_for(std::size_t count) {
        test::wait_for("signals of jobs", test::milliseconds(20'000), [&] {
            const std::scoped_lock lock(mutex_);
            return seen_.size() >= count;
        });
        const std::scoped_lock lock(mutex_);
        return seen_;
    }

private:
    void note(std::string what) {
        const std::scoped_lock lock(mutex_);
        seen_.push_back(std::move(what));
    }

    std::mutex mutex_;
    std::vector<std::string> seen_;
    std::unique_ptr<sdbus::IProxy> proxy_;
};

class JobsOnTheBus : public BusFixture {
protected:
    JobsOnTheBus() {
        std::ofstream(directory.file("64.json")) << one_vf("64MiB");
        std::ofstream(directory.file("128.json")) << one_vf("128MiB");
        EXPECT_EQ(ctl({"apply", directory.file("64.json")}).status, 0);
        server.with([](FakePf& pf) { pf.holds_scrubs = true; });
    }

    /// Starts an apply over a new connection, which is then closed; returns the job.
    std::string apply(const std::string& config, const Dict& options = {}) {
        const auto connection = connect();
        const auto manager = sdbus::createProxy(*connection, "org.vgpu1", "/org/vgpu1");
        manager->finishRegistration();
        sdbus::ObjectPath job;
        manager->callMethod("Apply")
            .onInterface(kManager)
            .withArguments(config, options)
            .storeResultsTo(job);
        return job;
    }
    std::string start(const std::string& method, const std::string& vf = kVf,
                      const Dict& options = {}) {
        return begin_job(*connect(), vf, method, options);
    }
    template <typename T> T property(const std::string& job, const std::string& name) {
        const auto connection = connect();
        const auto proxy = sdbus::createProxy(*connection, "org.vgpu1", job);
        proxy->finishRegistration();
        return proxy->getProperty(name).onInterface("org.vgpu1.Job").get<T>();
    }
    void wait_for_property(const std::string& job, const std::string& name,
                           const std::string& value) {
        test::wait_for(job + " to be " + value, test::milliseconds(20'000), [&] {
            try {
                return property<std::string>(job, name) == value;
            } catch (const sdbus::Error&) {
                return false;  // the job is not there yet
            }
        });
    }
    void wait_for_state(const std::string& job, const std::string& state) {
        wait_for_property(job, "State", state);
    }
    void wait_for_step(const std::string& job, const std::string& step) {
        wait_for_property(job, "Step", step);
    }
    void end_scrub() {
        server.with([](FakePf& pf) {
            pf.holds_scrubs = false;
            pf.finish_scrub(1);
        });
    }
    void cancel(const std::string& job) {
        const auto connection = connect();
        const auto proxy = sdbus::createProxy(*connection, "org.vgpu1", job);
        proxy->finishRegistration();
        proxy->callMethod("Cancel").onInterface("org.vgpu1.Job").withArguments(Dict{});
    }
    /// Interrupts vgpuctl `words`, which waits for job 2; returns its output. vgpuctl ends by
    /// SIGINT, so that a loop of a shell ends, too.
    std::string interrupted(const std::vector<std::string>& words) {
        std::vector<std::string> command{test::program("vgpuctl"), "--bus", address};
        command.insert(command.end(), words.begin(), words.end());
        test::ChildProcess caller({"vgpuctl", command, directory.file("vgpuctl.log")});
        wait_for_state("/org/vgpu1/job/2", "running");
        ::usleep(200'000);  // the signal is for the wait, not for the call before
        caller.signal(SIGINT);
        EXPECT_EQ(caller.wait_exit(), 128 + SIGINT);
        return caller.output();
    }
    [[nodiscard]] std::uint64_t vram_of_a() const {
        return ctl_json({"show", "a"}).at("vf").at("vram_bytes");
    }
};

TEST_F(JobsOnTheBus, AreSignalledAndOutliveTheirCaller) {
    JobWatch watch(connect());
    const std::string job = apply(one_vf("128MiB"));
    EXPECT_EQ(job, "/org/vgpu1/job/2");
    wait_for_step(job, "resize gpu0/vf1 'a'");
    EXPECT_EQ(property<std::string>(job, "State"), "running");
    EXPECT_EQ(property<std::string>(job, "Kind"), "apply");
    EXPECT_EQ(property<double>(job, "Progress"), 0.0);
    EXPECT_THAT(property<std::string>(job, "Plan"), HasSubstr("\"vf-restart\""));
    end_scrub();
    EXPECT_THAT(watch.wait_for(2), ElementsAre("added " + job, "removed " + job + " done"));
    EXPECT_EQ(property<std::string>(job, "State"), "done");
    EXPECT_EQ(property<double>(job, "Progress"), 1.0);
    EXPECT_EQ(vram_of_a(), 128 * FakePf::kMiB);
}

TEST_F(JobsOnTheBus, CancelTakesBackWhatWasDone) {
    const std::string job = apply(one_vf("128MiB"));
    wait_for_step(job, "resize gpu0/vf1 'a'");
    cancel(job);
    end_scrub();
    wait_for_state(job, "cancelled");
    EXPECT_EQ(property<std::string>(job, "ErrorName"), "org.vgpu1.Error.Cancelled");
    EXPECT_THAT(property<std::string>(job, "Error"),
                HasSubstr("everything is as before, but the VRAM of 'a' is empty"));
    EXPECT_EQ(vram_of_a(), 64 * FakePf::kMiB);
    EXPECT_THROW(cancel(job), sdbus::Error);
}

TEST_F(JobsOnTheBus, AreListedAndCancelledByVgpuctl) {
    const std::string job = apply(one_vf("128MiB"));
    wait_for_step(job, "resize gpu0/vf1 'a'");
    const auto jobs = ctl_json({"jobs"}).at("jobs");
    ASSERT_EQ(jobs.size(), 2u);
    EXPECT_EQ(jobs.at(0).at("state"), "done");
    EXPECT_EQ(jobs.at(1).at("path"), job);
    EXPECT_EQ(jobs.at(1).at("id"), 2);
    EXPECT_EQ(jobs.at(1).at("state"), "running");
    EXPECT_EQ(jobs.at(1).at("step"), "resize gpu0/vf1 'a'");
    const auto unknown = ctl({"jobs", "--cancel", "9"});
    EXPECT_EQ(unknown.status, 3);
    EXPECT_THAT(unknown.out, HasSubstr("there is no job 9; jobs: 1, 2"));
    EXPECT_EQ(ctl({"jobs", "--cancel", "2"}).status, 0);
    end_scrub();
    wait_for_state(job, "cancelled");
    const auto over = ctl({"jobs", "--cancel", "2"});
    EXPECT_EQ(over.status, 1);
    EXPECT_THAT(over.out, HasSubstr("job 2 is over: it is cancelled"));
}

TEST_F(JobsOnTheBus, WaitForEachOtherAndKeepOthersOffTheirGpu) {
    const std::string first = apply(one_vf("128MiB"));
    const std::string second = apply(one_vf("64MiB"));
    wait_for_step(first, "resize gpu0/vf1 'a'");
    EXPECT_EQ(property<std::string>(second, "State"), "waiting");
    const auto busy = ctl({"set", "a", "--weight", "7"});
    EXPECT_EQ(busy.status, 1);
    EXPECT_THAT(busy.out, HasSubstr("VGPU-307: gpu0 is being changed by job 2 (apply 'x')"));
    EXPECT_EQ(ctl({"list"}).status, 0) << "looking is always possible";
    end_scrub();
    wait_for_state(second, "done");
    EXPECT_EQ(vram_of_a(), 64 * FakePf::kMiB);
}

TEST_F(JobsOnTheBus, VgpudKilledInTheMiddleLeavesTheRestToTheNextPlan) {
    auto caller = std::async(std::launch::async, [this] {
        return ctl({"apply", directory.file("128.json"), "--yes"});
    });
    wait_for_step("/org/vgpu1/job/2", "resize gpu0/vf1 'a'");
    // the step is announced before it is done
    test::wait_for("the VF to be released", test::milliseconds(20'000), [&] {
        return ctl_json({"show", "a"}).at("vf").at("state") == "scrubbing";
    });
    vgpud->kill_now();
    const auto told = caller.get();
    EXPECT_EQ(told.status, 5) << told.out;
    server.with([](FakePf& pf) {
        pf.holds_scrubs = false;
        pf.is_scrubbed.insert(1);  // its event was for the dead daemon
    });
    start_daemon();
    test::wait_for("the VF to come back", test::milliseconds(20'000), [&] {
        return ctl_json({"show", "a"}).at("vf").at("state") == "provisioned";
    });
    EXPECT_EQ(vram_of_a(), 128 * FakePf::kMiB) << "it had been released: it is new";
    EXPECT_EQ(ctl({"assert", directory.file("128.json")}).status, 0);
}

/// The recovery has the number that the apply had.
TEST_F(JobsOnTheBus, OfAVgpudThatHasEndedAreNotTakenForAnothers) {
    vgpud->kill_now();
    start_daemon();
    auto caller = std::async(std::launch::async, [this] {
        return ctl({"apply", directory.file("128.json"), "--yes"});
    });
    wait_for_step("/org/vgpu1/job/1", "resize gpu0/vf1 'a'");
    vgpud->kill_now();
    start_daemon();
    const auto told = caller.get();
    EXPECT_EQ(told.status, 5) << told.out;
    EXPECT_THAT(told.out, HasSubstr("vgpud ended before the job"));
    EXPECT_EQ(property<std::string>("/org/vgpu1/job/1", "Kind"), "recovery");
}

TEST_F(JobsOnTheBus, ABusThatGoesEndsTheWaitWithAWordOfTheJob) {
    auto caller = std::async(std::launch::async, [this] {
        return ctl({"apply", directory.file("128.json"), "--yes"});
    });
    wait_for_step("/org/vgpu1/job/2", "resize gpu0/vf1 'a'");
    bus->kill_now();
    const auto told = caller.get();
    EXPECT_EQ(told.status, 5) << told.out;
    EXPECT_THAT(told.out,
                HasSubstr("the bus is gone; the job continues, or the next vgpud finishes it"));
}

TEST_F(JobsOnTheBus, OthersMayPlanButNotApply) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
    if (ctl_as_nobody({"--help"}).status != 0)
        GTEST_SKIP() << "nobody cannot execute programs of this build directory";
    EXPECT_EQ(ctl_as_nobody({"plan", "--auto", "4"}).status, 0);
    EXPECT_EQ(ctl_as_nobody({"export"}).status, 0);
    const auto refused = ctl_as_nobody({"apply", "--auto", "4", "--yes"});
    EXPECT_EQ(refused.status, 4) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("VGPU-401: org.vgpu1.provision"));
}

TEST_F(JobsOnTheBus, MistakesOfTheCallerMakeNoJob) {
    EXPECT_THROW(apply("{"), sdbus::Error);
    EXPECT_THROW(apply(one_vf("64MiB"), {{"label", sdbus::Variant{std::string("y")}}}),
                 sdbus::Error);
    EXPECT_THROW(apply(std::string((1u << 20) + 1, ' ')), sdbus::Error);
    EXPECT_THROW(property<std::string>("/org/vgpu1/job/2", "State"), sdbus::Error);
}

// --- requests of one VF as jobs

TEST_F(JobsOnTheBus, ADestroyIsOverWhenTheVramIsScrubbedWhoeverStays) {
    JobWatch watch(connect());
    const std::string job = start("Destroy");
    EXPECT_EQ(property<std::string>(job, "Kind"), "destroy");
    wait_for_state(job, "running");
    EXPECT_EQ(property<std::string>(job, "Step"), "gpu0/vf1: its VRAM is scrubbed");
    EXPECT_FALSE(property<bool>(job, "CanCancel"));
    try {
        cancel(job);
        ADD_FAILURE() << "a scrub cannot be taken back";
    } catch (const sdbus::Error& error) {
        EXPECT_EQ(error.getName(), "org.vgpu1.Error.WrongState");
    }
    end_scrub();
    EXPECT_THAT(watch.wait_for(2), ElementsAre("added " + job, "removed " + job + " done"));
    EXPECT_EQ(property<double>(job, "Progress"), 1.0);
    EXPECT_TRUE(property<Dict>(job, "Report").empty()) << "it asked no agent";
    EXPECT_EQ(ctl({"show", "a"}).status, 3);
}

TEST_F(JobsOnTheBus, OfOneVfGoOnBesideAnApply) {
    EXPECT_EQ(ctl({"create", "--name", "other", "--vram", "64M"}).status, 0);
    const std::string destroy = start("Destroy", "/org/vgpu1/gpu/gpu0/vf/2");
    wait_for_state(apply(one_vf("64MiB"), {{"dry_run", sdbus::Variant{true}}}), "done");
    wait_for_state(destroy, "running");
    server.with([](FakePf& pf) { pf.finish_scrub(2); });
    wait_for_state(destroy, "done");
}

TEST_F(JobsOnTheBus, WhatIsRefusedAtOnceIsNoJob) {
    const auto refusal = [this](const std::string& method, const Dict& options) -> std::string {
        try {
            return start(method, kVf, options);
        } catch (const sdbus::Error& error) {
            return error.getName() + ": " + error.getMessage();
        }
    };
    EXPECT_THAT(refusal("Destroy", {{"forse", sdbus::Variant{true}}}), HasSubstr("UnknownOption"));
    EXPECT_THAT(refusal("SelfTest", {}), HasSubstr("NoAgent"));
    EXPECT_THAT(refusal("SelfTest", {{"timeout_ms", sdbus::Variant{1u}}}), HasSubstr("OutOfRange"));
    EXPECT_EQ(ctl({"show", "a"}).status, 0);
}

TEST_F(JobsOnTheBus, OptionsWithoutEffectAreRefused) {
    const std::string force = "force", owner = "owner";
    const Dict with_force{{force, sdbus::Variant{true}}}, with_owner{{owner, sdbus::Variant{"a"}}};
    const auto refusal = [this](const std::string& method, const Dict& options) -> std::string {
        const auto connection = connect();
        const auto proxy = sdbus::createProxy(*connection, "org.vgpu1", kVf);
        proxy->finishRegistration();
        try {
            proxy->callMethod(method).onInterface("org.vgpu1.Vf").withArguments(options);
        } catch (const sdbus::Error& error) {
            return error.getName();
        }
        return "none";
    };
    const std::string unknown = "org.vgpu1.Error.UnknownOption";
    for (const char* method : {"Pause", "Stop", "Resume", "ClearQuarantine"})
        EXPECT_EQ(refusal(method, with_owner), unknown) << method;
    for (const char* method : {"Resume", "ClearQuarantine"})
        EXPECT_EQ(refusal(method, with_force), unknown) << method;
    EXPECT_EQ(refusal("Destroy", {{"no_wait", sdbus::Variant{true}}}), unknown);
}

TEST_F(JobsOnTheBus, ARefusedRequestIsAFailedJobAndNoWaitReportsIt) {
    EXPECT_EQ(ctl({"claim", "a", "--owner", "slurm:7"}).status, 0);
    const std::string job = start("Destroy");
    wait_for_state(job, "failed");
    EXPECT_EQ(property<std::string>(job, "ErrorName"), "org.vgpu1.Error.Claimed");
    for (const char* option : {"--no-wait", "--json"}) {
        const auto refused = ctl({"destroy", "a", option});
        EXPECT_EQ(refused.status, 1) << refused.out;
        EXPECT_THAT(refused.out, HasSubstr("VGPU-310"));
    }
}

TEST_F(JobsOnTheBus, ADestroyThatDoesNotWaitEndsBeforeTheScrub) {
    EXPECT_EQ(ctl({"destroy", "a", "--no-wait"}).out, "a: being scrubbed\n");
    EXPECT_EQ(ctl_json({"show", "a"}).at("vf").at("state"), "scrubbing");
    end_scrub();
}

TEST_F(JobsOnTheBus, AnInterruptedWaitSaysThatTheJobContinues) {
    EXPECT_THAT(interrupted({"destroy", "a"}),
                HasSubstr("vgpuctl: job 2 (destroy) continues; 'vgpuctl jobs' shows it; it cannot "
                          "be cancelled\n"));
    EXPECT_THAT(ctl({"jobs"}).out, HasSubstr("2  destroy  running"));
    end_scrub();
    wait_for_state("/org/vgpu1/job/2", "done");
}

TEST_F(JobsOnTheBus, AnInterruptedApplyIsCancelledAsVgpuctlSays) {
    EXPECT_THAT(interrupted({"apply", directory.file("128.json"), "--yes"}),
                HasSubstr("vgpuctl: job 2 (apply) continues; 'vgpuctl jobs --cancel 2' cancels "
                          "it\n"));
    EXPECT_EQ(ctl({"jobs", "--cancel", "2"}).status, 0);
    end_scrub();
    wait_for_state("/org/vgpu1/job/2", "cancelled");
}

TEST_F(JobsOnTheBus, AWaitBeyondTheTimeoutEndsAndTheJobContinues) {
    const auto late = ctl({"--timeout", "1", "destroy", "a"});
    EXPECT_EQ(late.status, 5);
    EXPECT_THAT(late.out, HasSubstr("the job has not ended in time; it continues"));
    end_scrub();
    wait_for_state("/org/vgpu1/job/2", "done");
}

}  // namespace
}  // namespace vgpu::daemon
