// SPDX-License-Identifier: MIT
#include "tests/scenario/dbus/neighbours.h"

#include "tests/support/deadline.h"

#include <fmt/format.h>
#include <utility>

namespace vgpu::daemon::testing {

Guest::Guest(const std::string& socket) : client(socket) {
    client.device().trace().set_recording(false);
    client.boot();
    process = &client.create_process();
    queue = &process->create_queue();
}

void run_for_ever(Guest& guest) {
    const auto kernel = guest.process->load(test::kernel_file("endless"), "endless");
    const auto progress = guest.process->allocate(4096);
    guest.queue->dispatch(kernel, {.grid = {256, 1, 1}, .group = {64, 1, 1}},
                          test::args(progress.address));
}

Neighbour::Neighbour(const std::string& socket)
    : guest_(socket),
      queue_(guest_.process->create_queue()),
      done_(guest_.process->create_signal()) {
    for (const std::string& name : test::Program::demo_names())
        programs_.emplace_back(*guest_.process, name);
    run_for_ever(guest_);
    thread_ = std::thread([this] { work(); });
}

Neighbour::~Neighbour() {
    stop();
}

std::string Neighbour::stop() {
    is_stopped_ = true;
    if (thread_.joinable()) thread_.join();
    return condition_;
}

void Neighbour::work() {
    try {
        while (!is_stopped_ && condition_.empty()) {
            for (test::Program& program : programs_) {
                program.start(queue_, done_);
                guest_.process->wait(done_);
                if (!program.is_exact()) condition_ = program.difference();
            }
            ++rounds_;
        }
    } catch (const test::VfError& error) {
        condition_ = error.what();
    }
    is_over_ = true;
}

namespace {

nlohmann::json named(const nlohmann::json& vfs, const std::string& name) {
    for (const nlohmann::json& vf : vfs)
        if (vf.at("name") == name) return vf;
    throw test::VfError("there is no VF " + name);
}

}  // namespace

Neighbours::Neighbours(List list, std::array<std::string, 2> names) : list_(std::move(list)) {
    for (std::string& name : names) {
        const std::string socket = named(list_(), name).at("socket");
        both_.push_back(std::unique_ptr<One>(
            new One{.name = std::move(name), .guest = Neighbour(socket), .before = {}}));
    }
    compute();
    const nlohmann::json vfs = list_();
    for (const auto& one : both_) one->before = named(vfs, one->name);
}

std::array<double, 2> Neighbours::service() const {
    const nlohmann::json vfs = list_();
    return {named(vfs, both_.at(0)->name).at("service_ns"),
            named(vfs, both_.at(1)->name).at("service_ns")};
}

void Neighbours::compute() {
    constexpr double kMoreNs = 0.3e9;
    constexpr int kRounds = 2;  // the one under way began before
    const auto sum = [this] {
        const auto [one, other] = service();
        return one + other;
    };
    const double wanted = sum() + kMoreNs;
    for (const auto& one : both_) {
        const int rounds = one->guest.rounds() + kRounds;
        test::wait_for("a neighbour to compute", test::milliseconds(60'000),
                       [&] { return one->guest.rounds() >= rounds || one->guest.is_over(); });
    }
    test::wait_for("service", test::milliseconds(60'000), [&] { return sum() >= wanted; });
}

double Neighbours::share_of_first() const {
    std::array<double, 2> got = service();
    for (std::size_t i = 0; i < got.size(); ++i)
        got.at(i) -= both_.at(i)->before.at("service_ns").get<double>();
    return got[0] / (got[0] + got[1]);
}

std::string Neighbours::stop() {
    std::string condition;
    const nlohmann::json vfs = list_();
    for (const auto& one : both_) {
        const std::string own = one->guest.stop();
        if (!own.empty()) condition += fmt::format("{}: {}\n", one->name, own);
        const nlohmann::json after = named(vfs, one->name);
        for (const char* same : {"generation", "uuid", "vram_bytes", "weight", "hangs", "faults",
                                 "flrs", "bad_accesses"})
            if (after.at(same) != one->before.at(same))
                condition += fmt::format("{}: {} {} -> {}\n", one->name, same,
                                         one->before.at(same).dump(), after.at(same).dump());
    }
    both_.clear();
    return condition;
}

}  // namespace vgpu::daemon::testing
