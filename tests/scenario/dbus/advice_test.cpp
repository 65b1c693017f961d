// SPDX-License-Identifier: MIT
//
// Tests the commands that texts of vgpud and vgpuctl recommend, except errors of errors.def
// (error_paths_test.cpp) and findings of doctor (remedies_test.cpp). Each test provokes a text and
// runs the commands in it, which must work. The style level fails for a command in a string without
// a row here or in tests/style/advice.py.
#include "cli/service.h"
#include "tests/scenario/dbus/advised.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <chrono>
#include <fstream>
#include <future>
#include <regex>

namespace vgpu::daemon {
namespace {

using testing::Advised;
using testing::commands_in;
using testing::FakePf;
using Words = std::vector<std::string>;

constexpr test::milliseconds kPrompt = std::chrono::seconds(20);

class Advice : public Advised {
public:
    // --- vgpuctl's own words
    std::string release_without_a_claim() { return ctl({"release", "train"}).out; }
    std::string set_nothing() { return ctl({"set", "train"}).out; }
    std::string no_such_verb() { return ctl({"shwo"}).out; }
    std::string no_such_option() { return ctl({"list", "--vvfs"}).out; }
    std::string empty_list() {
        EXPECT_EQ(ctl({"destroy", "train"}).status, 0);
        return ctl({"list", "--vfs"}).out;
    }
    std::string begun_apply() { return begin_apply({"--no-wait"}); }
    std::string object_that_is_gone() { return told_by("Pause", "/org/vgpu1/gpu/gpu0/vf/9"); }
    std::string method_that_is_not_there() { return told_by("Polish", "/org/vgpu1/gpu/gpu0/vf/1"); }
    std::string vgpud_that_ends_in_an_apply() {
        auto asked = std::async(std::launch::async, [this] { return begin_apply({}); });
        wait_for_release();
        vgpud->kill_now();
        start_daemon();
        return asked.get();
    }
    /// Kills vgpud but not the bus, on which do_as_told() starts the next vgpud.
    std::string hook_without_vgpud() {
        vgpud->kill_now();
        return hook("prepare").out;
    }

    // --- vgpud's
    std::string reset_of_a_quarantined_vf() {
        server.with([](FakePf& pf) { pf.set_state(1, VGPU_PF_VF_QUARANTINED); });
        wait_for_state("quarantined");
        return ctl({"reset", "train"}).out;
    }
    std::string forgotten_claims_in_the_way() {
        EXPECT_EQ(
            ctl({"claim", "train", "--owner", "slurm:7", "--lease", "1", "--persistent"}).status,
            0);
        EXPECT_EQ(ctl({"set", "train", "--weight", "7"}).status, 0);
        server.with([](FakePf& pf) { pf.vfs.at(1).attached = 1; });
        const auto ends = std::chrono::system_clock::now() + std::chrono::seconds(1);
        vgpud->kill_now();
        test::wait_for("the end of the lease", kPrompt,
                       [ends] { return std::chrono::system_clock::now() > ends; });
        start_daemon();
        return hook("prepare").out;
    }
    std::string vf_that_was_not_made() {
        restart_with_a_device_that_refuses();
        std::string text;
        test::wait_for("the GPU's words", kPrompt, [&] {
            text = ctl_json({"show", "gpu0"}).at("gpu").value("state_message", "");
            return !text.empty();
        });
        return text;
    }

protected:
    Advice() { static_cast<void>(ctl_json({"create", "--name", "train", "--vram", "64M"})); }

    void wait_for_state(const std::string& state) const {
        test::wait_for("train to be " + state, kPrompt, [&] {
            return ctl_json({"show", "train"}).at("vf").at("state") == state;
        });
    }
    void wait_for_release() const { wait_for_state("scrubbing"); }
    /// The output of an apply that waits for the scrub of train.
    std::string begin_apply(const Words& options) {
        server.with([](FakePf& pf) { pf.holds_scrubs = true; });
        const std::string file = directory.file("wanted.json");
        std::ofstream(file) << R"({"profiles": {"p": {"resources": {"vram": "128MiB"}}},
            "configs": {"x": [{"gpu": "gpu0", "vfs": [{"profile": "p", "name": "train"}]}]}})";
        Words words{"apply", file, "--yes"};
        words.insert(words.end(), options.begin(), options.end());
        return ctl(words).out;
    }
    [[nodiscard]] std::string told_by(const std::string& method, const std::string& path) const {
        const auto connection = connect();
        const auto object = sdbus::createProxy(*connection, "org.vgpu1", path);
        object->finishRegistration();
        try {
            object->callMethod(method)
                .onInterface("org.vgpu1.Vf")
                .withArguments(std::map<std::string, sdbus::Variant>{});
        } catch (const sdbus::Error& error) {
            return cli::ServiceError(error.getName(), error.getMessage()).what();
        }
        return "it was done";
    }
    [[nodiscard]] test::Completed hook(const std::string& operation) const {
        const std::string xml = directory.file("domain.xml");
        std::ofstream(xml) << "<domain><name>vm1</name>"
                              "<uuid>4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10</uuid><metadata><vgpu:vf "
                              "xmlns:vgpu='urn:vgpu:libvirt:1' name='train'/></metadata></domain>";
        return test::run({"/bin/sh", "-c",
                          fmt::format("'{}' --bus '{}' hook -- vm1 {} begin - <'{}'",
                                      test::program("vgpuctl"), address, operation, xml)});
    }
};

/// `commands` as they stand in the strings of `file`; the test runs them in the state that
/// `provoke` leaves.
struct Row {
    const char* file;
    Words commands;
    std::string (Advice::*provoke)();
};

const std::vector<Row>& rows() {
    static const std::vector<Row> kRows{
        {"cli/verb_release.cpp", {"vgpuctl show TARGET"}, &Advice::release_without_a_claim},
        {"cli/verb_set.cpp", {"vgpuctl set --help"}, &Advice::set_nothing},
        {"cli/app.cpp", {"vgpuctl help"}, &Advice::no_such_verb},
        {"cli/app.cpp", {}, &Advice::no_such_option},
        {"cli/verb_list.cpp", {"vgpuctl create"}, &Advice::empty_list},
        {"cli/verb_apply.cpp", {"vgpuctl jobs", "vgpuctl jobs --cancel {}"}, &Advice::begun_apply},
        {"cli/service.cpp", {"vgpuctl list", "vgpuctl jobs"}, &Advice::object_that_is_gone},
        {"cli/service.cpp", {"vgpuctl version"}, &Advice::method_that_is_not_there},
        {"cli/bus_service.cpp",
         {"vgpuctl jobs", "vgpuctl events"},
         &Advice::vgpud_that_ends_in_an_apply},
        {"cli/verb_hook.cpp", {"systemctl start vgpud"}, &Advice::hook_without_vgpud},
        {"daemon/service/gpu/requests.cpp",
         {"vgpuctl resume {} --clear-quarantine"},
         &Advice::reset_of_a_quarantined_vf},
        {"daemon/service/owners/assignment.cpp",
         {"vgpuctl release --orphans"},
         &Advice::forgotten_claims_in_the_way},
        {"daemon/service/gpu/gpu.cpp", {"vgpuctl doctor"}, &Advice::vf_that_was_not_made}};
    return kRows;
}

class Recommended : public Advice, public ::testing::WithParamInterface<Row> {};

/// True if `command` is `as_written` with its placeholders filled in.
bool is_of(const std::string& as_written, const std::string& command) {
    std::string pattern = std::regex_replace(as_written, std::regex(R"([.+*()|^$\[\]])"), "\\$&");
    pattern = std::regex_replace(pattern, std::regex(R"(\{\})"), ".+");
    return std::regex_match(command, std::regex(pattern));
}

TEST_P(Recommended, WorksInTheStateThatItIsRecommendedFor) {
    const Row& row = GetParam();
    const std::string text = (this->*row.provoke)();
    const Words commands = commands_in(text);
    for (const std::string& wanted : row.commands)
        EXPECT_TRUE(std::ranges::any_of(
            commands, [&wanted](const auto& command) { return is_of(wanted, command); }))
            << wanted << " in: " << text;
    EXPECT_GE(do_as_told(text), 1) << text;
}

INSTANTIATE_TEST_SUITE_P(Rows, Recommended, ::testing::ValuesIn(rows()));

}  // namespace
}  // namespace vgpu::daemon
