// SPDX-License-Identifier: MIT
//
// Documents as their readers use them: every file is written, every command is typed, what it
// prints is what the document says. "sudo reboot" takes everything away but the disk and starts it
// again.
#include "tests/scenario/dbus/bus_fixture.h"
#include "tests/support/doc_commands.h"
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <filesystem>
#include <fstream>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;
using testing::BusFixture;

struct GpuOfTheDocuments {
    test::GpuStack gpu{{.vfs = 16, .vram_mb = 1024, .aperture_mb = 256}};

    [[nodiscard]] std::string config() const {
        return fmt::format(
            R"([{{"id": "gpu0", "attach": {{"uapi": "{}", "vf_socket_dir": "{}"}}}}])",
            gpu.dir().file("uapi.sock"), gpu.dir().path().string());
    }
};

class Document : private GpuOfTheDocuments, public BusFixture {
protected:
    Document() : BusFixture(Setup{.gpus = config()}) {
        fs::create_directory(directory.file("bin"));
        fs::create_directory(directory.file("here"));
        std::ofstream(directory.file("bin/sudo")) << "#!/bin/sh\nexec \"$@\"\n";
        fs::permissions(directory.file("bin/sudo"), fs::perms::owner_all);
        wait_for_gpu_state("ok");
    }

    void follow(const std::string& document) {
        const auto steps = test::doc_steps_of(std::string(VGPU_DOCS_DIR) + "/" + document);
        int commands = 0;
        for (const test::DocStep& step : steps) {
            SCOPED_TRACE(fmt::format("{}:{}", document, step.line));
            if (step.kind == test::DocStep::Kind::File) {
                std::ofstream(directory.file("here/" + step.text)) << step.expected;
                continue;
            }
            ++commands;
            const std::string printed = type(step.text);
            ASSERT_TRUE(test::matches_doc(step.expected, printed))
                << "$ " << step.text << "\n--- the document says\n"
                << step.expected << "--- it prints\n"
                << printed;
        }
        EXPECT_GE(commands, 5) << "is the document still marked up for this test?";
    }

private:
    std::string type(const std::string& command) {
        if (command == "sudo reboot") {
            reboot();
            return "";
        }
        const std::string path =
            fmt::format("{}:{}:/usr/bin:/bin", directory.file("bin"),
                        fs::path(test::program("vgpuctl")).parent_path().string());
        return test::run({"/bin/sh", "-c",
                          fmt::format("cd {}; PATH={}; export PATH; {}", directory.file("here"),
                                      path, command)},
                         {"VGPUCTL_BUS=" + address})
            .out;
    }
    void reboot() {
        vgpud->kill_now();
        gpu.kill_pf();
        gpu.kill_softgpu();
        gpu.start_softgpu();
        gpu.start_pf();
        start_daemon();
        wait_for_gpu_state("ok");
    }
};

TEST_F(Document, ProfilesDoesWhatItSays) {
    follow("profiles.md");
}

}  // namespace
}  // namespace vgpu::daemon
