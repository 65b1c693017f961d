// SPDX-License-Identifier: MIT
//
// What docs/dbus-api.md promises to orchestrators: a client that reads the objects once and then
// only listens knows every object, every signalled property and the end of every job.
#include "daemon/exporter/bus_values.h"
#include "tests/scenario/dbus/bus_fixture.h"

#include <gmock/gmock.h>
#include <fstream>
#include <regex>
#include <set>

namespace vgpu::daemon {
namespace {

using exporter::Dict;
using testing::BusFixture;
using testing::FakePf;
/// Properties by path.
using Known = std::map<std::string, exporter::Properties>;
using Interfaces = std::map<std::string, Dict>;

constexpr auto kPrompt = test::milliseconds(20'000);

/// Properties of an interface with EmitsChangedSignal=false.
std::set<std::string> silent_properties(const std::string& interface) {
    std::ifstream file(std::string(VGPU_SOURCE_DIR) + "/schemas/dbus/" + interface + ".xml");
    const std::string xml(std::istreambuf_iterator<char>(file), {});
    const std::regex silent(
        R"re(<property name="(\w+)"[^>]*>\s*<annotation[^>]*value="false"/>)re");
    std::set<std::string> names;
    for (std::sregex_iterator at(xml.begin(), xml.end(), silent), end; at != end; ++at)
        names.insert((*at)[1]);
    return names;
}

/// The members that are signalled. A switch between ready and running is not.
exporter::Properties signalled(const std::string& interface, const Dict& dict) {
    static std::map<std::string, std::set<std::string>> silent;
    if (!silent.contains(interface)) silent[interface] = silent_properties(interface);
    exporter::Properties properties;
    for (auto& [name, value] : exporter::properties_of(dict)) {
        if (silent.at(interface).contains(name.substr(0, name.find('.')))) continue;
        const bool is_running = name == "State" && value == exporter::Value{std::string("running")};
        properties[name] = is_running && interface == "org.vgpu1.Vf" ? std::string("ready") : value;
    }
    return properties;
}

/// A client that reads all objects once and then only listens. Signals are handled within
/// is_true().
class Mirror {
public:
    /// Listens first, so that nothing is lost before the objects are taken.
    explicit Mirror(std::unique_ptr<sdbus::IConnection> bus) : bus_(std::move(bus)) {
        listen("InterfacesAdded", [this](sdbus::Message& message) {
            sdbus::ObjectPath path;
            Interfaces interfaces;
            message >> path >> interfaces;
            add(known_, path, interfaces);
        });
        listen("InterfacesRemoved", [this](sdbus::Message& message) {
            sdbus::ObjectPath path;
            message >> path;
            known_.erase(path);
        });
        listen("PropertiesChanged", [this](sdbus::Message& message) {
            const std::string path = message.getPath();
            std::string interface;
            Dict changed;
            message >> interface >> changed;
            if (!known_.contains(path)) return;  // the object was removed before
            for (auto& [name, value] : signalled(interface, changed)) known_[path][name] = value;
        });
        listen("JobRemoved", [this](sdbus::Message& message) {
            std::uint32_t id = 0;
            sdbus::ObjectPath job;
            std::string result;
            message >> id >> job >> result;
            ends_[job] = result;
            if (known_.contains(job)) at_end_[job] = known_.at(job);
        });
        known_ = taken();
    }

    [[nodiscard]] Known taken() const {
        std::map<sdbus::ObjectPath, Interfaces> objects;
        sdbus::createProxy(*bus_, "org.vgpu1", "/org/vgpu1")
            ->callMethod("GetManagedObjects")
            .onInterface("org.freedesktop.DBus.ObjectManager")
            .storeResultsTo(objects);
        Known all;
        for (const auto& [path, interfaces] : objects) add(all, path, interfaces);
        return all;
    }
    /// Handles received signals; true if the client knows all that vgpud now answers.
    [[nodiscard]] bool is_true() {
        const Known truth = taken();
        handle();
        return known_ == truth;
    }
    void handle() {
        while (bus_->processPendingRequest()) {
        }
    }
    [[nodiscard]] const Known& known() const { return known_; }
    [[nodiscard]] const std::map<std::string, std::string>& ends() const { return ends_; }
    /// The value of a job's property `name` when the end of the job was signalled.
    [[nodiscard]] std::string at_end(const std::string& job, const std::string& name) const {
        return std::get<std::string>(at_end_.at(job).at(name));
    }

private:
    void listen(const std::string& member, sdbus::message_handler handler) {
        bus_->addMatch("type='signal',sender='org.vgpu1',member='" + member + "'",
                       std::move(handler), sdbus::floating_slot);
    }
    static void add(Known& to, const std::string& path, const Interfaces& interfaces) {
        for (const auto& [interface, dict] : interfaces)
            if (interface.starts_with("org.vgpu1.")) to[path] = signalled(interface, dict);
    }

    std::unique_ptr<sdbus::IConnection> bus_;
    Known known_, at_end_;
    std::map<std::string, std::string> ends_;
};

class Follower : public BusFixture {
protected:
    void expect_known(const std::string& after) {
        test::wait_for("the client to know all after " + after, kPrompt,
                       [this] { return mirror.is_true(); });
    }
    void expect_known_after(const std::vector<std::string>& words) {
        const auto done = ctl(words);
        EXPECT_EQ(done.status, 0) << done.out;
        expect_known(words.front());
    }
    [[nodiscard]] std::string begin(const std::string& method) {
        return begin_job(*connect(), "/org/vgpu1/gpu/gpu0/vf/1", method);
    }
    void wait_for_end(const std::string& job) {
        test::wait_for("the end of " + job, kPrompt, [&] {
            mirror.handle();
            return mirror.ends().contains(job);
        });
    }

    Mirror mirror{connect()};
};

TEST_F(Follower, KnowsAllWithoutAskingAgain) {
    const std::string vf = "/org/vgpu1/gpu/gpu0/vf/1";
    expect_known("the start");
    expect_known_after({"create", "--name", "train", "--vram", "64M"});
    ASSERT_TRUE(mirror.known().contains(vf));
    expect_known_after({"set", "train", "--weight", "300", "--description", "nightly"});
    EXPECT_EQ(std::get<std::uint64_t>(mirror.known().at(vf).at("Weight")), 300u);
    expect_known_after({"claim", "train", "--owner", "slurm:7", "--lease", "3600"});
    expect_known_after({"pause", "train"});
    EXPECT_EQ(std::get<std::string>(mirror.known().at(vf).at("State")), "paused");
    expect_known_after({"resume", "train"});
    expect_known_after({"reset", "train", "--force"});
    expect_known_after({"release", "train", "--owner", "slurm:7", "--generation", "1"});
    server.with([](FakePf& pf) {
        pf.vfs.at(1).attached = 1;
        pf.push(VGPU_PF_EVENT_ATTACH, 1, 1);
    });
    expect_known("a client opened the VF");
    expect_known_after({"set", "gpu0", "--max-gap-ms", "90"});
    expect_known_after({"apply", "--auto", "2", "--yes", "--force"});
    server.stop();
    wait_for_gpu_state("pf-lost");
    expect_known("the PF core was lost");
    server.start();
    wait_for_gpu_state("ok");
    expect_known("it was back");
    const auto left = ctl_json({"list", "--vfs"});
    for (const auto& vf_left : left.at("vfs"))
        expect_known_after({"destroy", vf_left.at("target"), "--force"});
    std::size_t jobs = 0;
    for (const auto& [path, properties] : mirror.known()) {
        if (!path.starts_with("/org/vgpu1/job/")) continue;
        ++jobs;
        EXPECT_EQ(mirror.ends().at(path), std::get<std::string>(properties.at("State"))) << path;
    }
    EXPECT_EQ(jobs, 5u) << "resume, reset, apply, two times destroy";
}

TEST_F(Follower, KnowsWhyAJobFailedWhenItsEndIsSignalled) {
    ASSERT_EQ(ctl({"create", "--vram", "64M"}).status, 0);
    ASSERT_EQ(ctl({"claim", "gpu0/vf1", "--owner", "slurm:7"}).status, 0);
    const std::string job = begin("Destroy");
    wait_for_end(job);
    EXPECT_EQ(mirror.ends().at(job), "failed");
    EXPECT_EQ(mirror.at_end(job, "ErrorName"), "org.vgpu1.Error.Claimed");
    EXPECT_THAT(mirror.at_end(job, "Error"), ::testing::HasSubstr("slurm:7"));
}

TEST_F(Follower, MayComeAfterTheEndOfAJobAndReadsIt) {
    ASSERT_EQ(ctl({"create", "--vram", "64M"}).status, 0);
    const std::string job = begin("Destroy");
    wait_for_end(job);
    const Mirror late(connect());
    EXPECT_EQ(std::get<std::string>(late.known().at(job).at("State")), "done");
}

}  // namespace
}  // namespace vgpu::daemon
