// SPDX-License-Identifier: MIT
#include "tests/scenario/demo/guest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include "pf-driver/hw/gpuvm.h"
#include "tests/support/programs/program.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

namespace vgpu::demo {
namespace {

using namespace test;

constexpr std::size_t kRoundsInFlight = 24;  // enough that the VF always has work
constexpr std::uint64_t kMiB = 1u << 20;
constexpr milliseconds kRoundLimit{60000};

/// All programs once; the shared signal counts down to 0.
class Round {
public:
    explicit Round(Process& process) : done_(process.create_signal()) {
        for (const auto& name : Program::demo_names())
            programs_.push_back(std::make_unique<Program>(process, name, Load::Heavy));
    }

    void start(AqlQueue& queue) {
        done_.set(static_cast<std::int64_t>(programs_.size()));
        for (auto& program : programs_) program->enqueue(queue, done_);
    }
    [[nodiscard]] const Signal& done() const { return done_; }
    void check(const SharedReport& report) {
        bool all_exact = true;
        for (auto& program : programs_) {
            report->runs += 1;
            if (program->is_exact()) continue;
            all_exact = false;
            report->wrong += 1;
            report.say(program->difference());
        }
        if (all_exact) report->rounds += 1;
    }

private:
    std::vector<std::unique_ptr<Program>> programs_;
    Signal done_;
};

void compute(Process& process, AqlQueue& queue, const SharedReport& report) {
    std::vector<std::unique_ptr<Round>> rounds;
    for (std::size_t i = 0; i < kRoundsInFlight; ++i)
        rounds.push_back(std::make_unique<Round>(process));
    std::deque<Round*> in_flight;
    for (auto& round : rounds) {
        round->start(queue);
        in_flight.push_back(round.get());
    }
    report->state = GuestState::Computing;
    while (!in_flight.empty()) {
        auto* const round = in_flight.front();
        in_flight.pop_front();
        process.wait(round->done(), kRoundLimit);
        round->check(report);
        if (report->order != GuestOrder::Compute) continue;
        round->start(queue);
        in_flight.push_back(round);
    }
}

/// True if a copy from `from` in a fresh process ended in a memory fault and not in data.
bool sdma_is_stopped(VfClient& vf, std::uint64_t pte) {
    auto& process = vf.create_process();
    const auto page = process.allocate(4096);
    const auto to = process.allocate(4096);
    process.tables().set_entry(page.address, 0, pte);
    vf.device().flush_hdp();
    const auto done = process.create_signal();
    process.create_sdma_queue(0).copy(to.address, page.address, 4096, done);
    process.wait_fault();
    const bool stopped = done.value() == 1 && to.load<std::uint64_t>() == 0;
    vf.destroy_process(process);
    return stopped;
}

/// True if a kernel that reads such a page (vector_add) ended in a memory fault and not in data.
bool kernel_is_stopped(VfClient& vf, std::uint64_t pte) {
    auto& process = vf.create_process();
    auto& queue = process.create_queue();
    const auto page = process.allocate(4096);
    const auto zero = process.allocate(4096);
    const auto to = process.allocate(4096);
    const auto kernel = process.load(kernel_file("vector_add"), "vector_add");
    process.tables().set_entry(page.address, 0, pte);
    vf.device().flush_hdp();
    const auto done = process.create_signal();
    queue.dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                   args(page.address, zero.address, to.address, 64u), done);
    process.wait_fault();
    const bool stopped = done.value() == 1 && to.load<std::uint64_t>() == 0;
    vf.destroy_process(process);
    return stopped;
}

bool bar0_is_stopped(VfClient& vf) {
    std::array<std::byte, 64> bytes{};
    vf.device().vram_read_trapped(vf.vram_bytes() + 4 * kMiB, bytes);
    return vf.device().vram().size() == vf.vram_bytes() &&
           std::ranges::all_of(bytes, [](auto b) { return b == std::byte{0xff}; });
}

void attack(VfClient& vf, const SharedReport& report) {
    report->state = GuestState::Attacking;
    const auto beyond = vf.vram_bytes() + 4 * kMiB;
    const auto note = [&](bool is_stopped) {
        (is_stopped ? report->attacks_stopped : report->attacks_through) += 1;
    };
    note(kernel_is_stopped(vf, beyond | PageTable::kVramFlags));
    note(sdma_is_stopped(vf, beyond | PageTable::kVramFlags));
    note(bar0_is_stopped(vf));
}

void run_endless(VfClient& vf, const SharedReport& report) {
    auto& process = vf.create_process();
    auto& queue = process.create_queue();
    const auto kernel = process.load(kernel_file("endless"), "endless");
    const auto progress = process.allocate(4096);
    queue.dispatch(kernel, {.grid = {512, 1, 1}, .group = {64, 1, 1}}, args(progress.address));
    report->state = GuestState::Endless;
    while (report->order == GuestOrder::Endless) {
        report->endless_count = progress.load<std::uint32_t>();
        polling_pause();
    }
    vf.destroy_process(process);
}

void follow_orders(VfClient& vf, const SharedReport& report) {
    auto& process = vf.create_process();
    auto& queue = process.create_queue();
    while (report->order != GuestOrder::Finish) {
        const auto order = report->order.load();
        if (order == GuestOrder::Compute) compute(process, queue, report);
        if (order == GuestOrder::Attack) attack(vf, report);
        if (order == GuestOrder::Endless) run_endless(vf, report);
        if (order == GuestOrder::Attack) report->order = GuestOrder::Compute;
    }
}

}  // namespace

int run_guest(const std::string& vf_socket, SharedReport report) {
    try {
        VfClient vf(vf_socket);
        vf.device().trace().set_recording(false);
        vf.boot();
        follow_orders(vf, report);
        report->state = GuestState::Done;
        return 0;
    } catch (const std::exception& error) {
        report.say(error.what());
        report->state = GuestState::Failed;
        return 1;
    }
}

}  // namespace vgpu::demo
