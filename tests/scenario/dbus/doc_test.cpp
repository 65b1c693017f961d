// SPDX-License-Identifier: MIT
//
// Follows documents as their readers do. Every file is written. Every command is run, must print
// what the document says, and must end with 0. Packages are looked up and not installed. "systemctl
// start vgpud" starts vgpud. "sudo reboot" ends all programs, keeps only the disk and starts the
// programs again. While the document resizes a VF, two guests compute on others.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/scenario/dbus/neighbours.h"
#include "tests/support/doc_commands.h"
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <regex>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
using testing::BusFixture;
using testing::Neighbours;

/// The GPU of daemon/data/vgpud.json.
struct GpuOfTheDocuments {
    test::GpuStack gpu{{.vfs = 16, .vram_mb = 2048, .aperture_mb = 256}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            gpu.dir().file("uapi.sock"), gpu.dir().path().string());
    }
};

/// Succeeds only if debian/control has every package that the command installs.
test::Completed install(const std::string& command) {
    std::ifstream file(VGPU_SOURCE_DIR "/debian/control");
    const std::string control(std::istreambuf_iterator<char>(file), {});
    const std::regex package("/([a-z-]+)_\\*\\.deb");
    int count = 0;
    for (std::sregex_iterator at(command.begin(), command.end(), package), end; at != end; ++at) {
        ++count;
        if (control.find("\nPackage: " + (*at)[1].str() + "\n") == std::string::npos)
            return {.status = 100, .out = "no package " + (*at)[1].str() + "\n"};
    }
    return {.status = count > 0 ? 0 : 100, .out = "...\n"};
}

class Document : private GpuOfTheDocuments, public BusFixture {
protected:
    Document() : BusFixture(Setup{.gpus = config(), .start = Setup::Start::Later}) {
        fs::create_directory(directory.file("bin"));
        fs::create_directory(directory.file("here"));
        std::ofstream(directory.file("bin/sudo")) << "#!/bin/sh\nexec \"$@\"\n";
        fs::permissions(directory.file("bin/sudo"), fs::perms::owner_all);
    }

    /// Functions that replace the execution of a command.
    using Meanwhile = std::map<std::string, std::function<test::Completed(const std::string&)>>;

    void follow(const std::string& document, const Meanwhile& meanwhile) {
        const auto steps = test::doc_steps_of(std::string(VGPU_DOCS_DIR) + "/" + document);
        std::size_t met = 0;
        for (const test::DocStep& step : steps) {
            SCOPED_TRACE(fmt::format("{}:{}", document, step.line));
            if (step.kind == test::DocStep::Kind::File) {
                std::ofstream(directory.file("here/" + step.text)) << step.expected;
                continue;
            }
            const auto special = meanwhile.find(step.text);
            if (special != meanwhile.end()) ++met;
            const test::Completed done =
                special != meanwhile.end() ? special->second(step.text) : type(step.text);
            ASSERT_EQ(done.status, 0) << "$ " << step.text << "\n" << done.out;
            ASSERT_TRUE(test::matches_doc(step.expected, done.out))
                << "$ " << step.text << "\n--- the document says\n"
                << step.expected << "--- it prints\n"
                << done.out;
        }
        EXPECT_EQ(met, meanwhile.size()) << "is the document still marked up for this test?";
    }

    [[nodiscard]] test::Completed type(const std::string& command) const {
        const std::string path =
            fmt::format("{}:{}:/usr/bin:/bin", directory.file("bin"),
                        fs::path(test::program("vgpuctl")).parent_path().string());
        return test::run({"/bin/bash", "-c",
                          fmt::format("set -o pipefail; cd {}; PATH={}; export PATH; {}",
                                      directory.file("here"), path, command)},
                         {"VGPUCTL_BUS=" + address});
    }
    test::Completed start() {
        start_daemon();
        wait_for_gpu_state("ok");
        return {};
    }
    test::Completed reboot() {
        vgpud->kill_now();
        gpu.kill_pf();
        gpu.kill_softgpu();
        gpu.start_softgpu();
        gpu.start_pf();
        return start();
    }
    /// Types the command while web-1 and train-2 compute, 1 to 3 by their weights.
    test::Completed type_beside_neighbours(const std::string& command) {
        Neighbours neighbours([this] { return ctl_json({"list"}).at("vfs"); },
                              {"web-1", "train-2"});
        const test::Completed done = type(command);
        neighbours.compute();
        EXPECT_NEAR(neighbours.share_of_first(), 0.25, 0.02);
        EXPECT_EQ(neighbours.stop(), "");
        EXPECT_EQ(ctl_json({"show", "train-1"}).at("vf").at("vram_bytes"), 192u << 20);
        return done;
    }
};

TEST_F(Document, ProfilesDoesWhatItSays) {
    follow("profiles.md",
           {{"sudo apt-get install -y \"$PACKAGES\"/vgpu_*.deb \"$PACKAGES\"/vgpu-softgpu_*.deb",
             install},
            {"sudo systemctl start vgpud", [this](const auto&) { return start(); }},
            {"sudo vgpuctl apply vgpu.json --yes",
             [this](const std::string& command) { return type_beside_neighbours(command); }},
            {"sudo reboot", [this](const auto&) { return reboot(); }}});
}

}  // namespace
}  // namespace vgpu::daemon
