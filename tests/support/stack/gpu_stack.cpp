// SPDX-License-Identifier: MIT
#include "tests/support/stack/gpu_stack.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <utility>

#include "tests/support/unix_socket.h"

namespace vgpu::test {
namespace {

UniqueFd connect_stream(const std::string& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (const int error = connect_unix(fd.get(), path); error != 0)
        throw VfError("connect to " + path, error);
    return fd;
}

std::string read_line(int fd, milliseconds limit) {
    const Deadline deadline(limit);
    std::string line;
    while (line.find('\n') == std::string::npos) {
        pollfd ready{fd, POLLIN, 0};
        if (::poll(&ready, 1, deadline.left_ms()) <= 0) throw VfError("control socket: no answer");
        std::array<char, 4096> part;
        const auto got = ::read(fd, part.data(), part.size());
        if (got <= 0) throw VfError("control socket: closed");
        line.append(part.data(), static_cast<std::size_t>(got));
    }
    return line;
}

std::mutex refusals_mutex;
std::vector<std::string> refusals;

void note_refusals(const std::string& log) {
    const std::lock_guard lock(refusals_mutex);
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);)
        if (line.find("refused system call") != std::string::npos) refusals.push_back(line);
}

}  // namespace

std::vector<std::string> take_refusals() {
    const std::lock_guard lock(refusals_mutex);
    return std::exchange(refusals, {});
}

GpuStack::~GpuStack() {
    pf_process_.reset();
    softgpu_.reset();
    for (const char* log : {"vgpu-pf.log", "softgpu.log"}) note_refusals(dir_.file(log));
}

GpuStack::GpuStack(GpuOptions options) : options_(options) {
    start_softgpu();
    start_pf();
}

void GpuStack::start_softgpu() {
    std::vector<std::string> argv{program("softgpu"),
                                  "--name=gpu0",
                                  fmt::format("--vfs={}", options_.vfs),
                                  fmt::format("--vram-mb={}", options_.vram_mb),
                                  fmt::format("--aperture-mb={}", options_.aperture_mb),
                                  fmt::format("--cus={}", options_.cus),
                                  fmt::format("--threads={}", options_.threads),
                                  fmt::format("--idle-grace-us={}", options_.idle_grace_us),
                                  "--socket-dir=" + dir_.path().string(),
                                  "--control"};
    // the tier for all tests of a run: interpreter, translator
    if (const char* const tier = std::getenv("VGPU_ISA_TIER"))
        argv.push_back(fmt::format("--isa-tier={}", tier));
    if (options_.mode == SwitchMode::TrueCopy) argv.emplace_back("--true-copy");
    if (options_.is_unconfined) argv.emplace_back("--unconfined");
    softgpu_.reset();
    softgpu_.emplace(ChildProcess::Spec{"softgpu", argv, dir_.file("softgpu.log")});
    softgpu_->wait_for_output("softgpu: ready");
}

void GpuStack::start_pf() {
    pf_.reset();
    pf_process_.reset();
    const auto log = dir_.file("vgpu-pf.log");
    note_refusals(log);
    ::unlink(log.c_str());
    std::vector<std::string> argv{program("vgpu-pf"),
                                  "--device",
                                  pf_socket(),
                                  "--socket",
                                  dir_.file("uapi.sock"),
                                  "--name",
                                  "gpu0",
                                  "--time-scale",
                                  fmt::format("{}", static_cast<int>(time_scale()))};
    if (options_.is_stepwise) argv.emplace_back("--stepwise");
    if (options_.is_unconfined) argv.emplace_back("--unconfined");
    pf_process_.emplace(ChildProcess::Spec{"vgpu-pf", argv, log});
    pf_process_->wait_for_output("ready");
    pf_.emplace(dir_.file("uapi.sock"));
}

void GpuStack::kill_pf() {
    pf_.reset();
    pf_process_->kill_now();
}

void GpuStack::kill_softgpu() {
    softgpu_->kill_now();
    note_refusals(dir_.file("softgpu.log"));
    ::unlink(dir_.file("softgpu.log").c_str());
}

void GpuStack::provision(std::uint32_t vf, std::uint64_t vram_mb) {
    pf_->provision(vf, vram_mb << 20);
    provisioned_.push_back(vf);
    std::vector<vgpu_pf_run_entry> table;
    for (const auto each : provisioned_) table.push_back({each, quantum_us_});
    pf_->set_run_table(table);
}

std::string GpuStack::vf_socket(std::uint32_t vf) const {
    return dir_.file(fmt::format("vf{}.sock", vf));
}

nlohmann::json control_request(const std::string& socket, const nlohmann::json& request) {
    const auto fd = connect_stream(socket);
    const auto line = request.dump() + "\n";
    if (::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(line.size()))
        throw VfError("control socket: send failed", errno);
    auto answer = nlohmann::json::parse(read_line(fd.get(), milliseconds(5000)));
    if (answer.contains("error")) throw VfError("control socket: " + answer.dump());
    return answer;
}

nlohmann::json GpuStack::control(const nlohmann::json& request) const {
    return control_request(dir_.file("control.sock"), request);
}

void GpuStack::inject(std::uint32_t vf, const std::string& point, const std::string& effect) const {
    control({{"inject", {{"vf", vf}, {"point", point}, {"effect", effect}, {"count", 1}}}});
}

}  // namespace vgpu::test
