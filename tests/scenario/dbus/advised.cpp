// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/advised.h"

#include <fstream>
#include <regex>

namespace vgpu::daemon::testing {

/// A command may itself have quoted words.
std::vector<std::string> commands_in(const std::string& text) {
    const std::regex command(
        "'((vgpuctl|vgpud|virsh|systemctl)( [^']*('[^' ]*'[^']*)*)?)'($|[ ;,.)\n])");
    std::vector<std::string> all;
    for (std::sregex_iterator at(text.begin(), text.end(), command), end; at != end; ++at)
        if (std::find(all.begin(), all.end(), (*at)[1].str()) == all.end())
            all.push_back((*at)[1].str());
    return all;
}

/// Writes a configuration of the current VFs and one more; returns its path.
std::string Advised::wanted_file() const {
    auto wanted = nlohmann::json::parse(ctl({"export"}).out);
    wanted["profiles"]["advised"] = {{"resources", {{"vram", "16MiB"}}}};
    wanted["configs"]["current"][0]["vfs"].push_back({{"profile", "advised"}, {"name", "advised"}});
    std::ofstream(directory.file("advised.json")) << wanted.dump();
    return directory.file("advised.json");
}

std::string Advised::filled(std::string command) const {
    command = std::regex_replace(command, std::regex("\\bGPU/vfN\\b"), "gpu0/vf1");
    command = std::regex_replace(command, std::regex("\\bGPU\\b"), "gpu0");
    command = std::regex_replace(command, std::regex("\\b(VF|TARGET)\\b"), "train");
    command = std::regex_replace(command, std::regex("\\bNEW\\b"), "other");
    const std::regex file("\\bFILE\\b");
    if (!std::regex_search(command, file)) return command;
    return std::regex_replace(command, file, wanted_file());
}

void Advised::restart_daemon() {
    vgpud->kill_now();
    start_daemon();
}

void Advised::restart_with_a_device_that_refuses() {
    vgpud->kill_now();
    server.stop();
    server.with([](FakePf& pf) {
        pf.restart();
        pf.refuses_resources = [](const vgpu_pf_provision&) { return true; };
    });
    server.start();
    start_daemon();
}

void Advised::type(const std::string& command) {
    if (command == "systemctl status vgpud") return;
    if (command == "systemctl stop vgpud") return vgpud->kill_now();
    if (command == "systemctl start vgpud") return restart_daemon();
    const std::string program = command.substr(0, command.find(' '));
    std::string line = test::program(program) + command.substr(program.size());
    if (program == "vgpud") {
        vgpud->kill_now();
        line.clear();
        for (const std::string& word : daemon_command()) line += "'" + word + "' ";
        line += command.substr(program.size());
    }
    const auto done = test::run({"/bin/sh", "-c", line}, {"VGPUCTL_BUS=" + address});
    // doctor looks at this host, too
    EXPECT_LE(done.status, command == "vgpuctl doctor" ? 1 : 0) << command << "\n" << done.out;
    if (program != "vgpud") return;
    restart_daemon();
    EXPECT_EQ(ctl({"create"}).status, 0) << "it takes changes again";
}

int Advised::do_as_told(const std::string& text) {
    const std::vector<std::string> commands = commands_in(text);
    for (const std::string& command : commands) type(filled(command));
    return static_cast<int>(commands.size());
}

}  // namespace vgpu::daemon::testing
