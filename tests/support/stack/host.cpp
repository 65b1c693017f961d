// SPDX-License-Identifier: MIT
#include "tests/support/stack/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace vgpu::test {
namespace {

constexpr const char* kBusConfig = R"(<!DOCTYPE busconfig PUBLIC
 "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>{}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
)";

}  // namespace

Host::Host(const TempDir& dir, HostOptions options) : options_(options), dir_(dir) {
    std::filesystem::create_directory(dir_.file("run"));
    std::filesystem::create_directory(dir_.file("state"));
    write_config();
    start_bus();
    start_vgpud();
}

void Host::write_config() const {
    const nlohmann::json config{
        {"state_dir", dir_.file("state")},
        {"run_dir", dir_.file("run")},
        {"programs", {{"softgpu", program("softgpu")}, {"vgpu_pf", program("vgpu-pf")}}},
        {"gpus",
         {{{"id", "gpu0"},
           {"quantum_us", options_.quantum_us},
           {"softgpu",
            {{"vfs", options_.vfs},
             {"vram_mb", options_.vram_mb},
             {"aperture_mb", options_.aperture_mb},
             {"cus", options_.cus},
             {"threads", options_.threads},
             {"args", {"--control"}}}}}}}};
    std::ofstream(dir_.file("vgpud.json")) << config.dump(2) << '\n';
}

void Host::start_bus() {
    bus_address_ = "unix:path=" + dir_.file("bus.sock");
    std::ofstream(dir_.file("bus.conf")) << fmt::format(kBusConfig, bus_address_);
    bus_.emplace(ChildProcess::Spec{"dbus-daemon",
                                    {"/usr/bin/dbus-daemon", "--nofork", "--print-address=1",
                                     "--config-file=" + dir_.file("bus.conf")},
                                    dir_.file("bus.log")});
    bus_->wait_for_output("unix:path=");
}

void Host::start_vgpud() {
    vgpud_.reset();
    const auto log = dir_.file("vgpud.log");
    ::unlink(log.c_str());
    vgpud_.emplace(ChildProcess::Spec{"vgpud",
                                      {program("vgpud"), "--bus", bus_address_, "--config",
                                       dir_.file("vgpud.json"), "--no-polkit"},
                                      log});
    vgpud_->wait_for_output("ready");
    wait_for_gpu();
}

void Host::wait_for_gpu() const {
    const Deadline deadline(milliseconds(10000));
    while (true) {
        const auto gpus = ctl_json({"list", "--gpus"}).at("gpus");
        const std::string state = gpus.empty() ? "absent" : gpus.front().at("state");
        if (state == "ok") return;
        if (deadline.passed())
            throw VfError(
                fmt::format("gpu0 did not come into service, it is '{}'; vgpud's log:\n{}", state,
                            vgpud_->output()));
        polling_pause();
    }
}

std::string Host::ctl(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{program("vgpuctl"), "--bus", bus_address_};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const auto done = run(argv);
    if (done.status != 0)
        throw VfError(fmt::format("vgpuctl {} ended with status {}:\n{}", arguments.front(),
                                  done.status, done.out));
    return done.out;
}

nlohmann::json Host::ctl_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    return nlohmann::json::parse(ctl(arguments));
}

std::string Host::vf_socket(std::uint32_t vf) const {
    return fmt::format("{}/vf{}.sock", gpu_dir(), vf);
}

std::string Host::log_of(const std::string& helper) const {
    std::ifstream in(gpu_dir() + "/" + helper + ".log");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace vgpu::test
