// SPDX-License-Identifier: MIT
//
// vgpu-dispatch-figures: measures what a dispatch costs inside the device. The command processor
// and the engine's threads are in this process, with flat memory and without sockets. It measures
// the time from the doorbell of one empty kernel to its completion signal, and packets per second
// of a full queue. vgpu-figures measures the same through sockets and a softgpu process. Prints
// figures and aims (docs/performance.md).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "pf-driver/softgpu/cp/engine.h"
#include "tests/support/vf_client/memory_word.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

using Clock = std::chrono::steady_clock;
using softgpu::cp::Engine;

class Nobody final : public Engine::Listener {
public:
    void quantum_expired(const softgpu::cp::RunReport&) override {}
    void out_of_work(softgpu::VfId) override {}
};

/// A VF on the engine with one AQL queue.
class Device {
public:
    explicit Device(std::uint32_t threads)
        : rig_({.workers = threads}), engine_({.threads = threads}, clock_, nobody_) {
        rig_.vf.on_work = [this] { engine_.kick(); };
        rig_.start_kiq();
        rig_.start_hiq();
        queue_ = rig_.make_aql_queue(kPackets);
        kernel_.object = rig_.load_kernel("empty").descriptor;
        kernel_.arguments = rig_.arguments(std::uint64_t{0});  // the kernel uses none
        done_ = rig_.make_signal(0);
        rig_.map(queue_);
        if (!engine_.run(context_, std::nullopt)) throw std::runtime_error("the engine is taken");
    }
    ~Device() { (void)engine_.park(); }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    /// Writes packets of empty kernels, of which the last signals, and rings the doorbell; returns
    /// the us from there to the signal.
    double submit(unsigned packets) {
        rig_.memory.put(value(), std::int64_t{1});
        for (unsigned i = 1; i <= packets; ++i) {
            kernel_.signal = i == packets ? done_ : 0;
            kernel_.has_barrier = i == packets;
            rig_.dispatch(queue_, kernel_);
        }
        const auto start = Clock::now();
        {
            const std::lock_guard guard(lock_);
            rig_.ring_doorbell(queue_);
        }
        const auto* where = rig_.memory.at(value(), sizeof(std::int64_t)).data();
        while (load_shared<std::int64_t>(where) != 0) {
        }
        return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    }

    static constexpr unsigned kPackets = 64;

private:
    [[nodiscard]] std::uint64_t value() const { return done_ + offsetof(aql_signal, value); }

    softgpu::SteadyClock clock_;
    Nobody nobody_;
    CpRig rig_;
    softgpu::PiMutex lock_;
    softgpu::cp::Context context_{softgpu::VfId{1}, lock_, rig_.cp, {}};
    Engine engine_;
    Ring queue_;
    AqlKernel kernel_;
    std::uint64_t done_ = 0;
};

void row(const std::string& what, const std::string& measured, const std::string& aim) {
    fmt::print("  {:<52} {:>24}   {}\n", what, measured, aim);
}

void latency(Device& device, std::uint32_t threads) {
    constexpr std::size_t samples = 20'000;
    std::vector<double> times(samples);
    for (auto& time : times) time = device.submit(1);
    std::ranges::sort(times);
    row(fmt::format("empty dispatch, doorbell to signal, threads: {}", threads),
        fmt::format("p50 {:.1f} p99 {:.1f} us", times[samples / 2], times[samples * 99 / 100]),
        "<= 5 us p50");
}

/// Takes the best of several batches of a full queue, because a stall only adds time.
void rate(Device& device, std::uint32_t threads) {
    constexpr unsigned batches = 2000;
    double best = 0;
    for (unsigned i = 0; i < batches; ++i)
        best = std::max(best, (Device::kPackets - 1) / device.submit(Device::kPackets - 1));
    row(fmt::format("empty dispatches, 63 a doorbell, threads: {}", threads),
        fmt::format("{:.0f} k/s", best * 1e3), ">= 300 k/s");
}

}  // namespace
}  // namespace vgpu::test

int main() {
    try {
        for (const std::uint32_t threads : {1u, 2u}) {
            vgpu::test::Device device(threads);
            vgpu::test::latency(device, threads);
            vgpu::test::rate(device, threads);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "vgpu-dispatch-figures: {}\n", error.what());
        return 1;
    }
}
