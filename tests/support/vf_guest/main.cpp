// SPDX-License-Identifier: MIT
//
// vf-guest SOCKET: the user-space VF driver as a process that tests/host orders about: one order a
// line in, one answer a line out. An order that fails answers "error TEXT" and leaves the driver
// as after a reset of the VF: boot may follow.
//
//   boot       the driver's init sequence                        -> booted MIB
//   compute    keeps checked programs queued until the next line, which may be empty
//                                                                -> computed ROUNDS wrong WRONG
//   endless    starts a kernel that never ends                   -> endless
//   progress   what that kernel has counted up to                -> progress COUNT
//   attack     reaches for VRAM beyond the VF's own, three ways  -> stopped N of 3
//   unload     the driver's exit                                 -> unloaded
//   forget     drops everything without touching the VF          -> forgotten
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/programs/program.h"
#include "tests/support/vf_client/process.h"
#include "tests/support/vf_client/vf_client.h"

namespace vgpu::test {
namespace {

constexpr std::size_t kRoundsInFlight = 8;  // longer than the VF is ever off the engine
constexpr std::uint64_t kMiB = 1u << 20;
constexpr milliseconds kRoundLimit{60000};

bool has_order() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return std::cin.rdbuf()->in_avail() > 0 || ::poll(&input, 1, 0) > 0;
}

/// All programs of the demo once; the shared signal counts down to 0.
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
    [[nodiscard]] bool is_exact() const {
        return std::ranges::all_of(programs_, [](const auto& each) { return each->is_exact(); });
    }

private:
    std::vector<std::unique_ptr<Program>> programs_;
    Signal done_;
};

class Worker {
public:
    explicit Worker(const std::string& socket) : vf_(socket) {
        vf_.device().trace().set_recording(false);
    }

    /// The answer to an order.
    std::string obey(const std::string& order) try {
        for (const auto& [name, act] : kOrders)
            if (name == order) return (this->*act)();
        return "error no such order: " + order;
    } catch (const std::exception& error) {
        forget();
        return std::string("error ") + error.what();
    }

private:
    struct Order {
        const char* name;
        std::string (Worker::*act)();
    };
    static const std::array<Order, 7> kOrders;

    std::string boot() {
        vf_.boot();
        process_ = &vf_.create_process();
        queue_ = &process_->create_queue();
        return fmt::format("booted {}", vf_.vram_bytes() / kMiB);
    }

    std::string unload() {
        vf_.unload();
        process_ = nullptr;
        return "unloaded";
    }

    std::string forget() {
        vf_.forget();
        process_ = nullptr;
        return "forgotten";
    }

    std::string compute() {
        std::vector<std::unique_ptr<Round>> rounds;
        std::deque<Round*> in_flight;
        for (std::size_t i = 0; i < kRoundsInFlight; ++i) {
            in_flight.push_back(rounds.emplace_back(std::make_unique<Round>(process())).get());
            in_flight.back()->start(*queue_);
        }
        std::uint64_t done = 0, wrong = 0;
        while (!in_flight.empty()) {
            Round* const round = in_flight.front();
            in_flight.pop_front();
            process().wait(round->done(), kRoundLimit);
            (round->is_exact() ? done : wrong) += 1;
            if (has_order()) continue;
            round->start(*queue_);
            in_flight.push_back(round);
        }
        return fmt::format("computed {} wrong {}", done, wrong);
    }

    std::string endless() {
        const auto kernel = process().load(kernel_file("endless"), "endless");
        progress_ = process().allocate(4096);
        queue_->dispatch(kernel, {.grid = {512, 1, 1}, .group = {64, 1, 1}},
                         args(progress_.address));
        return "endless";
    }

    std::string progress() {
        return process_ == nullptr ? "error not booted"
                                   : fmt::format("progress {}", progress_.load<std::uint32_t>());
    }

    std::string attack() {
        const auto beyond = vf_.vram_bytes() + 4 * kMiB;
        const auto pte = beyond | PageTable::kVramFlags;
        const int stopped =
            int{kernel_is_stopped(pte)} + int{sdma_is_stopped(pte)} + int{bar_is_stopped(beyond)};
        return fmt::format("stopped {} of 3", stopped);
    }

    /// True if a kernel that reads a page of `pte` ended in a memory fault and not in data.
    bool kernel_is_stopped(std::uint64_t pte) {
        Process& process = vf_.create_process();
        AqlQueue& queue = process.create_queue();
        const auto kernel = process.load(kernel_file("vector_add"), "vector_add");
        const auto page = process.allocate(4096);
        const auto zero = process.allocate(4096);
        const auto to = process.allocate(4096);
        process.tables().set_entry(page.address, 0, pte);
        vf_.device().flush_hdp();
        const auto done = process.create_signal();
        queue.dispatch(kernel, {.grid = {64, 1, 1}, .group = {64, 1, 1}},
                       args(page.address, zero.address, to.address, 64u), done);
        return ends_in_a_fault(process, done, to);
    }

    /// The same by SDMA.
    bool sdma_is_stopped(std::uint64_t pte) {
        Process& process = vf_.create_process();
        const auto page = process.allocate(4096);
        const auto to = process.allocate(4096);
        process.tables().set_entry(page.address, 0, pte);
        vf_.device().flush_hdp();
        const auto done = process.create_signal();
        process.create_sdma_queue(0).copy(to.address, page.address, 4096, done);
        return ends_in_a_fault(process, done, to);
    }

    bool ends_in_a_fault(Process& process, const Signal& done, const Buffer& to) {
        process.wait_fault();
        const bool is_stopped = done.value() == 1 && to.load<std::uint64_t>() == 0;
        vf_.destroy_process(process);
        return is_stopped;
    }

    /// The BAR reads all ones there.
    bool bar_is_stopped(std::uint64_t beyond) {
        std::array<std::byte, 64> bytes{};
        vf_.device().vram_read_trapped(beyond, bytes);
        return std::ranges::all_of(bytes, [](auto byte) { return byte == std::byte{0xff}; });
    }

    Process& process() {
        if (process_ == nullptr) throw VfError("not booted");
        return *process_;
    }

    VfClient vf_;
    Process* process_ = nullptr;
    AqlQueue* queue_ = nullptr;
    Buffer progress_;
};

const std::array<Worker::Order, 7> Worker::kOrders{{{"boot", &Worker::boot},
                                                    {"compute", &Worker::compute},
                                                    {"endless", &Worker::endless},
                                                    {"progress", &Worker::progress},
                                                    {"attack", &Worker::attack},
                                                    {"unload", &Worker::unload},
                                                    {"forget", &Worker::forget}}};

}  // namespace
}  // namespace vgpu::test

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: vf-guest SOCKET\n");
        return 2;
    }
    try {
        vgpu::test::Worker worker(argv[1]);
        fmt::print("attached\n");
        std::fflush(stdout);
        for (std::string order; std::getline(std::cin, order);) {
            if (order.empty()) continue;
            fmt::print("{}\n", worker.obey(order));
            std::fflush(stdout);
        }
    } catch (const std::exception& error) {
        fmt::print("error {}\n", error.what());
        return 1;
    }
    return 0;
}
